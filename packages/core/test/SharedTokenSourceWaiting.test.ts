import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { Effect, Exit, Fiber, Option, Random, Ref, TestClock } from "effect"
import { drive, endpoint, fullToken, member, outage, settled, valueOf, valuesOf, watched } from "./support/fleet.js"
import * as VirtualClock from "./support/virtualClock.js"

const hour = 3_600_000

/** Enough to tell one from all: each pause of each takes some real time too. */
const size = 4

const limit = 60_000

/** The lease of a key that somebody holds who says nothing more; the token that was stored before, and taken out. */
const held = Effect.gen(function*() {
  const { requests, source } = yield* endpoint()
  const { puts, store } = yield* watched
  yield* (yield* member(source, store)).acquire(Option.none())
  const [key, entry] = (yield* puts)[0] ?? ["", ""]
  yield* store.remove(key, entry)
  const { release } = Option.getOrThrow(yield* store.lease(key, "1 day"))
  return { publish: store.put(key, entry, "1 hour"), release, requests, source, store }
})

/** The least maxWait and the shortest pauses; all look at the same moments. */
const leastChance = Effect.withRandom(Random.fixed([0]))

describe("SharedTokenSource, with its defaults", () => {
  it.effect("waits for an endpoint that takes all but its deadline: one token request", () =>
    Effect.gen(function*() {
      const { requests, source } = yield* endpoint({ takes: 29_900 })
      const members = yield* Effect.all(Effect.replicate(member(source, yield* TokenStore.makeMemory), size))
      const all = Effect.forEach(members, ({ acquire }) => acquire(Option.none()), { concurrency: "unbounded" })
      const { exit } = yield* drive(yield* Effect.fork(leastChance(all)))
      deepStrictEqual(valuesOf(exit), ["token-1"])
      assert.strictEqual(yield* requests, 1)
    }), limit)

  it.effect("follows one that fails after its deadline by one, not by all", () =>
    Effect.gen(function*() {
      const asked = yield* Ref.make<ReadonlyArray<number>>([])
      const { source } = yield* endpoint({
        answer: (number) =>
          TestClock.currentTimeMillis.pipe(
            Effect.flatMap((now) => Ref.update(asked, (all) => [...all, now])),
            Effect.zipRight(
              number === 1 ? Effect.delay(Effect.fail(outage), 30_000) : Effect.delay(fullToken("the next"), 3000)
            )
          )
      })
      const members = yield* Effect.all(Effect.replicate(member(source, yield* TokenStore.makeMemory), size))
      const all = Effect.forEach(members, ({ acquire }) => Effect.either(acquire(Option.none())), {
        concurrency: "unbounded"
      })
      const { exit } = yield* drive(yield* Effect.fork(leastChance(all)))
      const tags = Exit.match(exit, { onFailure: () => [], onSuccess: (all) => all.map(({ _tag }) => _tag) })
      deepStrictEqual([...tags].sort(), ["Left", ...Array.from({ length: size - 1 }, () => "Right")])
      const [first, second = 0, ...others] = yield* Ref.get(asked)
      assert.strictEqual(first, 0)
      assert.isAtLeast(second, 30_000)
      assert.isAtMost(second, 30_500)
      assert.isEmpty(others)
    }), limit)
})

describe("SharedTokenSource, while another holds the lease", () => {
  it.effect.each([
    { what: "is the answer to one more look", publishes: true, token: "token-1", asked: 0 },
    { what: "is not there: the endpoint is asked", publishes: false, token: "token-2", asked: 1 }
  ])("a token published just as maxWait is over $what", ({ asked, publishes, token }) =>
    Effect.gen(function*() {
      const { publish, requests, source, store } = yield* held
      const before = yield* requests
      const { acquire } = yield* member(source, store, { maxWait: "1 second" })
      // Patience until 750 ms, looks at 0, 38, 113, 263 and 563 ms, and the last at 938.
      const acquiring = yield* Effect.fork(leastChance(acquire(Option.none())))
      if (publishes) yield* Effect.fork(Effect.delay(publish, 900))
      const { exit, took } = yield* drive(acquiring)
      deepStrictEqual(Exit.map(exit, valueOf), Exit.succeed(token))
      assert.strictEqual(took, 938)
      assert.strictEqual((yield* requests) - before, asked)
    }))

  it.effect("the pauses between looks double up to half a second, each by chance three quarters of it to all", () =>
    Effect.gen(function*() {
      const { source, store } = yield* held
      const looks = yield* Ref.make<ReadonlyArray<number>>([])
      const timed = TokenStore.TokenStore.of({
        ...store,
        get: (key) =>
          Effect.zipRight(
            Effect.flatMap(TestClock.currentTimeMillis, (now) => Ref.update(looks, (all) => [...all, now])),
            store.get(key)
          )
      })
      const { acquire } = yield* member(source, timed, { maxWait: "2 seconds" })
      // The first draw is that of maxWait.
      yield* drive(
        yield* Effect.fork(Effect.withRandom(acquire(Option.none()), Random.fixed([1, 0, 0.5, 1, 0.25, 0.75, 0, 1])))
      )
      const times = yield* Ref.get(looks)
      deepStrictEqual(
        times.slice(1).map((time, index) => time - (times[index] ?? 0)),
        [38, 88, 200, 325, 469, 375, 500, 500]
      )
    }))

  it.effect("maxWait is counted by the monotonic clock, wherever the wall clock goes meanwhile", () => {
    const virtual = VirtualClock.make()
    return Effect.gen(function*() {
      const { requests, source, store } = yield* held
      const { acquire } = yield* member(source, store)
      const acquiring = yield* Effect.fork(Effect.withRandom(acquire(Option.none()), Random.fixed([1])))
      yield* settled
      assert.strictEqual(virtual.sleepers(), 1)
      const before = yield* requests
      virtual.jump(hour)
      yield* virtual.advance("30 seconds")
      assert.strictEqual(yield* requests, before, "it still waits")
      virtual.jump(-2 * hour)
      yield* virtual.advance("14900 millis")
      assert.strictEqual(yield* requests, before, "it still waits")
      yield* virtual.advance("600 millis")
      yield* settled
      assert.strictEqual(yield* requests, before + 1)
      assert.strictEqual(valueOf(yield* Fiber.join(acquiring)), "token-2")
    }).pipe(Effect.withClock(virtual.clock))
  })
})
