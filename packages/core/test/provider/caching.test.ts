import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type AccessToken, AccessTokenError, AccessTokenProvider } from "@store-api/core"
import type { LiveSteps } from "@store-api/testing/effectMajor"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Config, Effect, HashMap, Layer, Logger, LogLevel, Option, Random } from "effect"
import {
  type Acquire,
  heldAcquisitions,
  heldRenewals,
  hour,
  makeSource,
  minute,
  numberedTokens,
  outage,
  outcomeOf,
  providerTest,
  token,
  tokenOfAge,
  type Tools,
  valueOf,
  withProvider
} from "../support/scriptedSource.js"

/** The source returns the token `one`, and fails from then on. */
const oneThenOutage: Acquire = (n) => n === 1 ? token("one") : Effect.fail(outage)

describe("AccessTokenProvider", () => {
  describe("the cached token", () => {
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

    providerTest("an idle provider sends no request", numberedTokens, function*({ after }) {
      yield* after(0, { gets: "token-1" })
      yield* after("3 hours", { calls: 1 })
      yield* after(0, { gets: "token-2" })
    })

    providerTest(
      "no fiber sleeps after a renewal",
      numberedTokens,
      function*({ after, virtual }) {
        yield* after(0, { gets: "token-1" })
        yield* after("57 minutes", { gets: "token-1", calls: 2 })
        assert.strictEqual(virtual.sleepers(), 0)
      }
    )

    providerTest(
      "current returns the cached token without a request",
      oneThenOutage,
      function*({ after }) {
        yield* after(0, { current: "none", calls: 0 })
        yield* after(0, { gets: "one", current: "one", calls: 1 })
      }
    )

    providerTest(
      "current fails with the expiry of a token that has expired",
      oneThenOutage,
      function*({ after, provider, virtual }) {
        const { expiresAt } = yield* provider.get
        yield* virtual.advance(hour)
        const error = yield* Effect.flip(provider.current)
        assert.instanceOf(error, AccessTokenError.TokenExpiredError)
        deepStrictEqual([error.reason, error.expiredAt, error.checkedAt, error.retryAt], [
          "Elapsed",
          expiresAt,
          expiresAt,
          undefined
        ])
        yield* after(0, { calls: 1 })
      }
    )

    providerTest(
      "current fails with the retryAt of the cooldown",
      oneThenOutage,
      function*({ after, provider }) {
        yield* provider.get
        yield* after(hour, { current: "Elapsed" })
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
      "refresh joins an acquisition in flight",
      heldAcquisitions,
      function*({ after, complete, expectOutcome, provider, startCallers }) {
        const both = [yield* startCallers(1), yield* startCallers(1, provider.refresh)]
        yield* complete(token("one"))
        for (const caller of both) yield* expectOutcome(caller, "one")
        yield* after(0, { calls: 1 })
      }
    )

    providerTest(
      "refresh replaces a token that is still valid",
      heldRenewals(),
      function*({ after, complete, expectOutcome, provider, startCallers }) {
        yield* provider.get
        const refreshing = yield* startCallers(1, provider.refresh)
        yield* after(0, { gets: "one", calls: 2 })
        assert.strictEqual(yield* complete(token("two", "61 minutes")), "one")
        yield* expectOutcome(refreshing, "two")
        yield* after(0, { gets: "two", calls: 2 })
      }
    )
  })

  describe("invalidate", () => {
    providerTest(
      "invalidate keeps a token with another value",
      heldRenewals(),
      function*({ provider }) {
        const one = yield* provider.get
        yield* provider.invalidate(yield* token("another"))
        assert.strictEqual(yield* provider.get, one)
      }
    )

    providerTest(
      "invalidate drops a token with the same value",
      heldRenewals(),
      function*({ after, provider }) {
        yield* provider.get
        yield* provider.invalidate(yield* token("one"))
        yield* after(0, { current: "none", gets: "waits" })
      }
    )

    providerTest(
      "the source gets the invalidated token as the one to replace",
      heldRenewals(),
      function*({ complete, provider, startCallers }) {
        yield* provider.invalidate(yield* provider.get)
        yield* startCallers(1)
        assert.strictEqual(yield* complete(token("two")), "one")
      }
    )
  })

  describe("layerTest", () => {
    const empty = {
      state: "Empty",
      expiresAt: Option.none(),
      acquiring: false,
      cooldown: Option.none()
    } as const

    /** Runs the steps with the provider of `layerTest`. */
    const withTestLayer = (
      tokenOrEffect: Parameters<typeof AccessTokenProvider.layerTest>[0],
      steps: (provider: AccessTokenProvider.Service) => LiveSteps
    ) =>
      Effect.flatMap(
        AccessTokenProvider.AccessTokenProvider,
        (provider) => Effect.gen(() => steps(provider))
      ).pipe(Effect.provide(AccessTokenProvider.layerTest(tokenOrEffect)))

    test("layerTest returns a fixed token from each call", function*() {
      const fixed = yield* token("fixed")
      yield* withTestLayer(fixed, function*({ current, get, refresh }) {
        for (const call of [get, refresh]) assert.strictEqual(yield* call, fixed)
        deepStrictEqual(yield* current, Option.some(fixed))
      })
    })

    test("layerTest returns a fixed token from get after it has expired", function*() {
      const fixed = yield* tokenOfAge("fixed", hour, 0)
      yield* withTestLayer(fixed, function*({ current, get, status }) {
        assert.strictEqual(yield* get, fixed)
        assert.strictEqual((yield* status).state, "Expired")
        assert.strictEqual((yield* Effect.flip(current)).reason, "Elapsed")
      })
    })

    test("layerTest describes a fixed token in its status", function*() {
      const fixed = yield* token("fixed")
      yield* withTestLayer(fixed, function*({ status }) {
        deepStrictEqual(yield* status, {
          ...empty,
          state: "Fresh",
          expiresAt: Option.some(fixed.expiresAt)
        })
      })
    })

    test("layerTest runs its effect for each get or refresh", function*() {
      let runs = 0
      const effect = Effect.suspend(() => token(`run-${++runs}`))
      yield* withTestLayer(effect, function*({ current, get, refresh, status }) {
        deepStrictEqual([yield* current, yield* status], [Option.none(), empty])
        deepStrictEqual([valueOf(yield* get), valueOf(yield* refresh)], ["run-1", "run-2"])
      })
    })

    test("layerTest fails with the error of its effect", function*() {
      yield* withTestLayer(Effect.fail(outage), function*({ get }) {
        assert.strictEqual(yield* outcomeOf(get), "Transport")
      })
    })

    test.each(
      [["a fixed token", (fixed: AccessToken.AccessToken) => fixed], [
        "the token of its effect",
        (fixed: AccessToken.AccessToken) => Effect.succeed(fixed)
      ]] as const
    )("layerTest keeps the token until it is invalidated: %s", function*([, of]) {
      const fixed = yield* token("fixed")
      yield* withTestLayer(of(fixed), function*({ current, get, invalidate, status }) {
        yield* get
        yield* invalidate(yield* token("another"))
        deepStrictEqual(yield* current, Option.some(fixed))
        yield* invalidate(fixed)
        deepStrictEqual([yield* current, yield* status], [Option.none(), empty])
      })
    })
  })

  test("layerConfig reads refreshAhead", function*() {
    const virtual = VirtualClock.make()
    const { layer } = yield* makeSource((n) => token(`token-${n}`))
    yield* Effect.gen(function*() {
      const { get, status } = yield* AccessTokenProvider.AccessTokenProvider
      yield* get
      yield* virtual.advance("52 minutes")
      assert.strictEqual((yield* status).state, "Fresh", "8 minutes are left")
      yield* virtual.advance(1)
      assert.strictEqual((yield* status).state, "RefreshSoon")
    }).pipe(
      Effect.provide(
        AccessTokenProvider.layerConfig({ refreshAhead: Config.succeed("10 minutes") })
      ),
      Effect.provide(layer),
      Effect.withClock(virtual.clock),
      Effect.withRandom(Random.fixed([0]))
    )
  })

  it("the service key is the path of its module", () => {
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
      "status reports the cooldown of renewals if a token is valid",
      oneThenOutage,
      function*({ after }) {
        yield* after(0, { gets: "one" })
        yield* after("57 minutes", { gets: "one", cooldown: 750 })
      }
    )

    providerTest(
      "status reports the cooldown of callers if no token is valid",
      oneThenOutage,
      function*({ after }) {
        yield* after(0, { gets: "one" })
        yield* after(hour - 500, { gets: "one" })
        // The cooldown of renewals does not apply to callers without a token.
        yield* after(500, { state: "Expired", cooldown: 0 })
        yield* after(0, { gets: "Transport", cooldown: 1500 })
        yield* after(1499, { cooldown: 1 })
        yield* after(1, { cooldown: 0 })
      }
    )
  })

  describe("the cached path", () => {
    /** Runs the steps with a cached token. `readsOfGet` counts how often `get` reads each clock. */
    const countReads = (
      steps: (
        tools: Tools & {
          readonly readsOfGet: Effect.Effect<
            readonly [wall: number, monotonic: number],
            AccessTokenError.AccessTokenError
          >
        }
      ) => LiveSteps
    ) => {
      const reads = { wall: 0, monotonic: 0 }
      return withProvider(heldRenewals(), function*(tools) {
        const first = yield* tools.provider.get
        const readsOfGet = Effect.gen(function*() {
          const before = { ...reads }
          assert.strictEqual(yield* tools.provider.get, first)
          return [reads.wall - before.wall, reads.monotonic - before.monotonic] as const
        })
        yield* Effect.gen(() => steps({ ...tools, readsOfGet }))
      }, {
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
      })
    }

    const margin = 4 * minute

    test("get reads each clock once until the margin", function*() {
      yield* countReads(function*({ calls, readsOfGet, virtual }) {
        deepStrictEqual(yield* readsOfGet, [1, 1])
        yield* virtual.advance(hour - margin - 1)
        deepStrictEqual(yield* readsOfGet, [1, 1])
        assert.strictEqual(yield* calls, 1)
      })
    })

    test("get reads each clock once if the wall clock is back by the tolerance of 1 s", function*() {
      yield* countReads(function*({ readsOfGet, virtual }) {
        virtual.jump(-1000)
        deepStrictEqual(yield* readsOfGet, [1, 1])
      })
    })

    test("the margin begins by the wall clock if that is ahead", function*() {
      yield* countReads(function*({ readsOfGet, virtual }) {
        yield* virtual.advance(hour - margin - 1)
        virtual.jump(1)
        assert.isAbove((yield* readsOfGet)[0], 1)
      })
    })

    test("the margin begins by the monotonic clock if that is ahead", function*() {
      yield* countReads(function*({ readsOfGet, virtual }) {
        yield* virtual.advance(hour - margin)
        virtual.jump(-1)
        assert.isAbove((yield* readsOfGet)[0], 1)
      })
    })

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
    type LogLine = readonly [level: string, message: unknown, annotations: unknown]

    /** Runs the steps. `lines` contains the level, message and annotations of each log line. */
    const withLines = (
      acquire: Acquire,
      steps: (tools: Tools & { readonly lines: ReadonlyArray<LogLine> }) => LiveSteps
    ) => {
      const lines: Array<LogLine> = []
      const logger = Logger.make(({ annotations, logLevel, message }) => {
        lines.push([
          logLevel.label,
          message,
          Object.fromEntries(HashMap.toEntries(annotations))
        ])
      })
      return withProvider(acquire, (tools) => steps({ ...tools, lines })).pipe(
        Effect.provide(logTo(logger))
      )
    }

    const logTo = (logger: Logger.Logger<unknown, void>) =>
      Layer.merge(
        Logger.replace(Logger.defaultLogger, logger),
        Logger.minimumLogLevel(LogLevel.Debug)
      )

    const servedAnyway = [
      "Access token renewal failed; the cached token is served until it expires"
    ]
    const expiresAt = "2026-01-15T01:00:00.000Z"

    test("an acquisition is logged with the expiry of its token", function*() {
      yield* withLines(numberedTokens, function*({ lines, provider }) {
        yield* provider.get
        deepStrictEqual(lines, [["DEBUG", ["Access token acquired"], { expiresAt }]])
      })
    })

    test("a failure that a caller gets is not logged", function*() {
      yield* withLines(() => Effect.fail(outage), function*({ after, lines }) {
        yield* after(0, { gets: "Transport", refreshes: "Transport" })
        deepStrictEqual(lines, [])
      })
    })

    test("a failed refresh is not logged if a token is cached", function*() {
      yield* withLines(oneThenOutage, function*({ after, lines }) {
        yield* after(0, { gets: "one" })
        yield* after("57 minutes", { refreshes: "Transport" })
        assert.lengthOf(lines, 1, "that of the acquisition")
      })
    })

    test.each(
      [
        [
          "with an error",
          Effect.fail(outage),
          {
            error: "TokenRequestError",
            reason: `${outage.message} Retry after 2026-01-15T00:57:00.750Z.`
          }
        ],
        [
          "with a defect",
          Effect.die("an invented defect"),
          { error: "Defect", reason: "the TokenSource failed with a defect" }
        ]
      ] as const
    )("a warning describes a renewal that failed %s", function*([, failure, description]) {
      yield* withLines((n) => n === 1 ? token("one") : failure, function*({ after, lines }) {
        yield* after(0, { gets: "one" })
        yield* after("57 minutes", { gets: "one" })
        deepStrictEqual(lines.slice(1), [["WARN", servedAnyway, {
          expiresAt,
          ...description
        }]])
      })
    })

    test("a warning says that the token has expired during a failed renewal", function*() {
      yield* withLines(heldRenewals(), function*({ after, complete, lines }) {
        yield* after(0, { gets: "one" })
        yield* after(hour - 1000, { gets: "waits" })
        yield* after("1 seconds", { state: "Expired" })
        yield* complete(Effect.fail(outage))
        deepStrictEqual(lines.slice(1).map(([level, message]) => [level, message]), [
          ["WARN", ["Access token renewal failed, and the cached token is not valid any more"]]
        ])
      })
    })

    test("a caller gets the token although the logger throws", function*() {
      const throwing = Logger.make(() => {
        throw new Error("an invented fault of a logger")
      })
      yield* withProvider(numberedTokens, function*({ after }) {
        yield* after(0, { gets: "token-1" })
        yield* after(0, { gets: "token-1" })
      }).pipe(Effect.provide(logTo(throwing)))
    })
  })
})
