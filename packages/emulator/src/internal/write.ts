/** An answer written on Node's response, since the platform's knows a header once only and adds some of its own. */
import type { ServerResponse } from "node:http"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
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
