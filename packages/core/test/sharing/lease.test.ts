import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { Deferred, Effect, Either, Exit, Fiber, Option, Ref } from "effect"
import { credentials, drive, endpoint, fullToken, member, settled, valuesOf, watched } from "../support/fleet.js"
import { outage, valueOf } from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

/** An in-memory store that calls `extend` to extend a lease; `number` counts the calls from 1. */
const extending = (extend: (lease: TokenStore.Lease, number: number) => TokenStore.Lease["extend"]) =>
  Effect.map(Effect.all([TokenStore.makeMemory, Ref.make(0)]), ([memory, extended]) => ({
    extensions: Ref.get(extended),
    store: TokenStore.TokenStore.of({
      ...memory,
      lease: (key, duration) =>
        Effect.map(
          memory.lease(key, duration),
          Option.map((lease) => ({
            ...lease,
            extend: Effect.flatMap(Ref.updateAndGet(extended, (n) => n + 1), (number) => extend(lease, number))
          }))
        )
    })
  }))

describe("SharedTokenSource, an acquisition", () => {
  test("that fails returns the error to its own caller only; the next member sends a new request", function*() {
    const { requests, source } = yield* endpoint({
      takes: 100,
      answer: (number) => number === 1 ? Effect.fail(outage) : fullToken(`token-${number}`)
    })
    const store = yield* TokenStore.makeMemory
    const members = yield* Effect.all(Effect.replicate(member(source, store), 3))
    const all = Effect.forEach(members, ({ acquire }) => Effect.either(acquire(Option.none())), {
      concurrency: "unbounded"
    })
    const { exit } = yield* drive(yield* Effect.fork(all))
    const tags = Exit.match(exit, { onFailure: () => [], onSuccess: (all) => all.map(Either.isRight) })
    deepStrictEqual([...tags].sort(), [false, true, true])
    assert.strictEqual(yield* requests, 2)
  })

  test("whose process has exited delays other members at most by the lease", function*() {
    const { requests, source } = yield* endpoint()
    const { puts, store } = yield* watched
    yield* (yield* member(source, store)).acquire(Option.none())
    const [key, entry] = (yield* puts)[0] ?? ["", ""]
    yield* store.remove(key, entry)
    // The holder of this lease never extends or releases it.
    assert.isTrue(Option.isSome(yield* store.lease(key, "5 seconds")))
    const { exit, took } = yield* drive(yield* Effect.fork((yield* member(source, store)).acquire(Option.none())))
    assert.isTrue(Exit.isSuccess(exit))
    assert.strictEqual(yield* requests, 2)
    assert.isAtLeast(took, 5000)
    assert.isAtMost(took, 5500, "the lease, plus one pause between two reads")
  })

  test("that takes longer than its lease extends it, and other members keep waiting", function*() {
    const { requests, source } = yield* endpoint({ takes: 12_000 })
    const store = yield* TokenStore.makeMemory
    const members = yield* Effect.all(Effect.replicate(member(source, store, { lease: "3 seconds" }), 3))
    const all = Effect.forEach(members, ({ acquire }) => acquire(Option.none()), { concurrency: "unbounded" })
    const { exit } = yield* drive(yield* Effect.fork(all))
    deepStrictEqual(valuesOf(exit), ["token-1"])
    assert.strictEqual(yield* requests, 1)
  })

  test("that takes longer than its lease keeps the lease when one extension fails", function*() {
    const { requests, source } = yield* endpoint({ takes: 12_000 })
    const { extensions, store } = yield* extending((lease, number) =>
      number === 2
        ? new TokenStore.TokenStoreError({ operation: "extend", reason: "ECONNRESET" })
        : lease.extend
    )
    const members = yield* Effect.all(Effect.replicate(member(source, store, { lease: "3 seconds" }), 3))
    const all = Effect.forEach(members, ({ acquire }) => acquire(Option.none()), { concurrency: "unbounded" })
    const { exit } = yield* drive(yield* Effect.fork(all))
    deepStrictEqual(valuesOf(exit), ["token-1"])
    assert.strictEqual(yield* requests, 1)
    assert.isAtLeast(yield* extensions, 10)
  })

  test("that takes longer than maxWait is no longer awaited: the waiting member sends its own request", function*() {
    const { requests, source } = yield* endpoint({
      answer: (number) => number === 1 ? Effect.never : fullToken(`token-${number}`)
    })
    const store = yield* TokenStore.makeMemory
    const stuck = yield* Effect.fork((yield* member(source, store)).acquire(Option.none()))
    yield* Effect.repeat(Effect.yieldNow(), { until: () => Effect.map(requests, (count) => count === 1) })
    const waiting = yield* member(source, store, { maxWait: "7 seconds" })
    const { exit, took } = yield* drive(yield* Effect.fork(waiting.acquire(Option.none())))
    deepStrictEqual(Exit.map(exit, valueOf), Exit.succeed("token-2"))
    assert.isAtLeast(took, 5250)
    assert.isAtMost(took, 7500)
    // The token that it acquired is shared.
    assert.strictEqual(valueOf(yield* (yield* member(source, store)).acquire(Option.none())), "token-2")
    assert.strictEqual(yield* requests, 2)
    yield* Fiber.interrupt(stuck)
  })

  test("that is interrupted releases its lease", function*() {
    const started = yield* Deferred.make<void>()
    const { requests, source } = yield* endpoint({
      answer: (number) =>
        number === 1
          ? Effect.zipRight(Deferred.succeed(started, undefined), Effect.never)
          : fullToken(`token-${number}`)
    })
    const store = yield* TokenStore.makeMemory
    const first = yield* Effect.fork((yield* member(source, store)).acquire(Option.none()))
    yield* Deferred.await(started)
    yield* Fiber.interrupt(first)
    assert.strictEqual(valueOf(yield* (yield* member(source, store)).acquire(Option.none())), "token-2")
    assert.strictEqual(yield* requests, 2)
  })
})

