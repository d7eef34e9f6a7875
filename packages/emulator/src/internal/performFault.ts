/** What each fault does to the request that meets it. */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Fault from "../Fault.js"
import type { Exchange } from "./exchange.js"

/**
 * Answers a request as the fault says; `regular` is the answer it would have had. A fault that takes over the socket
 * does its work through `exchange` and then never ends by itself: the request is interrupted when the socket closes.
 */
export const perform = (
  fault: Fault.Fault,
  exchange: Exchange,
  regular: Effect.Effect<HttpServerResponse.HttpServerResponse>
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Fault.match(fault, {
    Answer: (answer) => Effect.zipRight(Effect.sleep(answer.delay), Effect.sync(() => write(answer, exchange))),
    Delay: ({ delay }) => Effect.zipRight(Effect.sleep(delay), regular),
    Hang: () => Effect.never
  })

/** Written on Node's response, since the platform's knows a header once only; it leaves an ended response alone. */
const write = (answer: Extract<Fault.Fault, { _tag: "Answer" }>, { outgoing }: Exchange) => {
  const headers = Object.entries(answer.headers)
  outgoing.statusCode = answer.status
  for (const [name, values] of headers) outgoing.setHeader(name, values)
  if (answer.body.length > 0 && !outgoing.hasHeader("content-type")) {
    outgoing.setHeader("content-type", "application/json")
  }
  outgoing.end(answer.body)
  return HttpServerResponse.empty({ status: answer.status })
}
