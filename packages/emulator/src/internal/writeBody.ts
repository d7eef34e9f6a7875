/** An answer written on Node's response, since the platform's knows a header once only and adds some of its own. */
import { Buffer } from "node:buffer"
import type { ServerResponse } from "node:http"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Headers } from "../FaultModel.js"

/** The platform leaves an ended response alone; what is returned here only tells it so. */
export const write = (
  outgoing: ServerResponse,
  answer: { readonly status: number; readonly headers: Headers; readonly body: Uint8Array }
): HttpServerResponse.HttpServerResponse => {
  outgoing.statusCode = answer.status
  for (const [name, values] of Object.entries(answer.headers)) outgoing.setHeader(name, values)
  if (answer.body.length > 0 && !outgoing.hasHeader("content-type")) {
    outgoing.setHeader("content-type", "application/json")
  }
  outgoing.end(answer.body)
  return HttpServerResponse.empty({ status: answer.status })
}

const begin = (outgoing: ServerResponse, status: number) =>
  Effect.sync(() => {
    outgoing.writeHead(status, { "Content-Type": "application/json" })
    outgoing.flushHeaders()
  })

/** A blank at a time, which JSON allows for. */
export const drip = (outgoing: ServerResponse, status: number, every: Duration.Duration): Effect.Effect<never> =>
  Effect.sleep(every).pipe(
    Effect.zipRight(Effect.sync(() => outgoing.write(" "))),
    Effect.forever,
    (dripping) => Effect.zipRight(begin(outgoing, status), dripping)
  )

const chunk = Buffer.alloc(64 * 1024, "x")

/** Writes as much as the client reads; a connection that is closed ends the request from outside. */
export const flood = (
  outgoing: ServerResponse,
  status: number,
  bytes: number
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.gen(function*() {
    yield* begin(outgoing, status)
    for (let left = bytes; left > 0; left -= chunk.length) {
      yield* Effect.async<void>((resume) => {
        const next = () => resume(Effect.void)
        if (outgoing.write(chunk.subarray(0, Math.min(left, chunk.length)))) {
          next()
          return
        }
        outgoing.once("drain", next)
        return Effect.sync(() => outgoing.off("drain", next))
      })
    }
    outgoing.end()
    return HttpServerResponse.empty({ status })
  })
