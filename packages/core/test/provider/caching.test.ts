import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { Effect, Exit, Fiber, Layer, Option, TestClock } from "effect"
import { answering, layer as scripted, ScriptedSource, settle, token, valueOf } from "../support/scriptedSource.js"
import { test } from "../support/test.js"

const Scripted = Layer.provideMerge(AccessTokenProvider.layer(), scripted)

/** A provider whose source returns `token-1`, `token-2`, …, each valid for 60 minutes. */
const numbered = Effect.map(
  answering((n) => token(`token-${n}`)),
  ({ calls, layer }) => ({ calls, layer: Layer.provide(AccessTokenProvider.layer(), layer) })
)

describe("AccessTokenProvider", () => {
  describe("caches one token", () => {
    test("caches a token for 59 minutes and renews it after 60", function*() {
      const { calls, layer } = yield* numbered
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const first = yield* provider.get
        yield* TestClock.adjust("54 minutes")
        assert.strictEqual(yield* provider.get, first)
        assert.strictEqual(yield* calls, 1)
        yield* TestClock.adjust("5 minutes")
        assert.strictEqual(
          valueOf(yield* provider.get),
          "token-1",
          "the first token after 59 minutes, without waiting"
        )
        yield* TestClock.adjust("1 minutes")
        const renewed = yield* provider.get
        assert.strictEqual(valueOf(renewed), "token-2")
        assert.strictEqual(yield* calls, 2)
      }).pipe(Effect.provide(layer))
    })

    test("an idle provider sends no request until the first call after expiry", function*() {
      const { calls, layer } = yield* numbered
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        yield* provider.get
        yield* TestClock.adjust("3 hours")
        assert.strictEqual(yield* calls, 1, "no request without a call")
        assert.strictEqual(valueOf(yield* provider.get), "token-2")
      }).pipe(Effect.provide(layer))
    })

    test("current returns None, the cached token, or TokenExpiredError, and sends no request", function*() {
      const { calls, layer } = yield* numbered
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        deepStrictEqual(yield* provider.current, Option.none())
        const cached = yield* provider.get
        deepStrictEqual(yield* provider.current, Option.some(cached))
        yield* TestClock.adjust("60 minutes")
        const error = yield* Effect.flip(provider.current)
        assert.instanceOf(error, AccessTokenError.TokenExpiredError)
        assert.strictEqual(error.reason, "Elapsed")
        assert.strictEqual(error.expiredAt.epochMillis, cached.expiresAt.epochMillis)
        assert.strictEqual(error.checkedAt.epochMillis, cached.expiresAt.epochMillis)
        assert.strictEqual(yield* calls, 1)
        const caught = yield* provider.current.pipe(
          Effect.catchTag("TokenExpiredError", () => Effect.succeed("caught"))
        )
        assert.strictEqual(caught, "caught")
      }).pipe(Effect.provide(layer))
    })
  })

  describe("shares one acquisition", () => {
    it.effect("10 000 concurrent first callers make one request and get the same token", () =>
      Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const source = yield* ScriptedSource
        const callers = yield* Effect.fork(
          Effect.all(Array.from({ length: 10_000 }, () => provider.get), { concurrency: "unbounded" })
        )
        const call = yield* source.next
        yield* settle
        yield* call.complete(token("shared"))
        const tokens = yield* Fiber.join(callers)
        assert.strictEqual(tokens.length, 10_000)
        assert.strictEqual(new Set(tokens).size, 1)
        assert.strictEqual(yield* source.calls, 1)
      }).pipe(Effect.provide(Scripted)))

    it.effect("refresh acquires a new token immediately, or joins the in-flight acquisition", () =>
      Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const source = yield* ScriptedSource
        const getting = yield* Effect.fork(provider.get)
        const first = yield* source.next
        const joining = yield* Effect.fork(provider.refresh)
        yield* settle
        yield* first.complete(token("one"))
        assert.strictEqual(valueOf(yield* Fiber.join(getting)), "one")
        assert.strictEqual(valueOf(yield* Fiber.join(joining)), "one")
        const refreshing = yield* Effect.fork(provider.refresh)
        const second = yield* source.next
        assert.isTrue(Option.exists(second.replacing, (token) => valueOf(token) === "one"))
        assert.strictEqual(valueOf(yield* provider.get), "one", "get returns the cached token during the refresh")
        yield* second.complete(token("two", "61 minutes"))
        assert.strictEqual(valueOf(yield* Fiber.join(refreshing)), "two")
        assert.strictEqual(valueOf(yield* provider.get), "two")
        assert.strictEqual(yield* source.calls, 2)
      }).pipe(Effect.provide(Scripted)))
  })

  describe("drops a rejected token", () => {
    it.effect("invalidate compares tokens by value, and the source receives the rejected token", () =>
      Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const source = yield* ScriptedSource
        const getting = yield* Effect.fork(provider.get)
        yield* Effect.flatMap(source.next, (call) => {
          assert.isTrue(Option.isNone(call.replacing))
          return call.complete(token("one"))
        })
        const one = yield* Fiber.join(getting)
        yield* provider.invalidate(yield* token("another"))
        assert.strictEqual(yield* provider.get, one, "the rejection of another token has no effect")
        yield* provider.invalidate(yield* token("one"))
        deepStrictEqual(yield* provider.current, Option.none())
        const again = yield* Effect.fork(provider.get)
        const call = yield* source.next
        assert.isTrue(Option.exists(call.replacing, (token) => valueOf(token) === "one"))
        yield* call.complete(token("two"))
        const two = yield* Fiber.join(again)
        yield* provider.invalidate(one)
        assert.strictEqual(yield* provider.get, two, "a late rejection of the old token does not drop the new one")
      }).pipe(Effect.provide(Scripted)))
  })

  describe("layerTest", () => {
    test("returns a fixed token", function*() {
      const fixed = yield* token("fixed")
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        assert.strictEqual(yield* provider.get, fixed)
        assert.strictEqual(yield* provider.refresh, fixed)
        deepStrictEqual(yield* provider.current, Option.some(fixed))
        assert.strictEqual((yield* provider.status).state, "Fresh")
        yield* provider.invalidate(fixed)
        deepStrictEqual(yield* provider.current, Option.none())
        assert.strictEqual((yield* provider.status).state, "Empty")
      }).pipe(Effect.provide(AccessTokenProvider.layerTest(fixed)))
    })

    test("runs an effect for each get and refresh, and fails with its error", function*() {
      let runs = 0
      const failing = Effect.suspend(() => {
        runs++
        return runs < 3
          ? token(`run-${runs}`)
          : Effect.fail(new AccessTokenError.TokenRequestError({ reason: "Timeout", attempts: 1 }))
      })
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        deepStrictEqual(yield* provider.current, Option.none())
        assert.strictEqual(valueOf(yield* provider.get), "run-1")
        assert.strictEqual(valueOf(yield* provider.refresh), "run-2")
        assert.isTrue(Exit.isFailure(yield* Effect.exit(provider.get)))
        assert.strictEqual(runs, 3)
      }).pipe(Effect.provide(AccessTokenProvider.layerTest(failing)))
    })
  })
})
