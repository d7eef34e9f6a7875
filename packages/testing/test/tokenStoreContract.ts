import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { type Duration, Effect, type Layer, Option } from "effect"
import type { LiveSteps } from "./effectLine.js"

let used = 0

/** A key that no other test uses. */
const newKey = Effect.sync(() => `contract:${process.pid}:${Date.now()}:${used++}`)

/** Long enough for a test to read an entry, and short enough to wait for its expiry. */
const brief = "150 millis"

/** Polls until the condition holds. If it never does, the test fails by its timeout. */
const until = <A, E>(effect: Effect.Effect<A, E>, holds: (value: A) => boolean): Effect.Effect<A, E> =>
  Effect.flatMap(
    effect,
    (value) => holds(value) ? Effect.succeed(value) : Effect.zipRight(Effect.sleep("10 millis"), until(effect, holds))
  )

const leased = (store: TokenStore.Service, key: string, duration: Duration.DurationInput = "1 minute") =>
  Effect.map(store.lease(key, duration), Option.getOrThrowWith(() => new Error("another caller holds the lease")))

/**
 * Tests what every store must do. The tests of each implementation call this with a layer of a running store. They use
 * real time, since stores in other processes do.
 */
export const tokenStoreContract = <E>(name: string, layer: Layer.Layer<TokenStore.TokenStore, E>) => {
  describe(`${name} fulfils the TokenStore contract`, () => {
    const test = (title: string, steps: (store: TokenStore.Service, key: string) => LiveSteps) =>
      it.scopedLive(title, () =>
        Effect.gen(function*() {
          const [store, key] = [yield* TokenStore.TokenStore, yield* newKey]
          yield* Effect.gen(() => steps(store, key))
        }).pipe(Effect.provide(layer)))

    test("returns None for a key that was never set", function*(store, key) {
      deepStrictEqual([yield* store.get(key), yield* store.remove(key, "entry")], [Option.none(), false])
    })

    test("returns the last entry that was put", function*(store, key) {
      yield* store.put(key, "one", "1 minute")
      deepStrictEqual(yield* store.get(key), Option.some("one"))
      yield* store.put(key, "two", "1 minute")
      deepStrictEqual([yield* store.get(key), yield* store.get(`${key}:other`)], [Option.some("two"), Option.none()])
    })

    test("returns entries unchanged", function*(store, key) {
      for (const entry of ["", " ", "ä €\u0000\r\n\"'", "{}", "0", "x".repeat(64 * 1024)]) {
        yield* store.put(key, entry, "1 minute")
        deepStrictEqual(yield* store.get(key), Option.some(entry))
      }
    })

    test("removes an entry at the end of its lifetime, and a new entry has its own lifetime", function*(store, key) {
      yield* store.put(key, "one", brief)
      yield* store.put(`${key}:control`, "one", "1 minute")
      yield* until(store.get(key), Option.isNone)
      deepStrictEqual(yield* store.get(`${key}:control`), Option.some("one"))
      assert.isFalse(yield* store.remove(key, "one"))
      yield* store.put(key, "two", "1 minute")
      deepStrictEqual(yield* store.get(key), Option.some("two"))
    })

    test("removes an entry only if it was not replaced", function*(store, key) {
      yield* store.put(`${key}:other`, "one", "1 minute")
      yield* store.put(key, "one", "1 minute")
      deepStrictEqual([yield* store.remove(key, "another"), yield* store.get(key)], [false, Option.some("one")])
      deepStrictEqual([yield* store.remove(key, "one"), yield* store.get(key)], [true, Option.none()])
      assert.isFalse(yield* store.remove(key, "one"))
      deepStrictEqual(yield* store.get(`${key}:other`), Option.some("one"))
    })

    test("removes an entry for only one of many concurrent callers", function*(store, key) {
      yield* store.put(key, "one", "1 minute")
      const removed = yield* Effect.all(Effect.replicate(store.remove(key, "one"), 50), { concurrency: "unbounded" })
      assert.strictEqual(removed.filter((was) => was).length, 1)
    })

    test("grants a lease to one caller, until it is released", function*(store, key) {
      const lease = yield* leased(store, key)
      assert.isTrue(Option.isNone(yield* store.lease(key, "1 minute")))
      assert.isTrue(Option.isSome(yield* store.lease(`${key}:other`, "1 minute")), "the lease of another key")
      yield* lease.release
      assert.isTrue(Option.isSome(yield* store.lease(key, "1 minute")))
    })

    test("grants a lease to only one of many concurrent callers", function*(store, key) {
      const leases = yield* Effect.all(Effect.replicate(store.lease(key, "1 minute"), 50), { concurrency: "unbounded" })
      assert.strictEqual(leases.filter(Option.isSome).length, 1)
    })

    test("ends a lease after its duration; its holder cannot extend it or release the next", function*(store, key) {
      const lost = yield* leased(store, key, brief)
      const held = yield* until(store.lease(key, "1 minute"), Option.isSome)
      assert.isFalse(yield* lost.extend)
      yield* lost.release
      assert.isTrue(Option.isNone(yield* store.lease(key, "1 minute")))
      assert.isTrue(yield* Option.getOrThrow(held).extend)
    })

    test("ends an entry and a lease with a negative duration at once", function*(store, key) {
      yield* store.put(key, "one", "1 minute")
      yield* store.put(key, "two", -1000)
      yield* until(store.get(key), Option.isNone)
      const lost = yield* leased(store, key, -1000)
      yield* until(store.lease(key, "1 minute"), Option.isSome)
      assert.isFalse(yield* lost.extend)
    })

    test("does not extend a lease that has ended, even if no other caller holds it", function*(store, key) {
      const lease = yield* leased(store, key, brief)
      yield* until(lease.extend.pipe(Effect.delay("200 millis")), (held) => !held)
      assert.isTrue(Option.isSome(yield* store.lease(key, "1 minute")))
    })

    test("keeps an extended lease longer than another of the same age", function*(store, key) {
      const duration = 600
      /** More than a store's clock may deviate within this time, in milliseconds. */
      const margin = 50
      // Results count only if they arrive before the lease could have ended. On a slow machine, the test tries again.
      for (let round = 0;; round++) {
        const [extended, control] = [`${key}:${round}`, `${key}:${round}:control`]
        const takenAt = performance.now()
        const lease = yield* leased(store, extended, duration)
        yield* leased(store, control, duration)
        yield* Effect.sleep(duration / 2)
        const extendedAt = performance.now()
        const isHeld = yield* lease.extend
        if (performance.now() >= takenAt + duration - margin) continue
        assert.isTrue(isHeld)
        yield* until(store.lease(control, "1 minute"), Option.isSome)
        const isTaken = Option.isSome(yield* store.lease(extended, "1 minute"))
        if (performance.now() >= extendedAt + duration - margin) continue
        assert.isFalse(isTaken)
        break
      }
    })

    test("keeps leases and entries of one key separate", function*(store, key) {
      const lease = yield* leased(store, key)
      deepStrictEqual(yield* store.get(key), Option.none())
      yield* store.put(key, "one", "1 minute")
      assert.isTrue(Option.isNone(yield* store.lease(key, "1 minute")))
      yield* lease.release
      deepStrictEqual(yield* store.get(key), Option.some("one"))
      yield* leased(store, key)
      assert.isTrue(yield* store.remove(key, "one"))
      assert.isTrue(Option.isNone(yield* store.lease(key, "1 minute")))
    })
  })
}
