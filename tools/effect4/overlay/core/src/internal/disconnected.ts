import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/** Runs the effect in a new fiber. An interruption does not wait until that fiber has ended. */
export const disconnected = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      Effect.forkDetach(restore(effect), { startImmediately: true }),
      (fiber) => Effect.onInterrupt(restore(Fiber.join(fiber)), () => Effect.sync(() => fiber.interruptUnsafe()))
    )
  )