describe("SharedTokenSource, an acquisition in an uninterruptible region", () => {
  const pause = "10 millis"

  /** A store whose operations take some time. */
  const slow = Effect.map(TokenStore.makeMemory, (memory) =>
    TokenStore.TokenStore.of({
      get: (key) => Effect.delay(memory.get(key), pause),
      put: (...entry) => Effect.delay(memory.put(...entry), pause),
      remove: (...entry) => Effect.delay(memory.remove(...entry), pause),
      lease: (...lease) =>
        Effect.map(
          Effect.delay(memory.lease(...lease), pause),
          Option.map(({ release, ...lease }) => ({ ...lease, release: Effect.delay(release, pause) }))
        )
    }))

  /** Acquires a token, interrupted after this number of milliseconds. Returns the token if the region was completed. */
  const interrupted = (after: number, isRejected: boolean, isLeased: boolean) => {
    const virtual = VirtualClock.make(undefined, settled)
    return Effect.gen(function*() {
      const { source } = yield* endpoint({ takes: 10 })
      const [store, done] = yield* Effect.all([slow, Ref.make("")])
      const other = yield* member(source, store)
      const { acquire } = yield* member(source, store, {
        credentials: Effect.delay(Effect.succeed(credentials), pause)
      })
      const first = yield* Effect.fork(other.acquire(Option.none()))
      yield* virtual.advance(isLeased ? 30 : 100)
      const stored = yield* Fiber.poll(first)
      assert.strictEqual(Option.isSome(stored), !isLeased)
      const replacing = isRejected ? Option.some(yield* Fiber.join(first)) : Option.none()
      const acquiring = yield* acquire(replacing).pipe(
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

  it.live.each([
    { state: "while another process has the lease", isRejected: false, isLeased: true, token: "token-1" },
    { state: "after a rejection", isRejected: true, isLeased: false, token: "token-2" }
  ])(
    "is completed, at whatever moment it is interrupted, $state",
    ({ isLeased, isRejected, token }) =>
      Effect.gen(function*() {
        for (let after = 0; after < 120; after += 5) {
          assert.strictEqual(yield* interrupted(after, isRejected, isLeased), token, `after ${after} ms`)
        }
      })
  )
})

describe("SharedTokenSource, a lease", () => {
  test("that is lost is not extended again", function*() {
    const { source } = yield* endpoint({ takes: 12_000 })
    const { extensions, store } = yield* extending(() => Effect.succeed(false))
    const { acquire } = yield* member(source, store, { lease: "3 seconds" })
    const { exit } = yield* drive(yield* Effect.fork(acquire(Option.none())))
    assert.isTrue(Exit.isSuccess(exit))
    assert.strictEqual(yield* extensions, 1)
  })

  test("that is granted after storeTimeout is left to expire, and other members wait no longer than that", function*() {
    const { requests, source } = yield* endpoint({
      answer: (number) => number === 1 ? Effect.fail(outage) : fullToken(`token-${number}`)
    })
    const memory = yield* TokenStore.makeMemory
    const store = TokenStore.TokenStore.of({
      ...memory,
      lease: (key, duration) => Effect.zipLeft(memory.lease(key, duration), Effect.sleep("1200 millis"))
    })
    const first = yield* drive(yield* Effect.fork((yield* member(source, store)).acquire(Option.none())))
    deepStrictEqual([first.exit, first.took], [Exit.fail(outage), 1000])
    const { acquire } = yield* member(source, memory, { maxWait: "1 hour" })
    const second = yield* drive(yield* Effect.fork(acquire(Option.none())))
    deepStrictEqual(Exit.map(second.exit, valueOf), Exit.succeed("token-2"))
    assert.isAtMost(second.took, 5000)
    assert.strictEqual(yield* requests, 2)
  })

  test("is released when the read of the store that follows it fails", function*() {
    const { requests, source } = yield* endpoint()
    const store = yield* TokenStore.makeMemory
    const taken = yield* Ref.make("")
    const reads = yield* Ref.make(0)
    const failing = TokenStore.TokenStore.of({
      ...store,
      lease: (key, duration) => Effect.zipRight(Ref.set(taken, key), store.lease(key, duration)),
      get: (key) =>
        Effect.flatMap(
          Ref.updateAndGet(reads, (n) => n + 1),
          (number) =>
            number === 1 ? store.get(key) : new TokenStore.TokenStoreError({ operation: "get", reason: "ECONNRESET" })
        )
    })
    const { acquire } = yield* member(source, failing, { lease: "1 hour" })
    assert.strictEqual(valueOf(yield* acquire(Option.none())), "token-1")
    assert.strictEqual(yield* Ref.get(reads), 2)
    assert.strictEqual(yield* requests, 1)
    assert.isTrue(Option.isSome(yield* store.lease(yield* Ref.get(taken), "1 minute")))
  })
})
