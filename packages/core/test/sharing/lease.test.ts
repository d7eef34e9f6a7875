import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { until } from "@store-api/testing/network"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Deferred, Effect, Fiber, Option, Random, Ref, TestClock } from "effect"
import { credentials, fleet, fullToken, settled, timed } from "../support/fleet.js"
import { hour, outage, outcomeOf, valueOf } from "../support/scriptedSource.js"

/** The first acquisition fails, after some milliseconds. */
const firstFails = (takes: number) => (number: number) =>
  number === 1 ? Effect.delay(Effect.fail(outage), takes) : fullToken(`token-${number}`)

/** Draws the shortest maxWait and the shortest pauses, so that all members read at the same times. */
const shortestWaits = Effect.withRandom(Random.fixed([0]))

/** A store that calls `extend` to extend a lease; `number` counts the calls from 1. */
const extending = (
  extend: (lease: TokenStore.Lease, number: number) => TokenStore.Lease["extend"]
) =>
  Effect.map(Effect.all([TokenStore.makeMemory, Ref.make(0)]), ([memory, extended]) => ({
    extensions: Ref.get(extended),
    store: TokenStore.TokenStore.of({
      ...memory,
      lease: (key, duration) =>
        Effect.map(
          memory.lease(key, duration),
          Option.map((lease) => ({
            ...lease,
            extend: Effect.flatMap(
              Ref.updateAndGet(extended, (n) => n + 1),
              (number) => extend(lease, number)
            )
          }))
        )
    })
  }))

/** A fleet in whose store another process holds the lease, and no token is. `publish` stores the token of that one. */
const leased = (duration: number) =>
  Effect.gen(function*() {
    const { puts, requests, start, store } = yield* fleet()
    yield* (yield* start()).get()
    const [key, entry] = (yield* puts)[0] ?? ["", ""]
    yield* store.remove(key, entry)
    assert.isTrue(Option.isSome(yield* store.lease(key, duration)))
    return { publish: store.put(key, entry, "1 hour"), requests, start, store }
  })

describe("SharedTokenSource, an acquisition", () => {
  test("an acquisition that fails at the endpoint's deadline fails only for its own member", function*() {
    const { requests, start } = yield* fleet({ answer: firstFails(30_000) })
    const members = yield* Effect.all(Effect.replicate(start(), 4))
    const outcomes = timed(...members.map(({ get }) => get()))
    const [outcome, took] = yield* shortestWaits(outcomes)
    deepStrictEqual([outcome, yield* requests], ["Transport,token-2", 2])
    assert.isAtMost(took, 30_500)
  })

  test("an acquisition that ends just before the endpoint's deadline is shared", function*() {
    const { requests, start } = yield* fleet({ takes: 29_900 })
    const members = yield* Effect.all(Effect.replicate(start(), 4))
    const [outcome] = yield* shortestWaits(timed(...members.map(({ get }) => get())))
    deepStrictEqual([outcome, yield* requests], ["token-1", 1])
  })

  test("a process that has exited delays other members at most by its lease", function*() {
    // The holder of this lease never extends or releases it.
    const { requests, start } = yield* leased(5000)
    const [outcome, took] = yield* timed((yield* start()).get())
    deepStrictEqual([outcome, yield* requests], ["token-2", 2])
    assert.isAtLeast(took, 5000)
    assert.isAtMost(took, 5500, "the lease, plus one pause between two reads")
  })

  test("an acquisition that takes longer than its lease keeps the lease even if one extension fails", function*() {
    const { extensions, store } = yield* extending((lease, number) =>
      number === 2
        ? new TokenStore.TokenStoreError({ operation: "extend", reason: "ECONNRESET" })
        : lease.extend
    )
    const { requests, start } = yield* fleet({ takes: 12_000 })
    const members = yield* Effect.all(
      Effect.replicate(start({ lease: "3 seconds", store }), 3)
    )
    const [outcome] = yield* timed(...members.map(({ get }) => get()))
    deepStrictEqual([outcome, yield* requests], ["token-1", 1])
    assert.isAtLeast(yield* extensions, 10)
  })

  test("a member that has waited for maxWait sends its own request", function*() {
    const { requests, start } = yield* fleet({
      answer: (number) => number === 1 ? Effect.never : fullToken(`token-${number}`)
    })
    const stuck = yield* Effect.fork((yield* start()).get())
    yield* until("it sends a request", Effect.map(requests, (count) => count > 0))
    const [outcome, took] = yield* timed((yield* start({ maxWait: "7 seconds" })).get())
    assert.strictEqual(outcome, "token-2")
    assert.isAtLeast(took, 5250)
    assert.isAtMost(took, 7500)
    // The token that it acquired is shared.
    deepStrictEqual([valueOf(yield* (yield* start()).get()), yield* requests], ["token-2", 2])
    yield* Fiber.interrupt(stuck)
  })

  test("an acquisition that is interrupted releases its lease", function*() {
    const started = yield* Deferred.make<void>()
    const { requests, start } = yield* fleet({
      answer: (number) =>
        number === 1
          ? Effect.zipRight(Deferred.succeed(started, undefined), Effect.never)
          : fullToken(`token-${number}`)
    })
    const first = yield* Effect.fork((yield* start()).get())
    yield* Deferred.await(started)
    yield* Fiber.interrupt(first)
    deepStrictEqual([valueOf(yield* (yield* start()).get()), yield* requests], ["token-2", 2])
  })
})

