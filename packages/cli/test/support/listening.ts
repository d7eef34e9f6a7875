import * as Http from "node:http"
import type * as Net from "node:net"
import { Effect, type Scope } from "effect"

/** The port on which a server of one's own listens on this machine, until the scope ends. */
export const listening = (server: Net.Server): Effect.Effect<number, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.sync(() => {
          server.close()
          if (server instanceof Http.Server) server.closeAllConnections()
        })
    ),
    () => (server.address() as Net.AddressInfo).port
  )

/** The URL of an API of one's own, which sees how a call goes on. */
export const serving = (handler: Http.RequestListener): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(listening(Http.createServer(handler)), (port) => `http://127.0.0.1:${port}`)

/** An API whose answer has no end. */
export const endless = Effect.gen(function*() {
  let sent = 0
  const url = yield* serving((_request, response) => {
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
    /** How much was sent when no more is read. */
    stalled: Effect.gen(function*() {
      let before = -1
      while (sent === 0 || sent !== before) {
        before = sent
        yield* Effect.sleep("500 millis")
      }
      return sent
    }),
    /** Waits until that much was sent. */
    beyond: (bytes: number) => Effect.repeat(Effect.sleep("20 millis"), { while: () => sent < bytes })
  }
})

/** More than what lies between a server and a reader. */
export const tooMuch = 32 * 1024 * 1024
