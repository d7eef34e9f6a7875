import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { bounded } from "./bounded.js"
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

/** Longer than any error message. To read more would take longer than to open another connection. */
const longestDrained = 64 * 1024

/**
 * Starts to free the connection of a response whose body is not needed: reads a short body to its end, so that the
 * connection can be used again, and cancels one that is longer or takes more than a second. The caller does not wait,
 * because a body may never end.
 */
export const drain = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<void> =>
  Effect.exit(read(response, longestDrained)).pipe(
    bounded("1 second", Effect.void),
    Effect.forkDaemon,
    Effect.asVoid
  )