describe("SharedTokenSource, an acquisition in an uninterruptible region", () => {
  const pause = "10 millis"

  /** A store whose operations take some time. */
  const slow = ({ get, lease, put, remove }: TokenStore.Service) =>
    TokenStore.TokenStore.of({
      get: (key) => Effect.delay(get(key), pause),
      put: (...entry) => Effect.delay(put(...entry), pause),
      remove: (...entry) => Effect.delay(remove(...entry), pause),
      lease: (...options) =>
        Effect.map(
          Effect.delay(lease(...options), pause),
          Option.map(({ release, ...lease }) => ({
            ...lease,
            release: Effect.delay(release, pause)
          }))
        )
    })

  /** The token that is acquired by a region that is interrupted after this number of milliseconds. */
  const interrupted = (after: number, isRejected: boolean) => {
    const virtual = VirtualClock.make(undefined, settled)
    return Effect.gen(function*() {
      const { start, ...shared } = yield* fleet({ takes: 10 })
      const [store, done] = [slow(shared.store), yield* Ref.make("")]
      const other = yield* start({ store })
      const { get } = yield* start({
        store,
        credentials: Effect.delay(Effect.succeed(credentials), pause)
      })
      const first = yield* Effect.fork(other.get())
      // The other process has a token after 100 ms, and the lease before.
      yield* virtual.advance(isRejected ? 100 : 30)
      assert.strictEqual(Option.isSome(yield* Fiber.poll(first)), isRejected)
      const acquiring = yield* get(isRejected ? yield* Fiber.join(first) : undefined).pipe(
        Effect.flatMap((token) => Ref.set(done, valueOf(token))),
        Effect.uninterruptible,
        Effect.fork
      )
      yield* virtual.advance(after)
      yield* Fiber.interruptFork(acquiring)
      yield* virtual.advance("1 second")
      assert.isTrue(Option.isSome(yield* Fiber.poll(acquiring)))
      return yield* Ref.get(done)
    }).pipe(Effect.withClock(virtual.clock))
  }

  test.live.each(
    [["while another process has the lease", false, "token-1"], [
      "after a rejection",
      true,
      "token-2"
    ]] as const
  )(
    "an uninterruptible acquisition is completed at whatever moment it is interrupted, %s",
    function*([, isRejected, token]) {
      for (let after = 0; after < 120; after += 5) {
        assert.strictEqual(yield* interrupted(after, isRejected), token, `after ${after} ms`)
      }
    }
  )
})

