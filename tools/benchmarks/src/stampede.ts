/** A cold start: many callers at once. Fibers that call `get` are compared with as many that await one Deferred. */
import { type AccessToken, type AccessTokenError, AccessTokenProvider, TokenSource } from "@store-api/core"
import { Deferred, Effect } from "effect"
import { inOwnProcess, spread, token } from "./harness.js"

const variants = ["provider", "deferred"] as const
type Variant = typeof variants[number]

export type Stampede = Awaited<ReturnType<typeof measureStampede>>

export const measureStampede = async (fibers: number, quick: boolean) => {
  const measured = (chosen: ReadonlyArray<Variant>, times: number, weigh: boolean) =>
    inOwnProcess<typeof stampedes>("stampede.js", "stampedes", [chosen, fibers, times, weigh])
  const times = Math.ceil((fibers >= 100_000 ? 3 : fibers >= 10_000 ? 8 : 120) / (quick ? 4 : 1))
  const weighings = fibers >= 100_000 || quick ? 1 : 3
  const walls = await measured(variants, times, false)
  const wallOf = (variant: Variant) => walls.filter((one) => one.variant === variant).map(({ wall }) => wall)
  const [own, plain] = [wallOf("provider"), wallOf("deferred")]
  const weighed = await measured(["provider"], weighings, true)
  const heapOf = (memory: typeof walls) => spread(memory.map(({ heap }) => heap)).median
  const [ownHeap, plainHeap] = [heapOf(weighed), heapOf(await measured(["deferred"], weighings, true))]
  return {
    fibers,
    /** The most token requests that any repetition sent. */
    requests: Math.max(...[...walls, ...weighed].map(({ requests }) => requests)),
    /** Milliseconds from the first fork until the last fiber is done, with the response sent as soon as all wait. */
    wall: { provider: spread(own).median, deferred: spread(plain).median },
    wallRatio: spread(own.map((wall, round) => wall / (plain[round] ?? Number.NaN))),
    /** Bytes of heap per fiber while all wait, and the ratio of those of all fibers together. */
    bytes: { provider: ownHeap / fibers, deferred: plainHeap / fibers },
    memoryRatio: ownHeap / plainHeap
  }
}

/** Runs in a process of its own, because it weighs the heap. */
export const stampedes = (chosen: ReadonlyArray<Variant>, fibers: number, times: number, weigh: boolean) =>
  Effect.runPromise(Effect.gen(function*() {
    const few = Math.min(fibers, 1000)
    for (let left = 20_000; left > 0; left -= few + 50) {
      for (const variant of chosen) yield* stampede(variant, few, false)
    }
    // The first measurement still contains garbage of the warm-up.
    if (weigh) { for (const variant of chosen) yield* stampede(variant, few, weigh) }
    const measured = []
    for (let i = 0; i < times; i++) {
      for (const variant of i % 2 === 0 ? chosen : [...chosen].reverse()) {
        measured.push(yield* stampede(variant, fibers, weigh))
      }
    }
    return measured
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
    }).pipe(Effect.flatMap(() => ++ended === fibers ? Deferred.succeed(done, undefined) : Effect.void))

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
      const landing = yield* Deferred.make<AccessToken.AccessToken, AccessTokenError.AccessTokenError>()
      yield* Effect.forkScoped(Effect.intoDeferred(acquire, landing))
      return Deferred.await(landing)
    })
}
