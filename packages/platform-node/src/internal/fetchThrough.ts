import { Readable } from "node:stream"
import type * as Undici from "@effect/platform-node/Undici"

/** `fetch` as the library calls it. */
export type Send = (url: string, init: RequestInit) => Promise<Response>

/**
 * Returns a `fetch` over the method `request`, which dispatchers of all versions of undici have. Node's own `fetch`
 * takes only those of some versions, and waits for ever with others.
 */
export const fetchThrough = (dispatcher: Undici.Dispatcher): Send =>
(
  url,
  { body, headers, method = "GET", signal }
) => {
  const { origin, pathname, search } = new URL(url)
  return dispatcher.request({
    origin,
    path: pathname + search,
    method: method, // `fetch` takes any
    headers: Object.fromEntries(new Headers(headers)),
    // Bytes, or a stream of the web, which undici iterates.
    body: (body ?? null) as Readable | Uint8Array | null,
    signal: signal ?? null
  }).then((response) => responseOf(response, method))
}

const responseOf = (
  { body, headers, statusCode }: Undici.Dispatcher.ResponseData,
  method: string
): Response => {
  const hasBody = method !== "HEAD" && ![204, 205, 304].includes(statusCode)
  // The DOM types have another stream.
  const stream = hasBody ? Readable.toWeb(body) as unknown as ReadableStream : null
  const response = new Response(stream, { status: statusCode })
  for (const [name, values] of Object.entries(headers)) {
    for (const value of [values ?? []].flat()) response.headers.append(name, value)
  }
  return response
}
