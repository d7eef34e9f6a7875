import { createServer } from "node:net"
import { Effect, Random } from "effect"

/**
 * A port without a listener, for a process that takes a while to start. It is below the ports that a system assigns to
 * outgoing connections and to port 0, so none of these takes it in between.
 */
export const freePort: Effect.Effect<number> = Effect.flatMap(
  Random.nextIntBetween(20_000, 32_000),
  (port) =>
    Effect.async<number, Error>((resume) => {
      const server = createServer().once("error", (error) => resume(Effect.fail(error)))
      server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed(port))))
    })
).pipe(Effect.eventually)
