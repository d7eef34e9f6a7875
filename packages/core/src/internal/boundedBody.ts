import type * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Effect from "effect/Effect"
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

/**
 * Gives up a response that nobody will read, and its connection with it: a short body is read to its end, so that the
 * connection can be used again; of a long or slow one the connection is closed. It takes a second at most, as a finalizer too,
 * where a timeout would wait for what it cannot interrupt.
 */
export const release = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<void> =>
  read(response, 64 * 1024).pipe(Effect.interruptible, Effect.timeout("1 second"), Effect.ignore)
