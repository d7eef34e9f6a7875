/** A cold start: many callers at once. Fibers that call `get` are compared with as many that await one Deferred. */
import {
  type AccessToken,
  type AccessTokenError,
  AccessTokenProvider,
  TokenSource
} from "@store-api/core"
import { Deferred, Effect } from "effect"
import { inOwnProcess, spread, token } from "./harness.js"

const variants = ["provider", "deferred"] as const
type Variant = typeof variants[number]

export type Stampede = Awaited<ReturnType<typeof measureStampede>>

export const measureStampede = async (fibers: number) => {
  const times = fibers >= 100_000 ? 9 : fibers >= 10_000 ? 24 : 120
  const { heaps, runs } = await inOwnProcess<typeof stampedes>("stampede.js", "stampedes", [
    fibers,
    times
  ])
  const [own = [], plain = []] = variants.map((one) =>
    runs.filter(({ variant }) => variant === one).map(({ wall }) => wall)
  )
  const [ownHeap = Number.NaN, plainHeap = Number.NaN] = heaps
  return {
    fibers,
    /** The most token requests that any repetition sent. */
    requests: Math.max(...runs.map(({ requests }) => requests)),
    /** Milliseconds from the first fork until the last fiber is done, with the response sent as soon as all wait. */
    wall: { provider: spread(own).median, deferred: spread(plain).median },
    wallRatio: spread(own.map((wall, round) => wall / (plain[round] ?? Number.NaN))),
    /** Of the heap while all wait. */
    memoryRatio: ownHeap / plainHeap
  }
}

/** Runs in a process of its own, because it weighs the heap. */
export const stampedes = (fibers: number, times: number) =>
  Effect.runPromise(Effect.gen(function*() {
    const few = Math.min(fibers, 1000)
    for (let left = 20_000; left > 0; left -= few + 50) {
      for (const variant of variants) yield* stampede(variant, few, false)
    }
    const runs = []
    for (let i = 0; i < times; i++) {
      for (const variant of i % 2 === 0 ? variants : [...variants].reverse()) {
        runs.push(yield* stampede(variant, fibers, false))
      }
    }
    // The first measurement still contains garbage of what ran before.
    const heaps = yield* Effect.forEach(
      [...variants, ...variants],
      (variant) => stampede(variant, fibers, true)
    )
    return { runs, heaps: heaps.slice(2).map(({ heap }) => heap) }
  }))

const stampede = (variant: Variant, fibers: number, weigh: boolean) =>
  Effect.gen(function*() {
    const [gate, done] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    let [requests, begun, ended] = [0, 0, 0]
    const get = yield* waiting[variant](Effect.suspend(() => {
      requests++
      return Effect.zipRight(Deferred.await(gate), token(3_600_000))
    }))
    const one = Effect.suspend(() => {
      begun++
      return get
    }).pipe(
      Effect.flatMap(() =>
        ++ended === fibers ? Deferred.succeed(done, undefined) : Effect.void
      )
    )

    const before = weigh ? yield* collected : 0
    const start = performance.now()
    for (let i = 0; i < fibers; i++) yield* Effect.forkDaemon(one)
    while (begun < fibers) yield* Effect.yieldNow()
    yield* Effect.yieldNow()
    const parked = performance.now()
    const heap = weigh ? (yield* collected) - before : 0
    const opened = performance.now()
    yield* Deferred.succeed(gate, undefined)
    yield* Deferred.await(done)
    return { variant, requests, wall: parked - start + performance.now() - opened, heap }
  }).pipe(Effect.scoped)

/** The heap in bytes after a collection. */
const collected = Effect.sync(() => {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
})

type Get = Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>

/** The work of each fiber: `get` on a cold provider, or await a Deferred that one more fiber completes. */
const waiting = {
  provider: (acquire: Get) =>
    AccessTokenProvider.make().pipe(
      Effect.provideService(TokenSource.TokenSource, TokenSource.make(() => acquire)),
      Effect.map(({ get }) => get)
    ),
  deferred: (acquire: Get) =>
    Effect.gen(function*() {
      const landing = yield* Deferred.make<
        AccessToken.AccessToken,
        AccessTokenError.AccessTokenError
      >()
      yield* Effect.forkScoped(Effect.intoDeferred(acquire, landing))
      return Deferred.await(landing)
    })
}
