import type * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"

interface Body {
  readonly text: string
  readonly complete: boolean
}

/**
 * The text of a body of at most `maxBytes`, counted on the stream (the limits of the platform hold on node:http only).
 * Of a longer one the beginning, not complete; the rest is not read.
 */
export const read = (
  response: HttpClientResponse.HttpClientResponse,
  maxBytes: number
): Effect.Effect<Body, HttpClientError.ResponseError> =>
  Effect.suspend(() => {
    const decoder = new TextDecoder()
    return response.stream.pipe(
      Stream.runFoldWhile(
        { text: "", bytes: 0 },
        ({ bytes }) => bytes <= maxBytes,
        ({ bytes, text }, chunk: Uint8Array) => ({
          text: text + decoder.decode(chunk.subarray(0, maxBytes - bytes), { stream: true }),
          bytes: bytes + chunk.length
        })
      ),
      Effect.map(({ bytes, text }) => ({ text: text + decoder.decode(), complete: bytes <= maxBytes }))
    )
  }).pipe(
    Effect.catchIf((error) => error.reason === "EmptyBody", () => Effect.succeed({ text: "", complete: true }))
  )

/** Enough for any error message, and little when a hundred requests get a 401 at once. */
const maxHeldBytes = 64 * 1024

/**
 * Reads at most 64 KiB of a body into memory and cancels the rest, so that the response holds no connection. Returns `None`
 * when nothing can be read, for example because the HTTP client has read the body already.
 *
 * Takes at most one second: a server sends the body of an error together with its head, and the caller's request must not
 * wait for a body that may never end. Then the stream is cancelled in the background.
 */
export const hold = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<Option.Option<Blob>> =>
  Effect.gen(function*() {
    const held = yield* Ref.make({ chunks: Chunk.empty<Uint8Array<ArrayBuffer>>(), bytes: 0 })
    const exit = yield* response.stream.pipe(
      Stream.runForEachWhile((chunk) =>
        Ref.modify(held, ({ bytes, chunks }) => [
          bytes + chunk.length <= maxHeldBytes,
          {
            chunks: Chunk.append(chunks, chunk.slice(0, maxHeldBytes - bytes)),
            bytes: bytes + chunk.length
          }
        ])
      ),
      Effect.catchIf((error) => error.reason === "EmptyBody", () => Effect.void),
      Effect.disconnect,
      Effect.interruptible,
      Effect.timeoutOption("1 second"),
      Effect.exit
    )
    const { bytes, chunks } = yield* Ref.get(held)
    const unreadable = Exit.match(exit, {
      onFailure: () => true,
      onSuccess: (ended) => Option.isSome(ended) && announcesBody(response)
    })
    return bytes === 0 && unreadable ? Option.none() : Option.some(new Blob(Chunk.toArray(chunks)))
  })

/** A stream of Node that has been read before ends without an error, as if the body were empty. */
const announcesBody = ({ headers, request }: HttpClientResponse.HttpClientResponse): boolean =>
  request.method !== "HEAD" && Number(headers["content-length"]) > 0
