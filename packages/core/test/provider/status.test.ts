import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider } from "@store-api/core"
import { Config, DateTime, Effect, HashMap, Layer, Logger, LogLevel, Option, Random } from "effect"
import {
  aged,
  answering,
  heldTest,
  hour,
  minute,
  outage,
  providerTest,
  timeline,
  token
} from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

/** Records the level, message and annotations of each log line. */
const recording = () => {
  const lines: Array<readonly [string, unknown, Readonly<Record<string, unknown>>]> = []
  return {
    lines,
    layer: Layer.merge(
      Logger.replace(
        Logger.defaultLogger,
        Logger.make(({ annotations, logLevel, message }) => {
          lines.push([logLevel.label, message, Object.fromEntries(HashMap.toEntries(annotations))])
        })
      ),
      Logger.minimumLogLevel(LogLevel.Debug)
    )
  }
}

describe("AccessTokenProvider, status and logs", () => {
  it("the tag's key is the name of the module", () => {
    assert.strictEqual(AccessTokenProvider.AccessTokenProvider.key, "@store-api/core/AccessTokenProvider")
  })

  test("layerConfig reads the options", function*() {
    const virtual = VirtualClock.make()
    const { layer } = yield* answering((n) => token(`token-${n}`))
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* provider.get
      yield* virtual.advance("52 minutes")
      assert.strictEqual((yield* provider.status).state, "Fresh", "8 minutes are left")
      yield* virtual.advance(1)
      assert.strictEqual((yield* provider.status).state, "RefreshSoon")
    }).pipe(
      Effect.provide(AccessTokenProvider.layerConfig({ refreshAhead: Config.succeed("10 minutes") })),
      Effect.provide(layer),
      Effect.withClock(virtual.clock),
      Effect.withRandom(Random.fixed([0]))
    )
  })

  describe("status", () => {
    heldTest("reports state, expiresAt and acquiring", function*({ callers, complete, provider }) {
      const none = { expiresAt: Option.none(), cooldown: Option.none() }
      deepStrictEqual(yield* provider.status, { ...none, state: "Empty", acquiring: false })
      yield* callers(1)
      deepStrictEqual(yield* provider.status, { ...none, state: "Empty", acquiring: true })
      yield* complete(token("one"))
      const { expiresAt } = yield* provider.get
      deepStrictEqual(yield* provider.status, {
        state: "Fresh",
        expiresAt: Option.some(expiresAt),
        acquiring: false,
        cooldown: Option.none()
      })
    })

    providerTest((n) => n === 1 ? token("one") : Effect.fail(outage))(
      "reports the cooldown of renewals while a token is valid, and the cooldown of failing callers after it expired",
      function*({ after, provider, virtual }) {
        const expectCooldown = (length: number) =>
          Effect.map(provider.status, ({ cooldown }) =>
            deepStrictEqual(
              Option.map(cooldown, ({ error, until }) => ({ error, length: until.epochMillis - virtual.wall() })),
              Option.some({ error: outage._tag, length })
            ))
        const { expiresAt } = yield* provider.get
        yield* virtual.advance(hour - 200_000)
        // Seven renewals fail. After the seventh, no renewal starts for 45 seconds.
        for (let failures = 0; failures < 6; failures++) {
          yield* after(0, { gets: "one" })
          yield* virtual.advance(Math.min(750 * 2 ** failures, 45_000))
        }
        yield* after(expiresAt.epochMillis - virtual.wall() - 2000, { gets: "one" })
        yield* expectCooldown(45_000)
        yield* virtual.advance(2000)
        assert.isTrue(
          Option.isNone((yield* provider.status).cooldown),
          "the cooldown of renewals does not apply to callers without a token"
        )
        const error = yield* Effect.flip(provider.get)
        assert.strictEqual(Option.getOrThrow(error.retryAt).epochMillis, virtual.wall() + 3750)
        yield* expectCooldown(3750)
        yield* virtual.advance(3749)
        yield* expectCooldown(1)
        yield* virtual.advance(1)
        assert.isTrue(Option.isNone((yield* provider.status).cooldown), "ends exactly at `until`")
      }
    )

    providerTest((n) => n < 3 ? aged("same", hour - minute, minute) : token("never"))(
      "reports no cooldown after a renewal without progress",
      function*({ provider }) {
        yield* provider.get
        yield* provider.refresh
        assert.isTrue(Option.isNone((yield* provider.status).cooldown))
      }
    )
  })

  describe("the cached path", () => {
    const reads = { wall: 0, monotonic: 0 }
    providerTest((n) => token(`token-${n}`), {
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
    })(
      "reads each clock once, from 1 second before acquiredAt until the renewal margin begins",
      function*({ calls, provider, virtual }) {
        const first = yield* provider.get
        const readsOfGet = Effect.gen(function*() {
          const before = { ...reads }
          assert.strictEqual(yield* provider.get, first)
          return [reads.wall - before.wall, reads.monotonic - before.monotonic] as const
        })
        deepStrictEqual(yield* readsOfGet, [1, 1])
        virtual.jump(-1000)
        deepStrictEqual(yield* readsOfGet, [1, 1], "the wall clock moved back by the tolerance")
        virtual.jump(1000)
        yield* virtual.advance(hour - 4 * minute - 1)
        deepStrictEqual(yield* readsOfGet, [1, 1], "1 ms before the margin")
        virtual.jump(1)
        assert.isAbove((yield* readsOfGet)[0], 1, "within the margin by the wall clock")
        virtual.jump(-1)
        yield* virtual.advance(1)
        virtual.jump(-1)
        assert.isAbove((yield* readsOfGet)[0], 1, "within the margin by the monotonic clock")
        assert.strictEqual(yield* calls, 1, "no renewal starts while exactly the margin is left")
      }
    )

    providerTest((n) => n === 1 ? token("one") : Effect.never, { refreshAhead: "1 seconds" })(
      "ends at the longer margin: callers wait within a leeway that is longer than refreshAhead",
      function*({ after }) {
        yield* after(0, { gets: "one" })
        yield* after(hour - 30_000, { state: "Fresh", gets: "one", calls: 1 })
        yield* after(1, { state: "MustWait", gets: "waits" })
      }
    )

    providerTest((n) => token(`token-${n}`))(
      "ends by the monotonic clock if the wall clock stands still",
      function*({ after, virtual }) {
        yield* after(0, { gets: "token-1" })
        for (const [passed, calls] of [[55 * minute, 1], [minute, 1], [1, 2]] as const) {
          yield* virtual.advance(passed)
          virtual.jump(-passed)
          yield* after(0, { gets: "token-1", calls })
        }
      }
    )
  })

  describe("log lines", () => {
    test("are written for each acquisition and each failed renewal, with the token's expiry and the error message", function*() {
      const { layer, lines } = recording()
      const defect = Effect.die("an invented defect")
      yield* timeline(
        (n) => n === 2 ? Effect.fail(outage) : n === 3 ? defect : token(`token-${n}`),
        function*({ after, provider }) {
          const { expiresAt } = yield* provider.get
          const at = { expiresAt: DateTime.formatIso(expiresAt) }
          yield* after(57 * minute, { gets: "token-1" })
          yield* after(0, { gets: "token-1" })
          yield* after(750, { gets: "token-1" })
          yield* after(1500, { gets: "token-1" })
          yield* after(0, { gets: "token-4" })
          const failed = "Access token renewal failed; the cached token is served until it expires"
          const reason = `${outage.message} Retry after 2026-01-15T00:57:00.750Z.`
          deepStrictEqual(lines, [
            ["DEBUG", ["Access token acquired"], at],
            ["WARN", [failed], { ...at, error: "TokenRequestError", reason }],
            ["WARN", [failed], { ...at, error: "Defect", reason: "the TokenSource failed with a defect" }],
            ["DEBUG", ["Access token acquired"], { expiresAt: "2026-01-15T01:57:02.250Z" }]
          ])
        }
      ).pipe(Effect.provide(layer))
    })

    test("are not written for an acquisition that fails without a valid cached token, since its callers get the error", function*() {
      const { layer, lines } = recording()
      yield* timeline((n) => n === 2 ? token("one") : Effect.fail(outage), function*({ after }) {
        yield* after(0, { gets: "Transport" })
        yield* after("1 seconds", { gets: "one" })
        yield* after(hour, { gets: "Transport" })
        deepStrictEqual(lines.map(([level]) => level), ["DEBUG"])
      }).pipe(Effect.provide(layer))
    })
  })
})
