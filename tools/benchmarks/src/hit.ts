/** A cached token in one fiber, compared with `Ref.get` and Effect's own caches. */
import { AccessTokenProvider, TokenSource } from "@store-api/core"
import { Cache, Deferred, Effect, Ref } from "effect"
import { alternate, type Candidate, nanoseconds, plainly, ratio, type Run, type Spread } from "./harness.js"
import { token } from "./sample.js"

export interface Hit {
  readonly name: string
  readonly ns: Spread
  readonly ratio: Spread
}

/** One fiber that yields the same effect repeatedly, as in an application. */
const yielding = (run: Run) => (name: string, effect: Effect.Effect<unknown, unknown>): Candidate => ({
  name,
  run: (times) =>
    run(Effect.gen(function*() {
      const start = performance.now()
      for (let i = 0; i < times; i++) yield* effect
      return performance.now() - start
    }))
})

const repeating = (run: Run) => (name: string, effect: Effect.Effect<unknown, unknown>): Candidate => ({
  name,
  run: (times) =>
    run(Effect.suspend(() => {
      const start = performance.now()
      return Effect.map(Effect.repeatN(effect, times - 1), () => performance.now() - start)
    }))
})

export const baseline = "Ref.get"
export const ours = "provider.get"
export const repeated = "provider.get, Effect.repeatN"
const repeatedBaseline = "Ref.get, Effect.repeatN"

const hour = 3_600_000

export const measureHit = (millis: number, run: Run = plainly): Promise<ReadonlyArray<Hit>> =>
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
    return Object.keys(rounds).map((name) => ({
      name,
      ns: nanoseconds(rounds, name),
      ratio: ratio(rounds, name, name.includes("repeatN") ? repeatedBaseline : baseline)
    }))
  })))
