import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/**
 * Runs an effect in its own fiber, and waits for it until a time limit, which holds for an uninterruptible effect
 * too. An interruption of the caller ends the effect, but only where the caller itself is interruptible: Effect
 * interrupts the children of a race or a timeout even if their parent is in an uninterruptible region.
 */
export const waitAtMost =
  <A2, E2>(duration: Duration.DurationInput, onTimeout: Effect.Effect<A2, E2>) =>
  <A, E, R>(
    effect: Effect.Effect<A, E, R>
  ): Effect.Effect<A | A2, E | E2, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function*() {
        const result = yield* Deferred.make<A | A2, E | E2>()
        const work = yield* Effect.forkDaemon(
          Effect.interruptible(effect.pipe(Effect.intoDeferred(result)))
        )
        const timeout = Effect.zipRight(
          Effect.sleep(duration),
          Deferred.complete(result, onTimeout)
        )
        const limit = yield* Effect.forkDaemon(Effect.interruptible(timeout))
        const interruptBoth = Effect.zipRight(
          Fiber.interruptFork(work),
          Fiber.interruptFork(limit)
        )
        return yield* Effect.ensuring(restore(Deferred.await(result)), interruptBoth)
      })
    )
