/** Performs each fault on a request. */
import { Buffer } from "node:buffer"
import { gzipSync } from "node:zlib"
import type * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as DateTime from "effect/DateTime"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fault from "../Fault.js"
import type { Body, Request } from "./request.js"
import type { Settings } from "./settings.js"
import type { Tokens } from "./tokens.js"
import * as responses from "./writeResponse.js"

type Response = Effect.Effect<HttpServerResponse.HttpServerResponse>

/** The request to which a fault applies. */
export interface FaultContext {
  readonly request: Request
  readonly body: Body
  /** The response without the fault. */
  readonly regular: Response
  readonly settings: Settings
  readonly tokens: Tokens
  /** The URL of the second origin. */
  readonly secondOrigin: string
}

const empty = Buffer.alloc(0)

/** Performs the fault. The platform interrupts those that do not end when the socket closes. */
export const perform = (fault: Fault.Fault, context: FaultContext): Response => {
  const { body, regular, request: { incoming: { socket }, outgoing }, tokens } = context
  const write = (status: number, headers: Fault.Headers, content: Uint8Array = empty) =>
    Effect.sync(() => responses.write(outgoing, status, headers, content))

  return Fault.match(fault, {
    Answer: ({ body, delay, headers, status }) => Effect.delay(write(status, headers, body), delay),
    Delay: ({ delay }) => Effect.delay(regular, delay),
    Hang: () => Effect.never,
    Amend: ({ fields, headers }) => changed(context, headers, (token) => encode({ ...decode(token), ...fields })),
    Gzip: () => changed(context, { "Content-Encoding": "gzip" }, (token) => gzipSync(token)),
    Revoke: () => Effect.zipRight(tokens.revoke(), regular),
    Continue: () => Effect.zipRight(Effect.sync(() => outgoing.writeContinue()), regular),
    Echo: ({ status }) => write(status, {}, echo(body)),
    RetryDate: ({ status, wait }) => Effect.flatMap(httpDateIn(wait), (date) => write(status, { "Retry-After": date })),
    Drip: ({ every, status }) => responses.drip(outgoing, status, every),
    Flood: ({ bytes, status }) => responses.flood(outgoing, status, bytes),
    Redirect: ({ status, to }) => write(status, location(to, context)),
    Raw: ({ bytes, ending }) => responses.writeRaw(socket, bytes, ending),
    Stale: () => responses.writeRaw(socket, empty, "Reset"),
    // `server.ts` performs these before there is a request.
    Connection: () => regular,
    Tls: () => regular
  })
}

const decode = (body: Uint8Array) => JSON.parse(Buffer.from(body).toString()) as Record<string, unknown>

const encode = (fields: Readonly<Record<string, unknown>>) => Buffer.from(JSON.stringify(fields))

/** The regular response with another body and more headers. Only a 200 is changed. */
const changed = ({ regular, request }: FaultContext, added: Fault.Headers, change: (body: Uint8Array) => Uint8Array) =>
  Effect.map(regular, (response) => {
    const { body, headers: { "content-length": _, ...headers }, status } = response
    return status === 200 && body._tag === "Uint8Array"
      ? responses.write(request.outgoing, status, { ...headers, ...added }, change(body.body))
      : response
  })

const echo = ({ bytes }: Body) =>
  encode({ error: "invalid_request", error_description: `The body was: ${bytes.toString()}` })

/** RFC 9110 section 5.6.7. */
const httpDateIn = (wait: Duration.Duration) =>
  Effect.map(DateTime.now, (now) => DateTime.toDateUtc(DateTime.addDuration(now, wait)).toUTCString())

const location = (to: Fault.RedirectTarget, { request, secondOrigin, settings }: FaultContext): Fault.Headers => {
  if (to === "elsewhere") return { Location: `${secondOrigin}${request.url}` }
  if (to === "itself") return { Location: `${settings.basePath}/moved` }
  if (to === "loop") return { Location: request.url }
  return to.location === undefined ? {} : { Location: to.location }
}
