import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { Effect, Either, Exit, Fiber, Option, Random, Ref, TestClock } from "effect"
import { drive, endpoint, fullToken, member, settled, valuesOf, watched } from "../support/fleet.js"
import { outage, valueOf } from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

const hour = 3_600_000

/** Few members, because each of their virtual pauses also takes some real time. */
const fleetSize = 4

/** Milliseconds. */
const testTimeout = 60_000

/** A store without a token, in which another process holds the lease. `publish` stores the token of that process. */
const leased = Effect.gen(function*() {
  const { requests, source } = yield* endpoint()
  const { puts, store } = yield* watched
  yield* (yield* member(source, store)).acquire(Option.none())
  const [key, entry] = (yield* puts)[0] ?? ["", ""]
  yield* store.remove(key, entry)
  const { release } = Option.getOrThrow(yield* store.lease(key, "1 day"))
  return { publish: store.put(key, entry, "1 hour"), release, requests, source, store }
})

/** Draws the shortest maxWait and the shortest pauses, so that all members read at the same times. */
const shortestWaits = Effect.withRandom(Random.fixed([0]))

describe("SharedTokenSource, with default options", () => {
  test("shares a token that arrives just before the deadline of the endpoint", function*() {
    const { requests, source } = yield* endpoint({ takes: 29_900 })
    const members = yield* Effect.all(Effect.replicate(member(source, yield* TokenStore.makeMemory), fleetSize))
    const all = Effect.forEach(members, ({ acquire }) => acquire(Option.none()), { concurrency: "unbounded" })
    const { exit } = yield* drive(yield* Effect.fork(shortestWaits(all)))
    deepStrictEqual(valuesOf(exit), ["token-1"])
    assert.strictEqual(yield* requests, 1)
  }, testTimeout)

  test("sends one request after an acquisition fails at its deadline", function*() {
    const requestTimes = yield* Ref.make<ReadonlyArray<number>>([])
    const { source } = yield* endpoint({
      answer: (number) =>
        TestClock.currentTimeMillis.pipe(
          Effect.flatMap((now) => Ref.update(requestTimes, (all) => [...all, now])),
          Effect.zipRight(
            number === 1 ? Effect.delay(Effect.fail(outage), 30_000) : Effect.delay(fullToken("the next"), 3000)
          )
        )
    })
    const members = yield* Effect.all(Effect.replicate(member(source, yield* TokenStore.makeMemory), fleetSize))
    const all = Effect.forEach(members, ({ acquire }) => Effect.either(acquire(Option.none())), {
      concurrency: "unbounded"
    })
    const { exit } = yield* drive(yield* Effect.fork(shortestWaits(all)))
    const tags = Exit.match(exit, { onFailure: () => [], onSuccess: (all) => all.map(Either.isRight) })
    deepStrictEqual([...tags].sort(), [false, ...Array.from({ length: fleetSize - 1 }, () => true)])
    const [first, second = 0, ...others] = yield* Ref.get(requestTimes)
    assert.strictEqual(first, 0)
    assert.isAtLeast(second, 30_000)
    assert.isAtMost(second, 30_500)
    assert.isEmpty(others)
  }, testTimeout)
})

describe("SharedTokenSource, while another process holds the lease", () => {
  it.effect.each([
    { outcome: "returns a published token", publishes: true, token: "token-1", newRequests: 0 },
    { outcome: "sends a request when there is none", publishes: false, token: "token-2", newRequests: 1 }
  ])(
    "reads the store once more after maxWait, and $outcome",
    ({ newRequests, publishes, token }) =>
      Effect.gen(function*() {
        const { publish, requests, source, store } = yield* leased
        const before = yield* requests
        const { acquire } = yield* member(source, store, { maxWait: "1 second" })
        // maxWait is drawn as 750 ms. The last two reads are at 748 ms and at 972 ms.
        const acquiring = yield* Effect.fork(shortestWaits(acquire(Option.none())))
        if (publishes) yield* Effect.fork(Effect.delay(publish, 900))
        const { exit, took } = yield* drive(acquiring)
        deepStrictEqual(Exit.map(exit, valueOf), Exit.succeed(token))
        assert.strictEqual(took, 972)
        assert.strictEqual((yield* requests) - before, newRequests)
      })
  )

  test("waits a quarter longer after each read, up to 500 ms, with a jitter of 75 to 100 percent", function*() {
    const { source, store } = yield* leased
    const reads = yield* Ref.make<ReadonlyArray<number>>([])
    const timed = TokenStore.TokenStore.of({
      ...store,
      get: (key) =>
        Effect.zipRight(
          Effect.flatMap(TestClock.currentTimeMillis, (now) => Ref.update(reads, (all) => [...all, now])),
          store.get(key)
        )
    })
    const { acquire } = yield* member(source, timed, { maxWait: "3 seconds" })
    // The first number is drawn for maxWait, the others for the pauses.
    yield* drive(
      yield* Effect.fork(
        Effect.withRandom(
          acquire(Option.none()),
          Random.fixed([1, 0, 0.5, 1, 0.25, 0.75, 0, 1, 0.5, 1, 0.25, 0.75, 0, 1])
        )
      )
    )
    const times = yield* Ref.get(reads)
    deepStrictEqual(
      times.slice(1).map((time, index) => time - (times[index] ?? 0)),
      [38, 55, 79, 80, 115, 115, 191, 209, 299, 303, 437, 375, 500, 500]
    )
  })

  it.effect("measures maxWait by the monotonic clock, even if the wall clock jumps", () => {
    const virtual = VirtualClock.make()
    return Effect.gen(function*() {
      const { requests, source, store } = yield* leased
      const { acquire } = yield* member(source, store)
      const acquiring = yield* Effect.fork(Effect.withRandom(acquire(Option.none()), Random.fixed([1])))
      yield* settled
      assert.strictEqual(virtual.sleepers(), 1)
      const before = yield* requests
      virtual.jump(hour)
      yield* virtual.advance("30 seconds")
      assert.strictEqual(yield* requests, before, "still waiting")
      virtual.jump(-2 * hour)
      yield* virtual.advance("14900 millis")
      assert.strictEqual(yield* requests, before, "still waiting")
      yield* virtual.advance("600 millis")
      yield* settled
      assert.strictEqual(yield* requests, before + 1)
      assert.strictEqual(valueOf(yield* Fiber.join(acquiring)), "token-2")
    }).pipe(Effect.withClock(virtual.clock))
  })
})