describe("SharedTokenSource, a lease", () => {
  test("a lease that is lost is not extended again until the token has arrived", function*() {
    const { extensions, store } = yield* extending(() => Effect.succeed(false))
    const { start } = yield* fleet({ takes: 12_000 })
    const [outcome] = yield* timed((yield* start({ lease: "3 seconds", store })).get())
    // The second time, it asks whether it may store the token.
    deepStrictEqual([outcome, yield* extensions], ["token-1", 2])
  })

  /** Calls of a member to which the store grants the lease too late. */
  const grantedLate = Effect.gen(function*() {
    const { requests, start, store } = yield* fleet({ answer: firstFails(0) })
    const late = TokenStore.TokenStore.of({
      ...store,
      lease: (key, duration) =>
        Effect.zipLeft(store.lease(key, duration), Effect.sleep("1200 millis"))
    })
    return { outcome: yield* timed((yield* start({ store: late })).get()), requests, start }
  })

  test("a member waits for a lease no longer than storeTimeout", function*() {
    deepStrictEqual((yield* grantedLate).outcome, ["Transport", 1000])
  })

  test("a lease that is granted after storeTimeout is left to expire", function*() {
    const { requests, start } = yield* grantedLate
    const [outcome, took] = yield* timed((yield* start({ maxWait: "1 hour" })).get())
    deepStrictEqual([outcome, yield* requests], ["token-2", 2])
    assert.isAtMost(took, 5000)
  })

  test("a lease is released when the read of the store that follows it fails", function*() {
    const { requests, start, store } = yield* fleet()
    const [taken, reads] = yield* Effect.all([Ref.make(""), Ref.make(0)])
    const failing = TokenStore.TokenStore.of({
      ...store,
      lease: (key, duration) =>
        Effect.zipRight(Ref.set(taken, key), store.lease(key, duration)),
      get: (key) =>
        Effect.flatMap(
          Ref.updateAndGet(reads, (n) => n + 1),
          (number) =>
            number === 1
              ? store.get(key)
              : new TokenStore.TokenStoreError({ operation: "get", reason: "ECONNRESET" })
        )
    })
    assert.strictEqual(
      valueOf(yield* (yield* start({ store: failing, lease: "1 hour" })).get()),
      "token-1"
    )
    deepStrictEqual([yield* Ref.get(reads), yield* requests], [2, 1])
    assert.isTrue(Option.isSome(yield* store.lease(yield* Ref.get(taken), "1 minute")))
  })
})

describe("SharedTokenSource, while another process holds the lease", () => {
  test.each([{
    outcome: "returns a published token",
    publishes: true,
    token: "token-1",
    requests: 1
  }, {
    outcome: "sends a request when there is none",
    publishes: false,
    token: "token-2",
    requests: 2
  }])(
    "a member reads the store once more after maxWait: it $outcome",
    function*({ publishes, token, ...expected }) {
      const { publish, requests, start } = yield* leased(24 * hour)
      const { get } = yield* start({ maxWait: "1 second" })
      if (publishes) yield* Effect.fork(Effect.delay(publish, 900))
      // maxWait is drawn as 750 ms. The last two reads are at 748 ms and at 972 ms.
      deepStrictEqual(yield* shortestWaits(timed(get())), [token, 972])
      assert.strictEqual(yield* requests, expected.requests)
    }
  )

  test("a waiting member pauses a quarter longer after each read, up to 500 ms, with a jitter of 75 to 100 percent", function*() {
    const { start, store } = yield* leased(24 * hour)
    const reads = yield* Ref.make<ReadonlyArray<number>>([])
    const counting = TokenStore.TokenStore.of({
      ...store,
      get: (key) =>
        Effect.zipRight(
          Effect.flatMap(TestClock.currentTimeMillis, (now) =>
            Ref.update(reads, (all) => [...all, now])),
          store.get(key)
        )
    })
    const { get } = yield* start({ store: counting, maxWait: "3 seconds" })
    // The first number is drawn for maxWait, the others for the pauses.
    yield* Effect.withRandom(
      timed(get()),
      Random.fixed([1, 0, 0.5, 1, 0.25, 0.75, 0, 1, 0.5, 1, 0.25, 0.75, 0, 1])
    )
    const times = yield* Ref.get(reads)
    deepStrictEqual(
      times.slice(1).map((time, index) => time - (times[index] ?? 0)),
      [38, 55, 79, 80, 115, 115, 191, 209, 299, 303, 437, 375, 500, 500]
    )
  })

  it.effect("maxWait is measured by the monotonic clock even if the wall clock jumps", () => {
    const virtual = VirtualClock.make(undefined, settled)
    return Effect.gen(function*() {
      const { requests, start } = yield* leased(24 * hour)
      const { get } = yield* start()
      const acquiring = yield* Effect.fork(
        Effect.withRandom(outcomeOf(get()), Random.fixed([1]))
      )
      yield* settled
      assert.strictEqual(virtual.sleepers(), 1)
      for (
        const [jump, wait, sent] of [[hour, 30_000, 1], [-2 * hour, 14_900, 1], [
          0,
          600,
          2
        ]] as const
      ) {
        virtual.jump(jump)
        yield* virtual.advance(wait)
        assert.strictEqual(yield* requests, sent)
      }
      assert.strictEqual(yield* Fiber.join(acquiring), "token-2")
    }).pipe(Effect.withClock(virtual.clock))
  })
})
