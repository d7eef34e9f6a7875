import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { disconnected } from "./disconnected.js"
import * as httpErrors from "./httpErrors.js"

interface Received {
  readonly chunks: Chunk.Chunk<Uint8Array<ArrayBuffer>>
  readonly bytes: number
}

const empty: Received = { chunks: Chunk.empty(), bytes: 0 }

/**
 * Reads a body until it has more than `maxBytes`. Counts the bytes here, because `@effect/platform` limits them only on
 * node:http.
 */
const receive = (response: HttpClientResponse.HttpClientResponse, maxBytes: number, received: Ref.Ref<Received>) =>
  response.stream.pipe(
    Stream.runForEachWhile((chunk) =>
      Ref.modify(received, ({ bytes, chunks }) => [
        bytes + chunk.length <= maxBytes,
        { chunks: Chunk.append(chunks, chunk.slice(0, maxBytes - bytes)), bytes: bytes + chunk.length }
      ])
    ),
    Effect.catchIf(httpErrors.isEmptyBody, () => Effect.void)
  )

/** Reads a body as text. Returns undefined if it is longer than `maxBytes`, and cancels it. */
export const read = (
  response: HttpClientResponse.HttpClientResponse,
  maxBytes: number
): Effect.Effect<string | undefined, httpErrors.BodyError> =>
  Effect.gen(function*() {
    const received = yield* Ref.make(empty)
    yield* receive(response, maxBytes, received)
    const { bytes, chunks } = yield* Ref.get(received)
    if (bytes > maxBytes) return undefined
    const decoder = new TextDecoder()
    const texts = Chunk.toArray(chunks).map((chunk) => decoder.decode(chunk, { stream: true }))
    return texts.join("") + decoder.decode()
  })

/** Enough for any error message, and little memory when a hundred requests get a 401 at once. */
const maxHeldBytes = 64 * 1024

/**
 * Reads at most 64 KiB of a body into memory and cancels the rest, so that the response occupies no connection. Returns
 * `None` if the body cannot be read, for example because the HTTP client has already read it.
 *
 * Stops after one second and cancels the stream in the background, because a body may never end. A server usually sends
 * the body of an error together with the headers.
 */
export const hold = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<Option.Option<Blob>> =>
  Effect.gen(function*() {
    const received = yield* Ref.make(empty)
    const exit = yield* receive(response, maxHeldBytes, received).pipe(
      disconnected,
      Effect.interruptible,
      Effect.timeoutOption("1 second"),
      Effect.exit
    )
    const { bytes, chunks } = yield* Ref.get(received)
    const unreadable = Exit.match(exit, {
      onFailure: () => true,
      onSuccess: (ended) => Option.isSome(ended) && announcesBody(response)
    })
    return bytes === 0 && unreadable ? Option.none() : Option.some(new Blob(Chunk.toArray(chunks)))
  })

/** Detects a body that was read before. The stream of Node then ends without an error, as if the body were empty. */
const announcesBody = ({ headers, request }: HttpClientResponse.HttpClientResponse): boolean =>
  request.method !== "HEAD" && Number(headers["content-length"]) > 0
