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

interface Received {
  readonly chunks: Chunk.Chunk<Uint8Array<ArrayBuffer>>
  readonly bytes: number
}

const nothing: Received = { chunks: Chunk.empty(), bytes: 0 }

/** Counted on the stream, since the limits of the platform hold on node:http only. The rest is not read. */
const receive = (response: HttpClientResponse.HttpClientResponse, maxBytes: number, received: Ref.Ref<Received>) =>
  response.stream.pipe(
    Stream.runForEachWhile((chunk) =>
      Ref.modify(received, ({ bytes, chunks }) => [
        bytes + chunk.length <= maxBytes,
        { chunks: Chunk.append(chunks, chunk.slice(0, maxBytes - bytes)), bytes: bytes + chunk.length }
      ])
    ),
    Effect.catchIf((error) => error.reason === "EmptyBody", () => Effect.void)
  )

/** The text of a body of at most `maxBytes`. Of a longer one the beginning, not complete. */
export const read = (
  response: HttpClientResponse.HttpClientResponse,
  maxBytes: number
): Effect.Effect<Body, HttpClientError.ResponseError> =>
  Effect.gen(function*() {
    const received = yield* Ref.make(nothing)
    yield* receive(response, maxBytes, received)
    const { bytes, chunks } = yield* Ref.get(received)
    const decoder = new TextDecoder()
    const texts = Chunk.toArray(chunks).map((chunk) => decoder.decode(chunk, { stream: true }))
    return { text: texts.join("") + decoder.decode(), complete: bytes <= maxBytes }
  })

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
    const received = yield* Ref.make(nothing)
    const exit = yield* receive(response, maxHeldBytes, received).pipe(
      Effect.disconnect,
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

/** A stream of Node that has been read before ends without an error, as if the body were empty. */
const announcesBody = ({ headers, request }: HttpClientResponse.HttpClientResponse): boolean =>
  request.method !== "HEAD" && Number(headers["content-length"]) > 0
