/** Shows and steers an emulator over HTTP below its own path, for the page and the commands of this machine. */
import { createHash } from "node:crypto"
import type { ServerResponse } from "node:http"
import { TLSSocket } from "node:tls"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { steeringPath } from "../EmulatorOptions.js"
import type { Fault } from "../Fault.js"
import type { IssuedToken } from "../IssuedToken.js"
import * as Scenario from "../Scenario.js"
import { type FaultQueue, missingOptions } from "./faultQueue.js"
import { describeEntry, formatLine, formatTime } from "./logLine.js"
import { page } from "./page.js"
import { readBody, type Request } from "./request.js"
import type { RequestLog } from "./requestLog.js"
import type { Settings } from "./settings.js"
import type { TlsServers } from "./tls.js"
import type { Tokens } from "./tokens.js"

/** The parts of an emulator. */
export interface Parts {
  readonly settings: Settings
  readonly tokens: Tokens
  readonly log: RequestLog
  readonly faults: FaultQueue
  readonly secondOrigin: string
  readonly tls: TlsServers | undefined
}

export const isFor = ({ path }: Request): boolean => `${path}/`.startsWith(steeringPath)

/** Returns how to respond. Pages share a computation of the state, which takes a while if there are many tokens. */
export const make = (parts: Parts) =>
  Effect.map(
    Effect.cachedWithTTL(stateOf(parts), interval),
    (state) => (request: Request) => respond(request, parts, state)
  )

/** How often the state is sent to a page if it changes. */
const interval = "100 millis"

const respond = (request: Request, parts: Parts, state: Effect.Effect<string>) =>
  Effect.gen(function*() {
    const { method, outgoing, path } = request
    const name = path.slice(steeringPath.length)
    const refusal = refuse(request)
    if (refusal !== undefined) return refusal
    if (method === "GET" && name === "") return yield* renderPage(parts)
    if (method === "GET" && name === "events") return yield* streamEvents(outgoing, state)
    if (method !== "POST" || !isAction(name)) {
      return respondWith(404, `There is no ${method} ${path}.`)
    }
    const { text } = yield* readBody(request, 4096)
    return respondWith(
      200,
      yield* Effect.flatMap(decodeBody(text), (body) => actions[name](parts, body))
    )
  }).pipe(Effect.catchAll((message) => Effect.succeed(respondWith(400, message))))

/** A connection serves one request, because faults apply to connections. */
const headers = {
  connection: "close",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff"
}

const respondWith = (status: number, message: string) =>
  HttpServerResponse.unsafeJson({ message }, { status, headers })

/**
 * A page of another origin can send requests to loopback, or make its own host name point there. Such requests have
 * another `Origin` or `Host`, and cannot be JSON without a preflight request.
 */
const refuse = ({ header, incoming: { socket }, method }: Request) => {
  const scheme = socket instanceof TLSSocket ? "https" : "http"
  const { localPort: port = 0 } = socket
  const own = ["127.0.0.1", "[::1]", "localhost"].map((name) =>
    new URL(`${scheme}://${name}:${port}`).host
  )
  const host = header("host").join().toLowerCase()
  const only = "Only programs and pages of this machine can steer the emulator:"
  if (!own.includes(host)) {
    return respondWith(403, `${only} the Host must be ${own.join(" or ")}.`)
  }
  const isForeign = header("origin").some((origin) => origin !== `${scheme}://${host}`) ||
    header("sec-fetch-site").some((site) => site !== "same-origin" && site !== "none")
  if (isForeign) {
    return respondWith(403, `${only} the request comes from a page of another origin.`)
  }
  const isJson = header("content-type").some((type) => /^application\/json *(;|$)/i.test(type))
  return method === "POST" && !isJson
    ? respondWith(415, "The Content-Type must be application/json.")
    : undefined
}

/** As the page sends it, with `argument` or `times`. Commands send what was typed. */
const Body = Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.String }))
const decodeBody = (text: string) =>
  Effect.mapError(
    Schema.decode(Body)(text),
    () => `The body must be a JSON object, such as {"argument":"api/403"}.`
  )

/** Returns what was done or what there is, or fails with what is wrong. */
type Action = (parts: Parts, body: typeof Body.Type) => Effect.Effect<string, string>

const lines = <A>(values: ReadonlyArray<A>, format: (value: A) => string, none: string) =>
  values.length === 0 ? none : values.map(format).join("\n")

