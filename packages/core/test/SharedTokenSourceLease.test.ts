import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { Deferred, Effect, Exit, Fiber, Option, Ref, TestClock } from "effect"
import { drive, endpoint, fullToken, member, outage, settled, valueOf, valuesOf, watched } from "./support/fleet.js"

describe("SharedTokenSource, an acquisition that does not go well", () => {
  it.effect("fails for those who asked for it; the next one asks again", () =>
    Effect.gen(function*() {
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
      const tags = Exit.match(exit, { onFailure: () => [], onSuccess: (all) => all.map(({ _tag }) => _tag) })
      deepStrictEqual([...tags].sort(), ["Left", "Right", "Right"])
      assert.strictEqual(yield* requests, 2)
    }))

  it.effect("whose process died delays the others at most by the lease", () =>
    Effect.gen(function*() {
      const { requests, source } = yield* endpoint()
      const { puts, store } = yield* watched
      yield* (yield* member(source, store)).acquire(Option.none())
      const [key, entry] = (yield* puts)[0] ?? ["", ""]
      yield* store.remove(key, entry)
      // Somebody takes the lease, and is never heard of again.
      assert.isTrue(Option.isSome(yield* store.lease(key, "5 seconds")))
      const { exit, took } = yield* drive(yield* Effect.fork((yield* member(source, store)).acquire(Option.none())))
      assert.isTrue(Exit.isSuccess(exit))
      assert.strictEqual(yield* requests, 2)
      assert.isAtLeast(took, 5000)
      assert.isAtMost(took, 5500, "the lease, and one pause between two looks")
    }))

  it.effect("that takes longer than the lease keeps it: the others go on waiting", () =>
    Effect.gen(function*() {
      const { requests, source } = yield* endpoint({ takes: 12_000 })
      const store = yield* TokenStore.makeMemory
      const members = yield* Effect.all(Effect.replicate(member(source, store, { lease: "3 seconds" }), 3))
      const all = Effect.forEach(members, ({ acquire }) => acquire(Option.none()), { concurrency: "unbounded" })
      const { exit } = yield* drive(yield* Effect.fork(all))
      deepStrictEqual(valuesOf(exit), ["token-1"])
      assert.strictEqual(yield* requests, 1)
    }))

  it.effect("that takes longer than the lease keeps it also when it could not be extended once", () =>
    Effect.gen(function*() {
      const { requests, source } = yield* endpoint({ takes: 12_000 })
      const memory = yield* TokenStore.makeMemory
      const extended = yield* Ref.make(0)
      const store = TokenStore.TokenStore.of({
        ...memory,
        lease: (key, duration) =>
          Effect.map(
            memory.lease(key, duration),
            Option.map((lease) => ({
              ...lease,
              extend: Effect.flatMap(
                Ref.updateAndGet(extended, (n) => n + 1),
                (number) =>
                  number === 2
                    ? new TokenStore.TokenStoreError({ operation: "extend", reason: "ECONNRESET" })
                    : lease.extend
              )
            }))
          )
      })
      const members = yield* Effect.all(Effect.replicate(member(source, store, { lease: "3 seconds" }), 3))
      const all = Effect.forEach(members, ({ acquire }) => acquire(Option.none()), { concurrency: "unbounded" })
      const { exit } = yield* drive(yield* Effect.fork(all))
      deepStrictEqual(valuesOf(exit), ["token-1"])
      assert.strictEqual(yield* requests, 1)
      assert.isAtLeast(yield* Ref.get(extended), 10)
    }))

  it.effect("that takes longer than their patience is not waited for", () =>
    Effect.gen(function*() {
      const { requests, source } = yield* endpoint({
        answer: (number) => number === 1 ? Effect.never : fullToken(`token-${number}`)
      })
      const store = yield* TokenStore.makeMemory
      const stuck = yield* Effect.fork((yield* member(source, store)).acquire(Option.none()))
      yield* Effect.repeat(Effect.yieldNow(), { until: () => Effect.map(requests, (count) => count === 1) })
      const patient = yield* member(source, store, { patience: "7 seconds" })
      const { exit, took } = yield* drive(yield* Effect.fork(patient.acquire(Option.none())))
      deepStrictEqual(Exit.map(exit, valueOf), Exit.succeed("token-2"))
      assert.isAtLeast(took, 5250)
      assert.isAtMost(took, 7500)
      // What it got then is everybody's.
      assert.strictEqual(valueOf(yield* (yield* member(source, store)).acquire(Option.none())), "token-2")
      assert.strictEqual(yield* requests, 2)
      yield* Fiber.interrupt(stuck)
    }))

  it.effect("that is interrupted gives its lease back", () =>
    Effect.gen(function*() {
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
    }))
})

