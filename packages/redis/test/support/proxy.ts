/** A network that a test can break: a proxy for connections on loopback. */
import { connect, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"

export interface Proxy {
  readonly port: number
  /** The number of connections so far. */
  readonly opened: Effect.Effect<number>
  /** The number of open connections. */
  readonly living: Effect.Effect<number>
  /** Delays the responses on all connections until `release`. */
  readonly hold: Effect.Effect<void>
  readonly release: Effect.Effect<void>
  /** Discards all data on the connections that are open now, and keeps them open. */
  readonly lose: Effect.Effect<void>
}

interface Passage {
  readonly near: Socket
  readonly far: Socket
  isLost: boolean
}

/** Starts a proxy to a port on loopback. All connections close with the scope. */
export const proxyTo = (target: number): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<{ readonly proxy: Proxy; readonly close: () => void }>((resume) => {
        const living = new Set<Passage>()
        let opened = 0
        let isHeld = false
        const flow = () => {
          for (const { far, isLost } of living) {
            if (isHeld || isLost) far.pause()
            else far.resume()
          }
        }
        const server = createServer((near) => {
          const far = connect(target, "127.0.0.1")
          const passage: Passage = { near, far, isLost: false }
          opened += 1
          living.add(passage)
          near.on("data", (chunk) => passage.isLost || far.write(chunk))
          far.on("data", (chunk) => near.write(chunk))
          for (const socket of [near, far]) {
            socket.on("error", () => undefined)
            socket.on("close", () => {
              living.delete(passage)
              near.destroy()
              far.destroy()
            })
          }
          flow()
        })
        const close = () => {
          server.close()
          for (const { far, near } of living) {
            near.destroy()
            far.destroy()
          }
        }
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = typeof address === "object" && address !== null ? address.port : 0
          const hold = (is: boolean) =>
            Effect.sync(() => {
              isHeld = is
              flow()
            })
          const proxy: Proxy = {
            port,
            opened: Effect.sync(() => opened),
            living: Effect.sync(() => living.size),
            hold: hold(true),
            release: hold(false),
            lose: Effect.sync(() => {
              for (const passage of living) passage.isLost = true
              flow()
            })
          }
          resume(Effect.succeed({ proxy, close }))
        })
      }),
      ({ close }) => Effect.sync(close)
    ),
    ({ proxy }) => proxy
  )
