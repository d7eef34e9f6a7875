/** APIs of a test. */
import * as Http from "node:http"
import { listen } from "@store-api/testing/loopback"
import { Effect, type Scope } from "effect"

/** Starts an API with this handler, and returns its URL. */
export const serving = (
  handler: Http.RequestListener
): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(listen(Http.createServer(handler)), ({ url }) => url)

/** An API whose response has no end. */
export const endless = (status = 200) =>
  Effect.gen(function*() {
    let sent = 0
    const url = yield* serving((_request, response) => {
      response.writeHead(status)
      const chunk = Buffer.alloc(64 * 1024, "x")
      const more = () => {
        do sent += chunk.length
        while (response.write(chunk))
      }
      response.on("drain", more)
      more()
    })
    return {
      url,
      /** Waits until nothing more is read, and returns how many bytes were sent. */
      stalled: Effect.gen(function*() {
        let before = -1
        while (sent === 0 || sent !== before) {
          before = sent
          yield* Effect.sleep("500 millis")
        }
        return sent
      }),
      /** Waits until that many bytes were sent. */
      beyond: (bytes: number) =>
        Effect.repeat(Effect.sleep("20 millis"), { while: () => sent < bytes })
    }
  })

/** More bytes than the buffers between a server and a reader hold. */
export const tooMuch = 32 * 1024 * 1024
