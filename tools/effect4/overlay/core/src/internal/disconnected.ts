import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/** An interruption of the result does not wait until the effect, which runs in a fiber of its own, has ended. */
export const disconnected = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      Effect.forkDetach(restore(effect), { startImmediately: true }),
      (fiber) => Effect.onInterrupt(restore(Fiber.join(fiber)), () => Effect.sync(() => fiber.interruptUnsafe()))
    )
  )
