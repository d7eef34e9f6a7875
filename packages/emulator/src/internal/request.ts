/** A request as received, its body, and how the endpoints respond. */
import { Buffer } from "node:buffer"
import type { IncomingMessage, ServerResponse } from "node:http"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import * as Effect from "effect/Effect"
import type { Kind, RecordedRequest } from "../RecordedRequest.js"
import type { Settings } from "./settings.js"
import type { Tokens } from "./tokens.js"

export type Request = Effect.Effect.Success<ReturnType<typeof readRequest>>

/** The text of the bytes within the limit, and the number of bytes that arrived. */
export interface Body {
  readonly text: string
  readonly receivedBytes: number
}

export type Response = Effect.Effect<HttpServerResponse.HttpServerResponse>

/** What an endpoint and a fault know about the request to which they respond. */
export interface Exchange {
  readonly request: Request
  readonly body: Body
  readonly settings: Settings
  readonly tokens: Tokens
  /** Changes the record of the request. */
  readonly update: (change: Partial<RecordedRequest>) => void
}

const notStored = { "cache-control": "no-store", pragma: "no-cache" }

export const jsonResponse = (
  content: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {}
) => HttpServerResponse.unsafeJson(content, { status, headers: { ...notStored, ...headers } })

/** Fails with a response, and with the reason for it: a sentence of ours, so that it holds no part of the request. */
export const refuse = (
  status: number,
  reason: string,
  error?: string,
  headers?: Readonly<Record<string, string>>
) => {
  const content = error === undefined
    ? { message: reason }
    : { error, error_description: reason }
  return Effect.fail({ reason, response: jsonResponse(content, status, headers) })
}

const kindOf = (path: string, { basePath, tokenPath }: Settings): Kind =>
  path === tokenPath ? "token" : path.startsWith(`${basePath}/`) ? "api" : "other"

/** Returns the request of the current handler. */
export const readRequest = (settings: Settings) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const { method, url } = request
    const incoming: IncomingMessage = NodeHttpServerRequest.toIncomingMessage(request)
    const outgoing: ServerResponse = NodeHttpServerRequest.toServerResponse(request)
    // Node's `headers` discards or joins repeated ones.
    const headers = incoming.headersDistinct
    // A client may send the whole URL, as to a proxy (RFC 9112 section 3.2.2).
    const target = url.replace(/^https?:\/\/[^/?]*/i, "")
    const [path = "", ...query] = target.split("?")
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
    let receivedBytes = 0
    const finish = () => {
      incoming.off("data", read).resume()
      resume(
        Effect.succeed({
          text: Buffer.concat(chunks).subarray(0, limit).toString(),
          receivedBytes
        })
      )
    }
    const read = (chunk: Buffer) => {
      if (receivedBytes <= limit) chunks.push(chunk)
      receivedBytes += chunk.length
      if (receivedBytes > limit * 16) finish()
    }
    incoming.on("close", () => resume(Effect.interrupt)).on("end", finish).on("data", read)
  })
