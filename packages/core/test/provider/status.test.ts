import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type AccessToken, AccessTokenProvider } from "@store-api/core"
import {
  type Clock,
  Config,
  DateTime,
  Deferred,
  Effect,
  Fiber,
  HashMap,
  Layer,
  Logger,
  LogLevel,
  Option,
  Random
} from "effect"
import {
  type Acquisition,
  aged,
  answering,
  hour,
  minute,
  outage,
  run,
  settle,
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

const untilOf = ({ cooldown }: AccessTokenProvider.ProviderStatus) =>
  Option.map(cooldown, ({ error, until }) => ({ error, until: until.epochMillis }))

describe("AccessTokenProvider, status and logs", () => {
  it("the tag's key is the name of the module", () => {
    assert.strictEqual(AccessTokenProvider.AccessTokenProvider.key, "@store-api/core/AccessTokenProvider")
  })

  test("layerConfig reads the options", function*() {
    const virtual = VirtualClock.make()
    const source = yield* answering((n) => token(`token-${n}`))
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* provider.get
      yield* virtual.advance("52 minutes")
      assert.strictEqual((yield* provider.status).state, "Fresh", "8 minutes are left")
      yield* virtual.advance(1)
      assert.strictEqual((yield* provider.status).state, "RefreshSoon")
    }).pipe(
      Effect.provide(Layer.provide(
        AccessTokenProvider.layerConfig({ refreshAhead: Config.succeed("10 minutes") }),
        source.layer
      )),
      Effect.withClock(virtual.clock),
      Effect.withRandom(Random.fixed([0]))
    )
  })

  describe("status", () => {
    test("reports state, expiresAt and acquiring, until the scope closes", function*() {
      const virtual = VirtualClock.make()
      const mayFinish = yield* Deferred.make<void>()
      const source = yield* answering(() => Effect.zipRight(Deferred.await(mayFinish), token("one")))
      const provider = yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const none = { expiresAt: Option.none(), cooldown: Option.none() }
        deepStrictEqual(yield* provider.status, { ...none, state: "Empty", acquiring: false })
        const caller = yield* Effect.fork(provider.get)
        yield* settle
        deepStrictEqual(yield* provider.status, { ...none, state: "Empty", acquiring: true })
        yield* Deferred.succeed(mayFinish, undefined)
        const { expiresAt } = yield* Fiber.join(caller)
        deepStrictEqual(yield* provider.status, {
          state: "Fresh",
          expiresAt: Option.some(expiresAt),
          acquiring: false,
          cooldown: Option.none()
        })
        return provider
      }).pipe(
        Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
        Effect.withClock(virtual.clock)
      )
      const closed = { state: "Closed", expiresAt: Option.none(), acquiring: false, cooldown: Option.none() } as const
      deepStrictEqual(yield* provider.status, closed)
      deepStrictEqual(yield* provider.current, Option.none())
      yield* provider.invalidate(yield* token("one"))
      deepStrictEqual(yield* provider.status, closed)
      for (const call of [provider.get, provider.refresh]) {
        const error = yield* Effect.flip(call)
        assert.strictEqual(error._tag === "TokenRequestError" && error.reason, "Closed")
      }
    })

    it.effect("reports the cooldown of renewals while a token is valid, and the cooldown of failing callers after it expired", () =>
      run((n) => n === 1 ? token("one") : Effect.fail(outage), ({ provider, virtual }) =>
        Effect.gen(function*() {
          const { expiresAt } = yield* provider.get
          yield* virtual.advance(hour - 200_000)
          // Seven renewals fail. After the seventh, no renewal starts for 45 seconds.
          for (let failures = 0; failures < 6; failures++) {
            yield* provider.get
            yield* settle
            yield* virtual.advance(Math.min(750 * 2 ** failures, 45_000))
          }
          const beforeEnd = expiresAt.epochMillis - virtual.wall()
          yield* virtual.advance(beforeEnd - 2000)
          yield* provider.get
          yield* virtual.advance(0)
          const failedAt = virtual.wall()
          deepStrictEqual(
            untilOf(yield* provider.status),
            Option.some({ error: outage._tag, until: failedAt + 45_000 })
          )
          yield* virtual.advance(2000)
          assert.isTrue(
            Option.isNone((yield* provider.status).cooldown),
            "the cooldown of renewals does not apply to callers without a token"
          )
          const error = yield* Effect.flip(provider.get)
          const until = virtual.wall() + 3750
          deepStrictEqual(untilOf(yield* provider.status), Option.some({ error: outage._tag, until }))
          assert.strictEqual(Option.getOrThrow(error.retryAt).epochMillis, until)
          yield* virtual.advance(3749)
          assert.isTrue(Option.isSome((yield* provider.status).cooldown))
          yield* virtual.advance(1)
          assert.isTrue(Option.isNone((yield* provider.status).cooldown), "ends exactly at `until`")
        })))

    it.effect("reports no cooldown after a renewal without progress", () =>
      run(
        (n) => n < 3 ? aged("same", hour - minute, minute) : token("never"),
        ({ provider }) =>
          Effect.gen(function*() {
            yield* provider.get
            yield* provider.refresh
            assert.isTrue(Option.isNone((yield* provider.status).cooldown))
          })
      ))
  })

  describe("the cached path", () => {
    test("reads each clock once, from 1 second before acquiredAt until the renewal margin begins", function*() {
      const virtual = VirtualClock.make()
      const reads = { wall: 0, monotonic: 0 }
      const counting: Clock.Clock = {
        ...virtual.clock,
        unsafeCurrentTimeMillis: () => {
          reads.wall++
          return virtual.clock.unsafeCurrentTimeMillis()
        },
        unsafeCurrentTimeNanos: () => {
          reads.monotonic++
          return virtual.clock.unsafeCurrentTimeNanos()
        }
      }
      const source = yield* answering((n) => token(`token-${n}`))
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
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
        assert.strictEqual(yield* source.calls, 1, "no renewal starts while exactly the margin is left")
      }).pipe(
        Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
        Effect.withClock(counting),
        Effect.withRandom(Random.fixed([0]))
      )
    })

    it.effect("ends at the longer margin: callers wait within a leeway that is longer than refreshAhead", () =>
      run((n) => n === 1 ? token("one") : Effect.never, ({
        provider,
        virtual
      }) =>
        Effect.gen(function*() {
          yield* provider.get
          yield* virtual.advance(hour - 30_000)
          assert.strictEqual((yield* provider.status).state, "Fresh")
          yield* provider.get
          assert.isFalse((yield* provider.status).acquiring)
          yield* virtual.advance(1)
          assert.strictEqual((yield* provider.status).state, "MustWait")
          const caller = yield* Effect.fork(provider.get)
          yield* settle
          assert.isTrue(Option.isNone(yield* Fiber.poll(caller)))
          yield* Fiber.interrupt(caller)
        }), { refreshAhead: "1 seconds" }))

    it.effect("ends by the monotonic clock if the wall clock stands still", () =>
      run((n) => token(`token-${n}`, hour), ({ calls, provider, virtual }) =>
        Effect.gen(function*() {
          yield* provider.get
          for (const [minutes, expected] of [[55, 1], [1, 1]] as const) {
            yield* virtual.advance(minutes * minute)
            virtual.jump(-minutes * minute)
            yield* provider.get
            yield* settle
            assert.strictEqual(yield* calls, expected)
          }
          yield* virtual.advance(1)
          virtual.jump(-1)
          yield* provider.get
          yield* settle
          assert.strictEqual(yield* calls, 2, "less than 4 minutes are left")
        })))
  })

  describe("log lines", () => {
    it.effect("are written for each acquisition and each failed renewal, with the token's expiry and the error message", () => {
      const { layer, lines } = recording()
      return run((n) => n === 2 ? Effect.fail(outage) : n === 3 ? Effect.die("an invented defect") : token("one"), ({
        provider,
        virtual
      }) =>
        Effect.gen(function*() {
          const { expiresAt } = yield* provider.get
          const at = { expiresAt: DateTime.formatIso(expiresAt) }
          yield* virtual.advance(57 * minute)
          yield* provider.get
          yield* settle
          yield* virtual.advance(750)
          yield* provider.get
          yield* settle
          const failed = "Access token renewal failed; the cached token is served until it expires"
          deepStrictEqual(lines, [
            ["DEBUG", ["Access token acquired"], at],
            [
              "WARN",
              [failed],
              {
                ...at,
                error: "TokenRequestError",
                reason: `${outage.message} Retry after 2026-01-15T00:57:00.750Z.`
              }
            ],
            ["WARN", [failed], { ...at, error: "Defect", reason: "the TokenSource failed with a defect" }]
          ])
        })).pipe(Effect.provide(layer))
    })

    it.effect("are not written for an acquisition that fails without a valid cached token, since its callers get the error", () => {
      const { layer, lines } = recording()
      return run(
        (n) => n === 2 ? token("one") : Effect.fail(outage),
        ({ provider, virtual }) =>
          Effect.gen(function*() {
            yield* Effect.flip(provider.get)
            yield* virtual.advance("1 seconds")
            yield* provider.get
            yield* virtual.advance(hour)
            yield* Effect.flip(provider.get)
            deepStrictEqual(lines.map(([level]) => level), ["DEBUG"])
          })
      ).pipe(Effect.provide(layer))
    })
  })

  describe("layerTest", () => {
    const provided = (provided: AccessToken.AccessToken | Acquisition) =>
      Effect.provide(AccessTokenProvider.layerTest(provided))

    test("reports the state and the expiry of its token, also after it expired", function*() {
      const virtual = VirtualClock.make()
      const fixed = yield* Effect.withClock(token("fixed"), virtual.clock)
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const status = { expiresAt: Option.some(fixed.expiresAt), acquiring: false, cooldown: Option.none() }
        deepStrictEqual(yield* provider.status, { ...status, state: "Fresh" })
        yield* virtual.advance(hour)
        deepStrictEqual(yield* provider.status, { ...status, state: "Expired" })
        assert.strictEqual((yield* Effect.flip(provider.current)).reason, "Elapsed")
      }).pipe(provided(fixed), Effect.withClock(virtual.clock))
    })

    it.effect("caches the token of an effect until it is invalidated", () =>
      Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const empty = { state: "Empty", expiresAt: Option.none(), acquiring: false, cooldown: Option.none() } as const
        deepStrictEqual(yield* provider.status, empty)
        const given = yield* provider.get
        deepStrictEqual(yield* provider.current, Option.some(given))
        yield* provider.invalidate(yield* token("another"))
        deepStrictEqual(yield* provider.current, Option.some(given), "another token was invalidated")
        yield* provider.invalidate(given)
        deepStrictEqual(yield* provider.status, empty)
      }).pipe(provided(token("given"))))
  })
})
