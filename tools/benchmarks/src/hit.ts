/** A cached token in one fiber, compared with `Ref.get` and Effect's own caches. */
import { AccessTokenProvider, TokenSource } from "@store-api/core"
import { Cache, Deferred, Effect, Ref } from "effect"
import { alternate, type Candidate, plainly, type Run, type Timed, timed, token, yielding } from "./harness.js"

export const ours = "provider.get"
export const repeated = "provider.get, Effect.repeatN"
const baseline = "Ref.get"
const repeatedBaseline = "Ref.get, Effect.repeatN"

const hour = 3_600_000

const repeating = (run: Run) => (name: string, effect: Effect.Effect<unknown, unknown>): Candidate => ({
  name,
  run: (times) =>
    run(Effect.suspend(() => {
      const start = performance.now()
      return Effect.map(Effect.repeatN(effect, times - 1), () => performance.now() - start)
    }))
})

export const measureHit = (millis: number, run: Run = plainly): Promise<ReadonlyArray<Timed>> =>
  run(Effect.scoped(Effect.gen(function*() {
    const [yielded, repeatedly] = [yielding(run), repeating(run)]
    const source = TokenSource.make(() => token(hour))
    const provider = yield* Effect.provideService(AccessTokenProvider.make(), TokenSource.TokenSource, source)
    const acquire = token(hour)
    const ref = yield* Ref.make(yield* acquire)
    const cache = yield* Cache.make({ capacity: 1, timeToLive: "1 hour", lookup: (_: "token") => acquire })
    const cached = yield* Effect.cachedWithTTL(acquire, "1 hour")
    const landed = yield* Deferred.make<unknown>()
    yield* Deferred.succeed(landed, undefined)
    const rounds = yield* Effect.promise(() =>
      alternate([
        yielded(baseline, Ref.get(ref)),
        yielded(ours, provider.get),
        yielded("awaiting a done Deferred", Deferred.await(landed)),
        yielded("Effect Cache", cache.get("token")),
        yielded("Effect.cachedWithTTL", cached),
        repeatedly(repeatedBaseline, Ref.get(ref)),
        repeatedly(repeated, provider.get)
      ], millis)
    )
    return timed(rounds, (name) => name.includes("repeatN") ? repeatedBaseline : baseline)
  })))
