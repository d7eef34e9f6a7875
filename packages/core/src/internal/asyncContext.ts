/**
 * The async context of a caller: what `AsyncLocalStorage` of Node returns, on which tracing relies. A fiber that waits
 * continues in that of whichever fiber runs before it, so requests would be sent in the context of another caller.
 */
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import * as Scheduler from "effect/Scheduler"

/** Runs a task at once, and so in the context in which it is scheduled. */
const immediately = Scheduler.make((task) => task(), () => false)

/**
 * Returns an effect that continues in the async context of the caller of this function. It works once. The reaction of
 * a promise runs in the context in which it was added, on every runtime.
 */
export const capture = (): Effect.Effect<void> => {
  let release: () => void = constVoid
  let resume: () => void = constVoid
  // eslint-disable-next-line no-restricted-syntax -- nothing else keeps a context without an import from Node
  void new Promise<void>((resolve) => (release = resolve)).then(() => resume())
  return Effect.withScheduler(
    Effect.async<void>((done) => {
      resume = () => done(Effect.void)
      release()
    }),
    immediately
  )
}

/** Runs an effect that waits, and continues in the async context in which it started. */
export const keep = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const restore = capture()
    return Effect.zipLeft(effect, restore)
  })
