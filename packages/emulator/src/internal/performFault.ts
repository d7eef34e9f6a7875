/** What each fault does to the request that meets it. */
import { Buffer } from "node:buffer"
import { gzipSync } from "node:zlib"
import type * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fault from "../Fault.js"
import type { Body } from "./body.js"
import { end } from "./ending.js"
import type { Exchange } from "./exchange.js"
import type { Settings } from "./settings.js"
import type { Tokens } from "./tokens.js"
import * as slowBody from "./writeBody.js"
import { write } from "./writeBody.js"

type Response = Effect.Effect<HttpServerResponse.HttpServerResponse>

/** The request that a fault meets, and the answer it would have had. */
export interface Met {
  readonly exchange: Exchange
  readonly body: Body
  readonly regular: Response
  readonly settings: Settings
  readonly tokens: Tokens
  readonly elsewhere: string
}

/**
 * Answers a request as the fault says. A fault that takes over the socket does its work through `exchange` and then never
 * ends by itself: the request is interrupted when the socket closes.
 */
export const perform = (fault: Fault.Fault, met: Met): Response => {
  const { exchange, regular, tokens } = met
  const { incoming, outgoing } = exchange
  return Fault.match(fault, {
    Answer: (answer) => Effect.zipRight(Effect.sleep(answer.delay), Effect.sync(() => write(outgoing, answer))),
    Delay: ({ delay }) => Effect.zipRight(Effect.sleep(delay), regular),
    Hang: () => Effect.never,
    Amend: ({ fields, headers }) =>
      changed(met, (body) => ({ headers, body: Buffer.from(JSON.stringify({ ...parse(body), ...fields })) })),
    Gzip: () => changed(met, (body) => ({ headers: { "Content-Encoding": "gzip" }, body: gzipSync(body) })),
    Revoke: () => Effect.zipRight(tokens.revoke(), regular),
    Continue: () => Effect.zipRight(Effect.sync(() => outgoing.writeContinue()), regular),
    Echo: ({ status }) => Effect.sync(() => write(outgoing, { status, headers: {}, body: echo(met.body) })),
    RetryDate: ({ status, wait }) =>
      Effect.map(
        Clock.currentTimeMillis,
        (now) =>
          write(outgoing, { status, headers: { "Retry-After": httpDate(now + Duration.toMillis(wait)) }, body: empty })
      ),
    Drip: ({ every, status }) => slowBody.drip(outgoing, status, every),
    Flood: ({ bytes, status }) => slowBody.flood(outgoing, status, bytes),
    Redirect: ({ status, to }) =>
      Effect.sync(() => write(outgoing, { status, headers: location(to, met), body: empty })),
    Raw: ({ bytes, ending }) => raw(incoming.socket, bytes, ending),
    Stale: () => raw(incoming.socket, empty, "Reset"),
    // Taken by connections; no request ever meets them.
    Connection: () => regular,
    Tls: () => regular
  })
}

const empty = Buffer.alloc(0)

/**
 * A client that is told of bytes and of a reset at once takes the reset for an orderly end (libuv does). This is time for
 * it to read, by the real clock: another one might stand still.
 */
const timeToRead = Effect.withClock(Effect.sleep("20 millis"), Clock.make())

const raw = (socket: Exchange["incoming"]["socket"], bytes: Uint8Array, ending: Fault.Ending) =>
  Effect.async<void>((resume) => {
    if (bytes.length === 0) resume(Effect.void)
    else socket.write(bytes, () => resume(Effect.void))
  }).pipe(
    Effect.zipRight(ending === "Reset" && bytes.length > 0 ? timeToRead : Effect.void),
    Effect.zipRight(Effect.sync(() => end(socket, ending))),
    Effect.zipRight(Effect.never)
  )

/** The emulator's own token or answer, changed; a refusal stays as it is. */
const changed = (
  { exchange, regular }: Met,
  change: (body: Uint8Array) => { readonly headers: Fault.Headers; readonly body: Uint8Array }
): Response =>
  Effect.map(regular, (response) => {
    const { body, headers, status } = response
    if (status !== 200 || body._tag !== "Uint8Array") return response
    const { body: bytes, headers: others } = change(body.body)
    const { "content-length": _, ...kept } = headers
    return write(exchange.outgoing, { status, headers: { ...kept, ...others }, body: bytes })
  })

const parse = (body: Uint8Array) => JSON.parse(Buffer.from(body).toString("utf8")) as Record<string, unknown>

const echo = (body: Body) =>
  Buffer.from(JSON.stringify({
    error: "invalid_request",
    error_description: `This was sent: ${body.bytes.toString("utf8")}`
  }))

/** As RFC 9110 section 5.6.7 has it. */
const httpDate = (millis: number) => DateTime.toDateUtc(DateTime.unsafeMake(millis)).toUTCString()

const location = (to: Fault.RedirectTarget, { elsewhere, exchange, settings }: Met): Fault.Headers => {
  switch (to) {
    case "elsewhere":
      return { Location: `${elsewhere}${exchange.url}` }
    case "itself":
      return { Location: `${settings.basePath}/moved` }
    case "loop":
      return { Location: exchange.url }
    default:
      return to.location === undefined ? {} : { Location: to.location }
  }
}