const actions = {
  fail: ({ faults }, { argument = "", times }) =>
    // `append` refuses other names.
    faults.append(argument as Scenario.Name, times === undefined ? undefined : Number(times))
      .pipe(
        Effect.mapError(({ message }) => message),
        Effect.zipRight(faults.pending),
        Effect.map((steps) => `Next faults: ${steps.map(nameOf).join(", ") || "none"}.`)
      ),
  clear: ({ faults }) => Effect.as(faults.clear, "There are no more faults."),
  revoke: ({ tokens }, { argument = "" }) =>
    Effect.gen(function*() {
      const [all, id] = /^(?:#?(\d+))?$/.exec(argument) ?? []
      if (all === undefined) {
        return yield* Effect.fail("The token must be its number, such as 3.")
      }
      const count = yield* tokens.revoke(id === undefined ? undefined : Number(id))
      if (count === 0 && id !== undefined) {
        return yield* Effect.fail(`There is no valid token ${id}; see \`tokens\`.`)
      }
      return `Revoked ${count === 1 ? "1 token" : `${count} tokens`}.`
    }),
  requests: ({ log }) =>
    Effect.map(log.all, (records) => lines(records, formatLine, "No request has arrived.")),
  tokens: ({ tokens }) =>
    Effect.zipWith(
      tokens.all,
      DateTime.now,
      (tokens, now) => lines(tokens, formatToken(now), "No token was issued.")
    )
} satisfies Record<string, Action>

const isAction = (name: string): name is keyof typeof actions => Object.hasOwn(actions, name)

/** A fault that applies until `clear` has no number. */
const nameOf = ({ _tag, scenario = _tag, times }: Fault) =>
  times === Infinity ? scenario : `${scenario} × ${times}`

const formatToken =
  (now: DateTime.Utc) => ({ clientId, expiresAt, id, revokedAt }: IssuedToken) => {
    const state = DateTime.lessThanOrEqualTo(expiresAt, now) ? "expired at" : "valid until"
    return `#${id} ${clientId} ${
      Option.isSome(revokedAt) ? "revoked" : `${state} ${formatTime(expiresAt)}`
    }`
  }

/** How many tokens and how many requests the page shows. */
const shownEntries = 200

/** The state for the page. `times` is null for a fault that applies to all requests. */
const stateOf = ({ faults, log, tokens }: Parts) =>
  Effect.map(
    Effect.all([tokens.all, log.all, faults.pending]),
    ([tokens, requests, faults]) =>
      JSON.stringify({
        // Their values are Redacted.
        tokens: tokens.slice(-shownEntries).map((token) => ({
          ...token,
          revokedAt: Option.getOrNull(token.revokedAt)
        })),
        requests: requests.slice(-shownEntries).map(describeEntry),
        faults: faults.map(({ _tag, scenario: name = _tag, times }) => ({ name, times }))
      })
  )

/** Server-sent events: the state whenever it has changed, until the client disconnects. */
const streamEvents = (outgoing: ServerResponse, state: Effect.Effect<string>) => {
  let lastState = ""
  outgoing.writeHead(200, { ...headers, "content-type": "text/event-stream" })
  const send = Effect.map(state, (current) => {
    // A client that reads slowly misses states, which would otherwise use more and more memory.
    if (current !== lastState && !outgoing.writableNeedDrain) {
      outgoing.write(`data: ${lastState = current}\n\n`)
    }
  })
  return Effect.forever(Effect.zipRight(send, Effect.sleep(interval)))
}

const hashOf = (text: string, tag: string) =>
  `'sha256-${
    createHash("sha256").update(text.split(`<${tag}>`)[1]?.split(`</${tag}>`)[0] ?? "").digest(
      "base64"
    )
  }'`

/** The policy allows the script and the style of the page, and connections to the emulator. */
const renderPage = ({ settings }: Parts) =>
  Effect.map(page, (text) => {
    const names = Scenario.names.filter((name) =>
      missingOptions(Scenario.all[name].options, settings).length === 0
    )
    const options = names.map((name) => {
      const outcome = Scenario.describeOutcome(Scenario.all[name].outcome)
      return `<option title="${outcome}">${name}</option>`
    }).join("")
    return HttpServerResponse.text(text.replace("<option></option>", options), {
      contentType: "text/html; charset=utf-8",
      headers: {
        ...headers,
        "content-security-policy":
          "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; " +
          "form-action 'none'; frame-ancestors 'none'; " +
          `script-src ${hashOf(text, "script")}; style-src ${hashOf(text, "style")}`
      }
    })
  })
