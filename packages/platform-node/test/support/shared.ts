import { afterAll, beforeAll } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"

const limit = 60_000

/**
 * Acquires a resource before the tests of the surrounding `describe`, which share it, and releases it after them.
 * `layer` of `@effect/vitest` would replace the methods of `it` for all files that the same worker runs later.
 */
export const shared = <A>(resource: Effect.Effect<A, never, Scope.Scope>): Effect.Effect<A> => {
  const scope = Effect.runSync(Scope.make())
  const acquired = Effect.runSync(Effect.cached(Scope.extend(resource, scope)))
  beforeAll(() => Effect.runPromise(Effect.asVoid(acquired)), limit)
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)), limit)
  // In a fiber of its own: the cached effect would also set the clock with which it ran first.
  return Effect.promise(() => Effect.runPromise(acquired))
}