describe("SharedTokenSource, a lease", () => {
  /** A store whose lease is taken at once; what comes after that, before it is told, is the test's. */
  const telling = (told: Effect.Effect<void>) =>
    Effect.gen(function*() {
      const memory = yield* TokenStore.makeMemory
      const taken = yield* Deferred.make<string>()
      const store = TokenStore.TokenStore.of({
        ...memory,
        lease: (key, duration) =>
          memory.lease(key, duration).pipe(
            Effect.tap(() => Deferred.succeed(taken, key)),
            Effect.zipLeft(told)
          )
      })
      const isFree = Effect.flatMap(Deferred.await(taken), (key) => memory.lease(key, "1 minute")).pipe(
        Effect.tap(Option.match({ onNone: () => Effect.void, onSome: ({ release }) => release })),
        Effect.map(Option.isSome)
      )
      return { isFree, store, taken: Deferred.await(taken) }
    })

  it.effect("that was taken as nobody waited for it any more, having been interrupted, is given back", () =>
    Effect.gen(function*() {
      const { requests, source } = yield* endpoint()
      const answers = yield* Deferred.make<void>()
      const { isFree, store, taken } = yield* telling(Deferred.await(answers))
      const acquiring = yield* Effect.fork((yield* member(source, store, { lease: "1 hour" })).acquire(Option.none()))
      yield* taken
      yield* Fiber.interrupt(acquiring)
      yield* settled
      assert.isFalse(yield* isFree, "its answer is under way")
      yield* Deferred.succeed(answers, undefined)
      yield* settled
      assert.isTrue(yield* isFree)
      assert.strictEqual(yield* requests, 0)
    }))

  it.effect.each(
    [
      ["is under way for longer than the storeTimeout", Effect.sleep("1200 millis")],
      ["is so too and cannot be interrupted", Effect.uninterruptible(Effect.sleep("1200 millis"))]
    ] as const
  )("whose answer %s is given back when it comes", ([, told]) =>
    Effect.gen(function*() {
      const { requests, source } = yield* endpoint()
      const { isFree, store } = yield* telling(told)
      const { acquire } = yield* member(source, store, { lease: "1 hour" })
      const { exit, took } = yield* drive(yield* Effect.fork(acquire(Option.none())))
      deepStrictEqual(Exit.map(exit, valueOf), Exit.succeed("token-1"))
      assert.strictEqual(took, 1000)
      yield* TestClock.adjust("199 millis")
      yield* settled
      assert.isFalse(yield* isFree, "its answer is under way")
      yield* TestClock.adjust("1 millis")
      yield* settled
      assert.isTrue(yield* isFree)
      assert.strictEqual(yield* requests, 1)
    }))

  it.effect("is given back when the store fails at the look that follows it", () =>
    Effect.gen(function*() {
      const { requests, source } = yield* endpoint()
      const { isFree, store } = yield* telling(Effect.void)
      const looks = yield* Ref.make(0)
      const failing = TokenStore.TokenStore.of({
        ...store,
        get: (key) =>
          Effect.flatMap(
            Ref.updateAndGet(looks, (n) => n + 1),
            (number) =>
              number === 1 ? store.get(key) : new TokenStore.TokenStoreError({ operation: "get", reason: "ECONNRESET" })
          )
      })
      const { acquire } = yield* member(source, failing, { lease: "1 hour" })
      assert.strictEqual(valueOf(yield* acquire(Option.none())), "token-1")
      assert.strictEqual(yield* Ref.get(looks), 2)
      assert.strictEqual(yield* requests, 1)
      assert.isTrue(yield* isFree)
    }))
})
