import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { Effect, Fiber, Option } from "effect"
import { heldTest, hour, numberedTest, outcomeOf, settle, token, valueOf } from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

describe("AccessTokenProvider", () => {
  describe("caches one token", () => {
    numberedTest("caches a token for 59 minutes and renews it after 60", function*({ after }) {
      yield* after(0, { gets: "token-1", calls: 1 })
      yield* after("54 minutes", { gets: "token-1", calls: 1 })
      yield* after("5 minutes", { state: "RefreshSoon", gets: "token-1" })
      yield* after("1 minutes", { gets: "token-2", calls: 2 })
    })

    numberedTest("an idle provider sends no request until the first call after expiry", function*({ after }) {
      yield* after(0, { gets: "token-1" })
      yield* after("3 hours", { calls: 1 })
      yield* after(0, { gets: "token-2" })
    })

    numberedTest(
      "current returns None, the cached token, or TokenExpiredError, and sends no request",
      function*({ calls, provider, virtual }) {
        deepStrictEqual(yield* provider.current, Option.none())
        const cached = yield* provider.get
        deepStrictEqual(yield* provider.current, Option.some(cached))
        yield* virtual.advance("60 minutes")
        const error = yield* Effect.flip(provider.current)
        assert.instanceOf(error, AccessTokenError.TokenExpiredError)
        assert.strictEqual(error.reason, "Elapsed")
        assert.strictEqual(error.expiredAt.epochMillis, cached.expiresAt.epochMillis)
        assert.strictEqual(error.checkedAt.epochMillis, cached.expiresAt.epochMillis)
        assert.strictEqual(yield* calls, 1)
      }
    )
  })

  describe("shares one acquisition", () => {
    heldTest(
      "10 000 concurrent first callers make one request and get the same token",
      function*({ calls, callers, complete }) {
        const all = yield* callers(10_000)
        yield* complete(token("shared"))
        const tokens = yield* Fiber.join(all)
        deepStrictEqual([tokens.length, ...new Set(tokens)], [10_000, "shared"])
        assert.strictEqual(yield* calls, 1)
      }
    )

    heldTest(
      "refresh acquires a new token immediately, or joins the in-flight acquisition",
      function*({ after, callers, complete, provider }) {
        const getting = yield* callers(1)
        const joining = yield* Effect.fork(outcomeOf(provider.refresh))
        yield* settle
        assert.isUndefined(yield* complete(token("one")))
        deepStrictEqual([...yield* Fiber.join(getting), yield* Fiber.join(joining)], ["one", "one"])
        const refreshing = yield* Effect.fork(outcomeOf(provider.refresh))
        yield* settle
        yield* after(0, { gets: "one", calls: 2 })
        assert.strictEqual(yield* complete(token("two", "61 minutes")), "one")
        assert.strictEqual(yield* Fiber.join(refreshing), "two")
        yield* after(0, { gets: "two", calls: 2 })
      }
    )
  })

  describe("drops a rejected token", () => {
    heldTest(
      "invalidate compares tokens by value, and the source receives the rejected token",
      function*({ after, callers, complete, provider }) {
        yield* callers(1)
        assert.isUndefined(yield* complete(token("one")))
        const one = yield* provider.get
        yield* provider.invalidate(yield* token("another"))
        assert.strictEqual(yield* provider.get, one, "the rejection of another token has no effect")
        yield* provider.invalidate(yield* token("one"))
        deepStrictEqual(yield* provider.current, Option.none())
        yield* callers(1)
        assert.strictEqual(yield* complete(token("two")), "one")
        yield* provider.invalidate(one)
        yield* after(0, { gets: "two" })
      }
    )
  })

  describe("layerTest", () => {
    const none = { expiresAt: Option.none(), acquiring: false, cooldown: Option.none() }

    test("returns a fixed token, also after it expired, until it is invalidated", function*() {
      const virtual = VirtualClock.make()
      const fixed = yield* Effect.withClock(token("fixed"), virtual.clock)
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const status = { ...none, expiresAt: Option.some(fixed.expiresAt) }
        for (const call of [provider.get, provider.refresh]) assert.strictEqual(yield* call, fixed)
        deepStrictEqual(yield* provider.current, Option.some(fixed))
        deepStrictEqual(yield* provider.status, { ...status, state: "Fresh" })
        yield* virtual.advance(hour)
        deepStrictEqual(yield* provider.status, { ...status, state: "Expired" })
        assert.strictEqual((yield* Effect.flip(provider.current)).reason, "Elapsed")
        yield* provider.invalidate(fixed)
        deepStrictEqual(yield* provider.current, Option.none())
        deepStrictEqual(yield* provider.status, { ...none, state: "Empty" })
      }).pipe(Effect.provide(AccessTokenProvider.layerTest(fixed)), Effect.withClock(virtual.clock))
    })

    test("runs an effect for each get and refresh, fails with its error, and caches its token until it is invalidated", function*() {
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
        deepStrictEqual(yield* provider.status, { ...none, state: "Empty" })
        assert.strictEqual(valueOf(yield* provider.get), "run-1")
        const given = yield* provider.refresh
        deepStrictEqual([valueOf(given), yield* provider.current], ["run-2", Option.some(given)])
        assert.strictEqual(yield* outcomeOf(provider.get), "Timeout")
        assert.strictEqual(runs, 3)
        yield* provider.invalidate(yield* token("another"))
        deepStrictEqual(yield* provider.current, Option.some(given))
        yield* provider.invalidate(given)
        deepStrictEqual(yield* provider.status, { ...none, state: "Empty" })
      }).pipe(Effect.provide(AccessTokenProvider.layerTest(failing)))
    })
  })
})
