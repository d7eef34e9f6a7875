/**
 * Performs each fault on a request. Writes to Node's response or socket what the platform cannot send: repeated
 * headers, endless bodies and raw bytes.
 */
import { Buffer } from "node:buffer"
import type { ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { gzipSync } from "node:zlib"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fault from "../Fault.js"
import type { Body, Exchange, Response } from "./request.js"
import { breakOff } from "./server.js"

/** The request to which a fault applies. */
interface FaultContext extends Exchange {
  /** The response without the fault. */
  readonly regular: Response
  /** The URL of the second origin. */
  readonly secondOrigin: string
  readonly forgetNonces: Effect.Effect<void>
}

const empty = Buffer.alloc(0)

/** Performs the fault. The platform interrupts those that do not end when the socket closes. */
export const perform = (fault: Fault.Fault, context: FaultContext): Response => {
  const { body, forgetNonces, regular, request, tokens } = context
  const { incoming: { socket }, outgoing } = request
  const respond = (status: number, headers: Fault.Headers, content: Uint8Array = empty) =>
    Effect.sync(() => write(outgoing, status, headers, content))

  return Fault.match(fault, {
    Answer: ({ body, delay, headers, status }) =>
      Effect.delay(respond(status, headers, body), delay),
    Delay: ({ delay }) => Effect.delay(regular, delay),
    Hang: () => Effect.never,
    Amend: ({ fields, headers }) =>
      changeResponse(context, headers, (token) => encode({ ...decode(token), ...fields })),
    Gzip: () =>
      changeResponse(context, { "Content-Encoding": "gzip" }, (token) => gzipSync(token)),
    Revoke: () => Effect.zipRight(tokens.revoke(), regular),
    ForgetNonces: () => Effect.zipRight(forgetNonces, regular),
    Continue: () => Effect.zipRight(Effect.sync(() => outgoing.writeContinue()), regular),
    Echo: ({ status }) => respond(status, {}, echo(body)),
    RetryDate: ({ status, wait }) =>
      Effect.flatMap(httpDateIn(wait), (date) => respond(status, { "Retry-After": date })),
    Drip: ({ every, status }) => drip(outgoing, status, every),
    Flood: ({ bytes, status }) => flood(outgoing, status, bytes),
    Redirect: ({ status, to }) => respond(status, locate(to, context)),
    Raw: ({ bytes, ending }) => Effect.zipRight(breakOff(socket, bytes, ending), Effect.never),
    Stale: () => Effect.zipRight(breakOff(socket, empty, "Reset"), Effect.never),
    // `app.ts` performs these before there is a request.
    Connection: () => regular,
    Tls: () => regular
  })
}

const decode = (body: Uint8Array) =>
  JSON.parse(Buffer.from(body).toString()) as Record<string, unknown>

const encode = (fields: Readonly<Record<string, unknown>>) =>
  Buffer.from(JSON.stringify(fields))

const echo = ({ text }: Body) =>
  encode({ error: "invalid_request", error_description: `The body was: ${text}` })

/** The regular response with another body and more headers. Only a 200 is changed. */
const changeResponse = (
  { regular, request }: FaultContext,
  moreHeaders: Fault.Headers,
  change: (body: Uint8Array) => Uint8Array
) =>
  Effect.map(regular, (response) => {
    const { body, headers: { "content-length": _, ...headers }, status } = response
    return status === 200 && body._tag === "Uint8Array"
      ? write(request.outgoing, status, { ...headers, ...moreHeaders }, change(body.body))
      : response
  })

/** RFC 9110 section 5.6.7. A date cannot be much later than the longest wait. */
const httpDateIn = (wait: Duration.DurationInput) =>
  Effect.map(
    DateTime.now,
    (now) =>
      DateTime.toDateUtc(
        DateTime.addDuration(now, Duration.min(Duration.decode(wait), Duration.days(365)))
      )
        .toUTCString()
  )

const locate = (
  to: Fault.RedirectTarget,
  { request, secondOrigin, settings }: FaultContext
): Fault.Headers => {
  const ours = {
    elsewhere: `${secondOrigin}${request.url}`,
    itself: `${settings.basePath}/moved`,
    loop: request.url
  }
  const target = typeof to === "string" ? ours[to] : to.location
  return target === undefined ? {} : { Location: target }
}

/** The platform does not write a response that has ended. It only reads the status of the returned value. */
export const write = (
  outgoing: ServerResponse,
  status: number,
  headers: Fault.Headers,
  body: Uint8Array
) => {
  outgoing.statusCode = status
  for (const [name, values] of Object.entries(headers)) outgoing.setHeader(name, values)
  if (body.length > 0 && !outgoing.hasHeader("content-type")) {
    outgoing.setHeader("content-type", "application/json")
  }
  outgoing.end(body)
  return HttpServerResponse.empty({ status })
}

const writeHead = (outgoing: ServerResponse, status: number) =>
  Effect.sync(() =>
    outgoing.writeHead(status, { "Content-Type": "application/json" }).flushHeaders()
  )

/** Writes one space at a time, which JSON allows, until the client disconnects. */
const drip = (outgoing: ServerResponse, status: number, every: Duration.DurationInput) =>
  Effect.zipRight(
    writeHead(outgoing, status),
    Effect.forever(Effect.delay(Effect.sync(() => outgoing.write(" ")), every))
  )

const chunk = Buffer.alloc(64 * 1024, "x")

const chunks = function*(bytes: number) {
  for (let left = bytes; left > 0; left -= chunk.length) yield chunk.subarray(0, left)
}

/** Writes as fast as the client reads. If the client disconnects, the platform interrupts this. */
const flood = (outgoing: ServerResponse, status: number, bytes: number) =>
  writeHead(outgoing, status).pipe(
    Effect.zipRight(Effect.tryPromise(() => pipeline(Readable.from(chunks(bytes)), outgoing))),
    Effect.catchAll(() => Effect.never),
    Effect.as(HttpServerResponse.empty({ status }))
  )
