/** Caches as applications write them, shown in docs/guides/migrating.md. migrating.test.ts shows their bugs. */
import { Cache, Clock, Effect, Option, Ref } from "effect"

export interface Token {
  readonly value: string
  /** In milliseconds, by the wall clock. */
  readonly expiresAt: number
}

export const inRef = <E>(
  request: Effect.Effect<Token, E>
): Effect.Effect<Effect.Effect<string, E>> =>
  Effect.map(Ref.make(Option.none<Token>()), (held) =>
    Effect.gen(function*() {
      const token = yield* Ref.get(held)
      const now = yield* Clock.currentTimeMillis
      if (Option.isSome(token) && now < token.value.expiresAt) return token.value.value
      const next = yield* request
      yield* Ref.set(held, Option.some(next))
      return next.value
    }))

export const withTtl = <E>(
  request: Effect.Effect<Token, E>
): Effect.Effect<Effect.Effect<string, E>> =>
  Effect.cachedWithTTL(Effect.map(request, ({ value }) => value), "55 minutes")

export const inCache = <E>(
  request: Effect.Effect<Token, E>
): Effect.Effect<Effect.Effect<string, E>> =>
  Effect.map(
    Cache.make({
      capacity: 1,
      timeToLive: "55 minutes",
      lookup: (_: "token") => Effect.map(request, ({ value }) => value)
    }),
    (cache) => cache.get("token")
  )
