/** The process in which `stampede.ts` measures. Arguments: `wall`, `provider` or `deferred`; fibers; repetitions. */
import { type AccessToken, type AccessTokenError, AccessTokenProvider, TokenSource } from "@store-api/core"
import { Deferred, Effect } from "effect"
import { token } from "./sample.js"

export type Variant = "provider" | "deferred"

export interface Measured {
  readonly variant: Variant
  readonly requests: number
  readonly wall: number
  readonly heap: number
}

const collect = Effect.sync(() => {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
})

/** The work of each fiber: `get` on a cold provider, or await a Deferred that one more fiber completes. */
const waiting = (
  variant: Variant,
  acquire: Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
) =>
  Effect.gen(function*() {
    if (variant === "provider") {
      const source = TokenSource.make(() => acquire)
      const provider = yield* Effect.provideService(AccessTokenProvider.make(), TokenSource.TokenSource, source)
      return provider.get
    }
    const landing = yield* Deferred.make<AccessToken.AccessToken, AccessTokenError.AccessTokenError>()
    yield* Effect.forkScoped(Effect.intoDeferred(acquire, landing))
    return Deferred.await(landing)
  })

const stampede = (variant: Variant, fibers: number, weigh: boolean): Effect.Effect<Measured> =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const done = yield* Deferred.make<void>()
    let requests = 0
    let begun = 0
    let ended = 0
    const acquire = Effect.suspend(() => {
      requests++
      return Effect.zipRight(Deferred.await(gate), token(3_600_000))
    })
    const get = yield* waiting(variant, acquire)
    const one = Effect.suspend(() => {
      begun++
      return get
    }).pipe(Effect.flatMap(() => ++ended === fibers ? Deferred.succeed(done, undefined) : Effect.void))

    const before = weigh ? yield* collect : 0
    const start = performance.now()
    for (let i = 0; i < fibers; i++) yield* Effect.forkDaemon(one)
    while (begun < fibers) yield* Effect.yieldNow()
    yield* Effect.yieldNow()
    const parked = performance.now()
    const heap = weigh ? (yield* collect) - before : 0
    const opened = performance.now()
    yield* Deferred.succeed(gate, undefined)
    yield* Deferred.await(done)
    return { variant, requests, wall: parked - start + performance.now() - opened, heap }
  }).pipe(Effect.scoped)

const [what = "wall", fibers = "1", times = "1"] = process.argv.slice(2)

const run = Effect.gen(function*() {
  const variants: ReadonlyArray<Variant> = what === "wall" ? ["provider", "deferred"] : [what as Variant]
  const few = Math.min(Number(fibers), 1000)
  for (let left = 20_000; left > 0; left -= few + 50) {
    for (const variant of variants) yield* stampede(variant, few, false)
  }
  const weigh = what !== "wall"
  // The first measurement still contains garbage of the warm-up.
  if (weigh) { for (const variant of variants) yield* stampede(variant, few, weigh) }
  const measured = []
  for (let i = 0; i < Number(times); i++) {
    for (const variant of i % 2 === 0 ? variants : [...variants].reverse()) {
      measured.push(yield* stampede(variant, Number(fibers), weigh))
    }
  }
  return measured
})

process.stdout.write(JSON.stringify(await Effect.runPromise(run)))
