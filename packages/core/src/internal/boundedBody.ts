import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as httpErrors from "./httpErrors.js"
import { waitAtMost } from "./waitAtMost.js"

/**
 * Reads a body as text. Returns undefined if it is longer than `maxBytes`, and cancels it. Counts bytes here, because
 * `@effect/platform` limits them only on node:http.
 */
export const read = (
  response: HttpClientResponse.HttpClientResponse,
  maxBytes: number
): Effect.Effect<string | undefined, httpErrors.BodyError> =>
  Effect.suspend(() => {
    const decoder = new TextDecoder()
    let text = ""
    let bytes = 0
    const append = (chunk: Uint8Array) => {
      bytes += chunk.length
      text += decoder.decode(chunk, { stream: true })
      return Effect.succeed(bytes <= maxBytes)
    }
    return Stream.runForEachWhile(response.stream, append).pipe(
      Effect.catchIf(httpErrors.isEmptyBody, () => Effect.void),
      Effect.map(() => bytes <= maxBytes ? text + decoder.decode() : undefined)
    )
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
    waitAtMost("1 second", Effect.void),
    Effect.forkDaemon,
    Effect.asVoid
  )
