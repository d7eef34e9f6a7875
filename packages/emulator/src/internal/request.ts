/** A request as received, and its body. */
import { Buffer } from "node:buffer"
import type { IncomingMessage, ServerResponse } from "node:http"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import * as Effect from "effect/Effect"
import type { Kind } from "../RecordedRequest.js"
import type { Settings } from "./settings.js"

export type Request = Effect.Effect.Success<ReturnType<typeof current>>

/** The bytes within the limit, and the number of bytes that arrived. */
export interface Body {
  readonly bytes: Buffer
  readonly received: number
}

const kindOf = (path: string, { basePath, tokenPath }: Settings): Kind =>
  path === tokenPath ? "token" : path.startsWith(`${basePath}/`) ? "api" : "other"

/** Returns the request of the current handler. */
export const current = (settings: Settings) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const { method, url } = request
    const incoming: IncomingMessage = NodeHttpServerRequest.toIncomingMessage(request)
    const outgoing: ServerResponse = NodeHttpServerRequest.toServerResponse(request)
    // Node's `headers` discards or joins repeated ones.
    const headers = incoming.headersDistinct
    const [path = "", ...query] = url.split("?")
    return {
      kind: kindOf(path, settings),
      method,
      /** Path and query exactly as sent. */
      url,
      path,
      /** The text after the first `?`. It is `undefined` without a `?`, and `""` for an empty query. */
      query: query.length > 0 ? query.join("?") : undefined,
      /** All values of each header by lower-case name. */
      headers,
      /** All values of one header; none if it was not sent. */
      header: (name: string): ReadonlyArray<string> => headers[name.toLowerCase()] ?? [],
      incoming,
      outgoing
    }
  })

/**
 * Keeps at most `limit` bytes, but reads the rest too: a client that is still sending would receive a reset instead of
 * the response. After 16 times the limit, the rest is neither kept nor counted.
 */
export const readBody = ({ incoming }: Request, limit: number) =>
  Effect.async<Body>((resume) => {
    const chunks: Array<Buffer> = []
    let received = 0
    const finish = () => {
      incoming.off("data", read).resume()
      resume(Effect.succeed({ bytes: Buffer.concat(chunks).subarray(0, limit), received }))
    }
    const read = (chunk: Buffer) => {
      if (received <= limit) chunks.push(chunk)
      received += chunk.length
      if (received > limit * 16) finish()
    }
    incoming.on("close", () => resume(Effect.interrupt)).on("end", finish).on("data", read)
  })
