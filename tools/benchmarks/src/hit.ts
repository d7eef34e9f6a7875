/** A cached token in one fiber, compared with `Ref.get` and Effect's own caches. */
import { AccessTokenProvider, TokenSource } from "@store-api/core"
import { Cache, Deferred, Effect, Ref } from "effect"
import { alternate, timed, token, yielding } from "./harness.js"

export const ours = "provider.get"
const baseline = "Ref.get"

const hour = 3_600_000

export const measureHit = (millis: number) =>
  Effect.scoped(Effect.gen(function*() {
    const source = TokenSource.make(() => token(hour))
    const provider = yield* Effect.provideService(
      AccessTokenProvider.make(),
      TokenSource.TokenSource,
      source
    )
    const acquire = token(hour)
    const ref = yield* Ref.make(yield* acquire)
    const cache = yield* Cache.make({
      capacity: 1,
      timeToLive: "1 hour",
      lookup: (_: "token") => acquire
    })
    const cached = yield* Effect.cachedWithTTL(acquire, "1 hour")
    const landed = yield* Deferred.make<unknown>()
    yield* Deferred.succeed(landed, undefined)
    const rounds = yield* alternate([
      yielding(baseline, Ref.get(ref)),
      yielding(ours, provider.get),
      yielding("awaiting a done Deferred", Deferred.await(landed)),
      yielding("Effect Cache", cache.get("token")),
      yielding("Effect.cachedWithTTL", cached)
    ], millis)
    return timed(rounds, baseline)
  }))
