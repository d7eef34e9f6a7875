import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import {
  Config,
  DateTime,
  Effect,
  HashMap,
  Layer,
  Logger,
  LogLevel,
  Option,
  Random
} from "effect"
import {
  type Acquire,
  heldAcquisitions,
  hour,
  makeSource,
  minute,
  numberedTokens,
  outage,
  outcomeOf,
  providerTest,
  token,
  valueOf,
  withProvider
} from "../support/scriptedSource.js"

/** The source returns the token `one`, and fails from then on. */
const oneThenOutage: Acquire = (n) => n === 1 ? token("one") : Effect.fail(outage)

describe("AccessTokenProvider", () => {
  describe("caches one token", () => {
    providerTest(
      "get returns one cached token until it expires",
      numberedTokens,
      function*({ after }) {
        yield* after(0, { gets: "token-1", calls: 1 })
        yield* after("54 minutes", { gets: "token-1", calls: 1 })
        yield* after("5 minutes", { state: "RefreshSoon", gets: "token-1" })
        yield* after("1 minutes", { gets: "token-2", calls: 2 })
      }
    )

    providerTest(
      "an idle provider sends no request, and no fiber sleeps",
      numberedTokens,
      function*({ after, virtual }) {
        yield* after("57 minutes", { gets: "token-1" })
        yield* after("57 minutes", { gets: "token-1", calls: 2 })
        assert.strictEqual(virtual.sleepers(), 0, "after a background renewal")
        yield* after("3 hours", { calls: 2 })
        yield* after(0, { gets: "token-3" })
      }
    )

    providerTest(
      "current returns the token or its expiry error, without a request",
      oneThenOutage,
      function*({ after, provider }) {
        yield* after(0, { current: "none", calls: 0 })
        const { expiresAt } = yield* provider.get
        yield* after(0, { current: "one" })
        yield* after(hour, { current: "Elapsed", calls: 1 })
        const error = yield* Effect.flip(provider.current)
        assert.instanceOf(error, AccessTokenError.TokenExpiredError)
        deepStrictEqual([error.expiredAt, error.checkedAt, error.retryAt], [
          expiresAt,
          expiresAt,
          undefined
        ])
        const { retryAt } = yield* Effect.flip(provider.get)
        assert.isDefined(retryAt)
        deepStrictEqual((yield* Effect.flip(provider.current)).retryAt, retryAt)
      }
    )
  })

  describe("shares one acquisition", () => {
    providerTest(
      "10 000 concurrent first callers share one token request",
      heldAcquisitions,
      function*({ after, startCallers, complete, expectOutcome }) {
        const all = yield* startCallers(10_000)
        yield* complete(token("shared"))
        yield* expectOutcome(all, "shared")
        yield* after(0, { calls: 1 })
      }
    )

    providerTest(
      "refresh acquires, or joins an acquisition",
      heldAcquisitions,
      function*({ after, startCallers, complete, expectOutcome, provider }) {
        const both = [yield* startCallers(1), yield* startCallers(1, provider.refresh)]
        assert.isUndefined(yield* complete(token("one")))
        for (const caller of both) yield* expectOutcome(caller, "one")
        const refreshing = yield* startCallers(1, provider.refresh)
        yield* after(0, { gets: "one", calls: 2 })
        assert.strictEqual(yield* complete(token("two", "61 minutes")), "one")
        yield* expectOutcome(refreshing, "two")
        yield* after(0, { gets: "two", calls: 2 })
      }
    )
  })

  providerTest(
    "invalidate compares values; the source gets the token",
    heldAcquisitions,
    function*({ after, startCallers, complete, provider }) {
      yield* startCallers(1)
      assert.isUndefined(yield* complete(token("one")))
      const one = yield* provider.get
      yield* provider.invalidate(yield* token("another"))
      assert.strictEqual(
        yield* provider.get,
        one,
        "the rejection of another token has no effect"
      )
      yield* provider.invalidate(yield* token("one"))
      yield* after(0, { current: "none", gets: "waits" })
      assert.strictEqual(yield* complete(token("two")), "one")
      yield* provider.invalidate(one)
      yield* after(0, { gets: "two" })
    }
  )

  describe("layerTest", () => {
    const none = { expiresAt: Option.none(), acquiring: false, cooldown: Option.none() }

    test("returns a fixed token, also after it expired, until it is invalidated", function*() {
      const virtual = VirtualClock.make()
      const fixed = yield* Effect.withClock(token("fixed"), virtual.clock)
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const status = { ...none, expiresAt: Option.some(fixed.expiresAt) }
        yield* provider.invalidate(yield* token("another"))
        for (const call of [provider.get, provider.refresh]) {
          assert.strictEqual(yield* call, fixed)
        }
        deepStrictEqual(yield* provider.current, Option.some(fixed))
        deepStrictEqual(yield* provider.status, { ...status, state: "Fresh" })
        yield* virtual.advance(hour)
        deepStrictEqual(yield* provider.status, { ...status, state: "Expired" })
        assert.strictEqual((yield* Effect.flip(provider.current)).reason, "Elapsed")
        yield* provider.invalidate(fixed)
        deepStrictEqual(yield* provider.current, Option.none())
        deepStrictEqual(yield* provider.status, { ...none, state: "Empty" })
      }).pipe(
        Effect.provide(AccessTokenProvider.layerTest(fixed)),
        Effect.withClock(virtual.clock)
      )
    })

    test("runs an effect for each get and refresh, fails with its error, and caches its token until it is invalidated", function*() {
      let runs = 0
      const failing = Effect.suspend(() => {
        runs++
        return runs < 3 ? token(`run-${runs}`) : Effect.fail(outage)
      })
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        deepStrictEqual(yield* provider.current, Option.none())
        deepStrictEqual(yield* provider.status, { ...none, state: "Empty" })
        assert.strictEqual(valueOf(yield* provider.get), "run-1")
        const given = yield* provider.refresh
        deepStrictEqual([valueOf(given), yield* provider.current], [
          "run-2",
          Option.some(given)
        ])
        deepStrictEqual([yield* outcomeOf(provider.get), runs], ["Transport", 3])
        yield* provider.invalidate(yield* token("another"))
        deepStrictEqual(yield* provider.current, Option.some(given))
        yield* provider.invalidate(given)
        deepStrictEqual(yield* provider.status, { ...none, state: "Empty" })
      }).pipe(Effect.provide(AccessTokenProvider.layerTest(failing)))
    })
  })

  test("layerConfig reads refreshAhead", function*() {
    const virtual = VirtualClock.make()
    const { layer } = yield* makeSource((n) => token(`token-${n}`))
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* provider.get
      yield* virtual.advance("52 minutes")
      assert.strictEqual((yield* provider.status).state, "Fresh", "8 minutes are left")
      yield* virtual.advance(1)
      assert.strictEqual((yield* provider.status).state, "RefreshSoon")
    }).pipe(
      Effect.provide(
        AccessTokenProvider.layerConfig({ refreshAhead: Config.succeed("10 minutes") })
      ),
      Effect.provide(layer),
      Effect.withClock(virtual.clock),
      Effect.withRandom(Random.fixed([0]))
    )
    assert.strictEqual(
      AccessTokenProvider.AccessTokenProvider.key,
      "@store-api/core/AccessTokenProvider"
    )
  })

  describe("status", () => {
    providerTest(
      "status describes the token and the acquisition in flight",
      heldAcquisitions,
      function*({ startCallers, complete, provider }) {
        const none = { expiresAt: Option.none(), cooldown: Option.none() }
        deepStrictEqual(yield* provider.status, { ...none, state: "Empty", acquiring: false })
        yield* startCallers(1)
        deepStrictEqual(yield* provider.status, { ...none, state: "Empty", acquiring: true })
        yield* complete(token("one"))
        const expiresAt = Option.some((yield* provider.get).expiresAt)
        deepStrictEqual(yield* provider.status, {
          ...none,
          state: "Fresh",
          expiresAt,
          acquiring: false
        })
      }
    )

    providerTest(
      "status reports the cooldown that applies to the next caller",
      oneThenOutage,
      function*({ after }) {
        yield* after(0, { gets: "one" })
        yield* after(hour - 500, { gets: "one", cooldown: 750 })
        // The cooldown of renewals does not apply to callers without a token.
        yield* after(500, { state: "Expired", cooldown: 0 })
        yield* after(0, { gets: "Transport", cooldown: 1500 })
        yield* after(1499, { cooldown: 1 })
        yield* after(1, { cooldown: 0 })
      }
    )
  })

  describe("the cached path", () => {
    const reads = { wall: 0, monotonic: 0 }
    providerTest(
      "reads each clock once, from 1 s before acquiredAt until the margin",
      (n) => token(`token-${n}`),
      function*({ calls, provider, virtual }) {
        const first = yield* provider.get
        const readsOfGet = Effect.gen(function*() {
          const before = { ...reads }
          assert.strictEqual(yield* provider.get, first)
          return [reads.wall - before.wall, reads.monotonic - before.monotonic] as const
        })
        deepStrictEqual(yield* readsOfGet, [1, 1])
        virtual.jump(-1000)
        deepStrictEqual(
          yield* readsOfGet,
          [1, 1],
          "the wall clock moved back by the tolerance"
        )
        virtual.jump(1000)
        yield* virtual.advance(hour - 4 * minute - 1)
        deepStrictEqual(yield* readsOfGet, [1, 1], "1 ms before the margin")
        virtual.jump(1)
        assert.isAbove((yield* readsOfGet)[0], 1, "within the margin by the wall clock")
        virtual.jump(-1)
        yield* virtual.advance(1)
        virtual.jump(-1)
        assert.isAbove((yield* readsOfGet)[0], 1, "within the margin by the monotonic clock")
        assert.strictEqual(
          yield* calls,
          1,
          "no renewal starts while exactly the margin is left"
        )
      },
      {
        clock: ({ clock }) => ({
          ...clock,
          unsafeCurrentTimeMillis: () => {
            reads.wall++
            return clock.unsafeCurrentTimeMillis()
          },
          unsafeCurrentTimeNanos: () => {
            reads.monotonic++
            return clock.unsafeCurrentTimeNanos()
          }
        })
      }
    )

    providerTest(
      "a caller waits within a leeway that is longer than refreshAhead",
      (n) => n === 1 ? token("one") : Effect.never,
      function*({ after }) {
        yield* after(0, { gets: "one" })
        yield* after(hour - 30_000, { state: "Fresh", gets: "one", calls: 1 })
        yield* after(1, { state: "MustWait", gets: "waits" })
      },
      { refreshAhead: "1 seconds" }
    )
  })

  describe("log lines", () => {
    const script = (n: number) => {
      if (n === 1 || n === 3 || n === 7) return Effect.fail(outage)
      if (n === 4) return Effect.die("an invented defect")
      return n === 6 ? undefined : token(`token-${n}`)
    }

    test("are written for each acquisition and each failed renewal, with the token's expiry and the error message", function*() {
      const lines: Array<readonly [string, unknown, Readonly<Record<string, unknown>>]> = []
      const logger = Logger.make(({ annotations, logLevel, message }) => {
        lines.push([
          logLevel.label,
          message,
          Object.fromEntries(HashMap.toEntries(annotations))
        ])
      })
      yield* withProvider(script, function*({ after, complete, provider }) {
        yield* after(0, { gets: "Transport" })
        deepStrictEqual(lines, [], "callers without a valid token get the error")
        yield* after("1 seconds", { gets: "token-2" })
        const at = { expiresAt: DateTime.formatIso((yield* provider.get).expiresAt) }
        for (const passed of [57 * minute, 750, 1500]) {
          yield* after(passed, { gets: "token-2" })
        }
        const failed =
          "Access token renewal failed; the cached token is served until it expires"
        const reason = `${outage.message} Retry after 2026-01-15T00:57:01.750Z.`
        deepStrictEqual(lines.splice(0), [
          ["DEBUG", ["Access token acquired"], at],
          ["WARN", [failed], { ...at, error: "TokenRequestError", reason }],
          ["WARN", [failed], {
            ...at,
            error: "Defect",
            reason: "the TokenSource failed with a defect"
          }],
          ["DEBUG", ["Access token acquired"], { expiresAt: "2026-01-15T01:57:03.250Z" }]
        ])
        yield* after(hour - 1000, { gets: "waits" })
        yield* after("1 seconds", { state: "Expired" })
        yield* complete(Effect.fail(outage))
        deepStrictEqual(lines.map(([level, message]) => [level, message]), [
          ["WARN", ["Access token renewal failed, and the cached token is not valid any more"]]
        ])
        assert.strictEqual((yield* Effect.flip(provider.refresh))._tag, "TokenRequestError")
        assert.lengthOf(lines, 1, "a failed refresh is reported to its caller alone")
      }).pipe(Effect.provide(
        Layer.merge(
          Logger.replace(Logger.defaultLogger, logger),
          Logger.minimumLogLevel(LogLevel.Debug)
        )
      ))
    })

    test("a caller gets the token although the logger throws", function*() {
      const throwing = Logger.make(() => {
        throw new Error("an invented fault of a logger")
      })
      yield* withProvider((n) => token(`token-${n}`), function*({ after }) {
        yield* after(0, { gets: "token-1" })
        yield* after(0, { gets: "token-1" })
      }).pipe(Effect.provide(
        Layer.merge(
          Logger.replace(Logger.defaultLogger, throwing),
          Logger.minimumLogLevel(LogLevel.Debug)
        )
      ))
    })
  })
})
