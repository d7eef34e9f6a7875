import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { type Duration, Effect, type Layer, Option } from "effect"

let used = 0

/** A key that no other test has. */
const newKey = Effect.sync(() => `contract:${process.pid}:${Date.now()}:${used++}`)

/** Long enough to be there while a test looks, short enough to be waited for. */
const brief = "150 millis"

/** Looks again and again until it is so; a store that never gets there fails the test by its time limit. */
const until = <A, E>(effect: Effect.Effect<A, E>, isSo: (value: A) => boolean): Effect.Effect<A, E> =>
  Effect.flatMap(
    effect,
    (value) => isSo(value) ? Effect.succeed(value) : Effect.zipRight(Effect.sleep("10 millis"), until(effect, isSo))
  )

const leased = (store: TokenStore.Service, key: string, duration: Duration.DurationInput = "1 minute") =>
  Effect.flatMap(store.lease(key, duration), Effect.orDieWith(() => new Error("somebody else holds the lease")))

/**
 * What every store must do. Each implementation's tests call this, with a layer of a store that runs; in real time, which
 * the stores of other processes have too.
 */
export const tokenStoreContract = <E>(name: string, layer: Layer.Layer<TokenStore.TokenStore, E>) => {
  describe(`${name} keeps the contract of TokenStore`, () => {
    const test = (
      title: string,
      body: (store: TokenStore.Service, key: string) => Effect.Effect<void, TokenStore.TokenStoreError>
    ) =>
      it.live(title, () =>
        Effect.gen(function*() {
          yield* body(yield* TokenStore.TokenStore, yield* newKey)
        }).pipe(Effect.provide(layer)))

    test("has nothing under a key that was never set", (store, key) =>
      Effect.gen(function*() {
        deepStrictEqual(yield* store.get(key), Option.none())
        assert.isFalse(yield* store.remove(key, "entry"))
      }))

    test("gives the last entry that was put", (store, key) =>
      Effect.gen(function*() {
        yield* store.put(key, "one", "1 minute")
        deepStrictEqual(yield* store.get(key), Option.some("one"))
        yield* store.put(key, "two", "1 minute")
        deepStrictEqual(yield* store.get(key), Option.some("two"))
        deepStrictEqual(yield* store.get(`${key}:other`), Option.none())
      }))

    test(
      "gives back what it was given, letter by letter",
      (store, key) =>
        Effect.forEach(
          ["", " ", "ä €\u0000\r\n\"'", "{}", "0", "x".repeat(64 * 1024)],
          (entry) =>
            Effect.gen(function*() {
              yield* store.put(key, entry, "1 minute")
              deepStrictEqual(yield* store.get(key), Option.some(entry))
            }),
          { discard: true }
        )
    )

    test(
      "forgets an entry when its life is over, and a new one has a life of its own",
      (store, key) =>
        Effect.gen(function*() {
          yield* store.put(key, "one", brief)
          yield* store.put(`${key}:control`, "one", "1 minute")
          yield* until(store.get(key), Option.isNone)
          deepStrictEqual(yield* store.get(`${key}:control`), Option.some("one"))
          assert.isFalse(yield* store.remove(key, "one"))
          yield* store.put(key, "two", "1 minute")
          deepStrictEqual(yield* store.get(key), Option.some("two"))
        })
    )

    test("removes an entry only if it is still that one", (store, key) =>
      Effect.gen(function*() {
        yield* store.put(`${key}:other`, "one", "1 minute")
        yield* store.put(key, "one", "1 minute")
        assert.isFalse(yield* store.remove(key, "another"))
        deepStrictEqual(yield* store.get(key), Option.some("one"))
        assert.isTrue(yield* store.remove(key, "one"))
        deepStrictEqual(yield* store.get(key), Option.none())
        assert.isFalse(yield* store.remove(key, "one"))
        deepStrictEqual(yield* store.get(`${key}:other`), Option.some("one"))
      }))

    test("of many who remove the same entry at once, one does", (store, key) =>
      Effect.gen(function*() {
        yield* store.put(key, "one", "1 minute")
        const removed = yield* Effect.all(Effect.replicate(store.remove(key, "one"), 50), { concurrency: "unbounded" })
        assert.strictEqual(removed.filter((was) => was).length, 1)
      }))

    test("gives a lease to one, until it is released", (store, key) =>
      Effect.gen(function*() {
        const lease = yield* leased(store, key)
        assert.isTrue(Option.isNone(yield* store.lease(key, "1 minute")))
        assert.isTrue(Option.isSome(yield* store.lease(`${key}:other`, "1 minute")), "of another key")
        yield* lease.release
        assert.isTrue(Option.isSome(yield* store.lease(key, "1 minute")))
      }))

    test("of many who want a lease at once, one gets it", (store, key) =>
      Effect.gen(function*() {
        const leases = yield* Effect.all(Effect.replicate(store.lease(key, "1 minute"), 50), {
          concurrency: "unbounded"
        })
        assert.strictEqual(leases.filter(Option.isSome).length, 1)
      }))

    test(
      "ends a lease by itself; who lost it can neither extend it nor release another's",
      (store, key) =>
        Effect.gen(function*() {
          const lost = yield* leased(store, key, brief)
          const held = yield* until(store.lease(key, "1 minute"), Option.isSome)
          assert.isFalse(yield* lost.extend)
          yield* lost.release
          assert.isTrue(Option.isNone(yield* store.lease(key, "1 minute")))
          assert.isTrue(yield* Option.getOrThrow(held).extend)
        })
    )

    test("a lease that is over and nobody's cannot be extended", (store, key) =>
      Effect.gen(function*() {
        const lease = yield* leased(store, key, brief)
        yield* until(lease.extend.pipe(Effect.delay("200 millis")), (held) => !held)
        assert.isTrue(Option.isSome(yield* store.lease(key, "1 minute")))
      }))

    test("a lease that is extended outlives one of the same age that is not", (store, key) => {
      const life = 600
      /** No store's clock is off by more, in so short a time. */
      const margin = 50
      // Only what was seen before a lease could have ended counts: where the machine stood still meanwhile, once more.
      const seen = (round: number): Effect.Effect<void, TokenStore.TokenStoreError> =>
        Effect.gen(function*() {
          const [extended, control] = [`${key}:${round}`, `${key}:${round}:control`]
          const taken = performance.now()
          yield* leased(store, control, life)
          const lease = yield* leased(store, extended, life)
          yield* Effect.sleep(life / 2)
          const asked = performance.now()
          const isHeld = yield* lease.extend
          if (performance.now() >= taken + life - margin) return yield* seen(round + 1)
          assert.isTrue(isHeld)
          yield* until(store.lease(control, "1 minute"), Option.isSome)
          const isTaken = Option.isSome(yield* store.lease(extended, "1 minute"))
          if (performance.now() >= asked + life - margin) return yield* seen(round + 1)
          assert.isFalse(isTaken)
        })
      return seen(0)
    })

    test("leases and entries of one key do not mix", (store, key) =>
      Effect.gen(function*() {
        const lease = yield* leased(store, key)
        deepStrictEqual(yield* store.get(key), Option.none())
        yield* store.put(key, "one", "1 minute")
        assert.isTrue(Option.isNone(yield* store.lease(key, "1 minute")))
        yield* lease.release
        deepStrictEqual(yield* store.get(key), Option.some("one"))
        yield* leased(store, key)
        assert.isTrue(yield* store.remove(key, "one"))
        assert.isTrue(Option.isNone(yield* store.lease(key, "1 minute")))
      }))
  })
}
