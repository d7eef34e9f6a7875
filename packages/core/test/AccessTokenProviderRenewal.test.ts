import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { DateTime, Effect, Fiber, Layer, Logger, LogLevel, Option, Redacted, TestClock } from "effect"
import { answering, layer as scripted, ScriptedSource, settle, token } from "./support/scriptedSource.js"
import * as VirtualClock from "./support/virtualClock.js"

const provided = (options: AccessTokenProvider.Options = {}) =>
  Effect.provide(Layer.provideMerge(AccessTokenProvider.layer(options), scripted))

const valueOf = (token: { readonly value: Redacted.Redacted }) => Redacted.value(token.value)

/** A token whose life, in milliseconds, is over as it comes. */
const dead = (life: number) =>
  Effect.map(DateTime.now, (acquiredAt) =>
    new AccessToken.AccessToken({
      value: Redacted.make("dead"),
      acquiredAt,
      expiresAt: DateTime.add(acquiredAt, { millis: life })
    }))

const outage = new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 6 })

/** A provider and its source; holds `one`, of an hour. */
const holding = (life: Parameters<typeof token>[1] = "60 minutes") =>
  Effect.gen(function*() {
    const provider = yield* AccessTokenProvider.AccessTokenProvider
    const source = yield* ScriptedSource
    const first = yield* Effect.fork(provider.get)
    yield* Effect.flatMap(source.next, (call) => call.answer(token("one", life)))
    yield* Fiber.join(first)
    return { provider, source }
  })

/** The value that `get` gives without waiting; fails the test if it waits. */
const atOnce = (provider: AccessTokenProvider.Service) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.fork(provider.get)
    yield* settle
    const exit = yield* Fiber.poll(fiber)
    if (Option.isNone(exit)) {
      yield* Fiber.interrupt(fiber)
      return assert.fail("the caller waits")
    }
    return valueOf(yield* exit.value)
  })

describe("AccessTokenProvider, renewal", () => {
  it.effect("refresh-soon: callers never wait, one background renewal starts, and its token is used", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* holding()
      yield* TestClock.adjust("56 minutes")
      for (let caller = 0; caller < 50; caller++) assert.strictEqual(yield* atOnce(provider), "one")
      assert.strictEqual((yield* provider.status).state, "RefreshSoon")
      assert.isTrue((yield* provider.status).acquiring)
      assert.strictEqual(yield* source.calls, 2)
      const renewal = yield* source.next
      assert.isTrue(Option.exists(renewal.replacing, (token) => valueOf(token) === "one"))
      yield* renewal.answer(token("two"))
      yield* settle
      assert.strictEqual(yield* atOnce(provider), "two")
      assert.strictEqual((yield* provider.status).state, "Fresh")
    }).pipe(provided()))

  it.effect("the renewal starts between 80 % and 100 % of refreshAhead before the end, not before", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* holding()
      yield* TestClock.adjust("54 minutes")
      yield* TestClock.adjust("59 seconds")
      yield* atOnce(provider)
      assert.strictEqual(yield* source.calls, 1, "5 minutes and a second are left")
      yield* TestClock.adjust("61 seconds")
      yield* atOnce(provider)
      assert.strictEqual(yield* source.calls, 2, "4 minutes are left")
    }).pipe(provided()))

  it.effect("margins are parts of a short token's own life: 25 % and 5 %", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* holding("100 seconds")
      yield* TestClock.adjust("74 seconds")
      assert.strictEqual((yield* provider.status).state, "Fresh")
      yield* TestClock.adjust("6 seconds")
      assert.strictEqual((yield* provider.status).state, "RefreshSoon")
      assert.strictEqual(yield* atOnce(provider), "one")
      yield* TestClock.adjust("15 seconds")
      assert.strictEqual((yield* provider.status).state, "RefreshSoon", "5 seconds are left, not less")
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual((yield* provider.status).state, "MustWait")
      yield* TestClock.adjust("4 seconds")
      assert.strictEqual((yield* provider.status).state, "Expired")
      assert.strictEqual(yield* source.calls, 2)
    }).pipe(provided()))

  it.effect("must-wait: callers wait for the renewal", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* holding()
      yield* TestClock.adjust("3580 seconds")
      assert.strictEqual((yield* provider.status).state, "MustWait")
      const caller = yield* Effect.fork(provider.get)
      const renewal = yield* source.next
      yield* TestClock.adjust("9 seconds")
      assert.isTrue(Option.isNone(yield* Fiber.poll(caller)), "waits")
      yield* renewal.answer(token("two"))
      assert.strictEqual(valueOf(yield* Fiber.join(caller)), "two")
    }).pipe(provided()))

  it.effect("must-wait: a hanging endpoint costs at most half of what is left", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* holding()
      yield* TestClock.adjust("3580 seconds")
      const caller = yield* Effect.fork(provider.get)
      yield* source.next
      yield* TestClock.adjust("9999 millis")
      yield* settle
      assert.isTrue(Option.isNone(yield* Fiber.poll(caller)), "20 s are left: waits up to 10 s")
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(valueOf(yield* Fiber.join(caller)), "one")
      const next = yield* Effect.fork(provider.get)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(valueOf(yield* Fiber.join(next)), "one")
      assert.strictEqual(yield* source.calls, 2, "one renewal hangs; none is added")
    }).pipe(provided()))

  it.effect("must-wait: a failing renewal costs nobody the living token", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* holding()
      yield* TestClock.adjust("3580 seconds")
      const callers = yield* Effect.fork(
        Effect.all(Array.from({ length: 10 }, () => provider.get), { concurrency: "unbounded" })
      )
      const renewal = yield* source.next
      yield* settle
      yield* renewal.answer(Effect.fail(outage))
      deepStrictEqual((yield* Fiber.join(callers)).map(valueOf), Array.from({ length: 10 }, () => "one"))
      assert.strictEqual(yield* atOnce(provider), "one", "served through the cooldown")
      assert.strictEqual(yield* source.calls, 2)
    }).pipe(provided()))

  it.effect("must-wait: the bound holds for a caller who cannot be interrupted too", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* holding()
      yield* TestClock.adjust("3580 seconds")
      const hanging = yield* Effect.fork(Effect.uninterruptible(provider.get))
      const renewal = yield* source.next
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(valueOf(yield* Fiber.join(hanging)), "one", "half of the 20 s is over")
      const served = yield* Effect.fork(Effect.uninterruptible(provider.get))
      yield* settle
      yield* renewal.answer(token("two"))
      assert.strictEqual(valueOf(yield* Fiber.join(served)), "two", "at once, not after the rest of the half")
    }).pipe(provided()))

  it.effect("a renewal that fails when its token is dead is warned of as well", () => {
    const lines: Array<string> = []
    return Effect.gen(function*() {
      const { provider, source } = yield* holding()
      yield* TestClock.adjust("56 minutes")
      yield* atOnce(provider)
      const renewal = yield* source.next
      yield* TestClock.adjust("5 minutes")
      yield* renewal.answer(Effect.fail(outage))
      yield* settle
      deepStrictEqual(lines, ["WARN"])
    }).pipe(
      provided(),
      Effect.provide(Logger.replace(
        Logger.defaultLogger,
        Logger.make(({ logLevel }) => {
          lines.push(logLevel.label)
        })
      ))
    )
  })

  it.effect("a token that is old when it comes is renewed in the background at most once a second", () =>
    Effect.gen(function*() {
      const virtual = VirtualClock.make()
      // 58 of its 60 minutes are gone, and each dies later than the one before.
      const source = yield* answering((n) =>
        Effect.map(DateTime.now, (now) =>
          new AccessToken.AccessToken({
            value: Redacted.make(`token-${n}`),
            acquiredAt: DateTime.subtract(now, { minutes: 58 }),
            expiresAt: DateTime.add(now, { minutes: 2 })
          }))
      )
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        for (let call = 0; call < 1000; call++) {
          yield* provider.get
          yield* virtual.advance("10 millis")
        }
        assert.isAtMost(yield* source.calls, 11, "10 seconds")
        assert.isAtLeast(yield* source.calls, 9)
      }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)), Effect.withClock(virtual.clock))
    }))

  it.effect("a token that comes again with a later end, as an endpoint tells what remains, is no progress", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* holding("100 seconds")
      yield* TestClock.adjust("80 seconds")
      yield* atOnce(provider)
      yield* Effect.flatMap(source.next, (call) => call.answer(token("one", "21 seconds")))
      yield* settle
      // Of 21 seconds at least 4.2 are refresh-soon, whatever its share by chance; the first pause is over.
      yield* TestClock.adjust("17 seconds")
      yield* atOnce(provider)
      yield* Effect.flatMap(source.next, (call) => call.answer(token("one", "5 seconds")))
      yield* settle
      // Of 5 seconds at least 1 is refresh-soon; the second pause is of 15 seconds at least.
      yield* TestClock.adjust("4200 millis")
      assert.strictEqual(yield* atOnce(provider), "one")
      assert.strictEqual((yield* provider.status).state, "RefreshSoon")
      assert.strictEqual(yield* source.calls, 3)
    }).pipe(provided({ cooldown: { base: "10 seconds" } })))

  it.effect("expired: callers wait for the renewal, and its failure is theirs", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* holding()
      yield* TestClock.adjust("60 minutes")
      const caller = yield* Effect.fork(Effect.flip(provider.get))
      const renewal = yield* source.next
      yield* renewal.answer(Effect.fail(outage))
      const error = yield* Fiber.join(caller)
      assert.instanceOf(error, AccessTokenError.TokenRequestError)
      assert.strictEqual(error.reason, "Transport")
      assert.strictEqual(error.attempts, 6)
      assert.isTrue(Option.isSome(error.retryAt))
    }).pipe(provided()))

  it.effect("one warning for each failed renewal, one debug line for each acquisition, no secret in them", () => {
    const lines: Array<{ readonly level: string; readonly text: string }> = []
    const logger = Logger.make(({ annotations, logLevel, message }) => {
      lines.push({ level: logLevel.label, text: `${String(message)} ${JSON.stringify([...annotations])}` })
    })
    return Effect.gen(function*() {
      const { provider, source } = yield* holding()
      yield* TestClock.adjust("56 minutes")
      yield* atOnce(provider)
      yield* atOnce(provider)
      yield* Effect.flatMap(source.next, (call) => call.answer(Effect.fail(outage)))
      yield* settle
      assert.strictEqual(yield* atOnce(provider), "one")
      yield* TestClock.adjust("1 seconds")
      yield* atOnce(provider)
      yield* Effect.flatMap(source.next, (call) => call.answer(Effect.die("invented")))
      yield* settle
      yield* TestClock.adjust("2 seconds")
      yield* atOnce(provider)
      yield* Effect.flatMap(source.next, (call) => call.answer(token("two")))
      yield* settle
      assert.strictEqual(yield* atOnce(provider), "two")
      deepStrictEqual(lines.map(({ level }) => level), ["DEBUG", "WARN", "WARN", "DEBUG"])
      assert.include(lines[1]?.text, "TokenRequestError")
      assert.include(lines[2]?.text, "Defect")
      const holdsToken = (text: string) => /\b(one|two)\b/.test(text)
      assert.isFalse(lines.some(({ text }) => holdsToken(text)), "no token")
      assert.isTrue(holdsToken(JSON.stringify({ value: "one" })), "the search finds one where there is one")
    }).pipe(
      provided(),
      Effect.provide(Layer.mergeAll(
        Logger.replace(Logger.defaultLogger, logger),
        Logger.minimumLogLevel(LogLevel.Debug)
      ))
    )
  })

  describe("an endpoint that repeats one token until it dies", () => {
    it.effect("gets at most one request a cooldown, callers never wait before leeway, no dead token is served", () =>
      Effect.gen(function*() {
        const repeated = yield* token("repeated")
        const source = yield* answering((n) => n < 100 ? Effect.succeed(repeated) : token("never"))
        yield* Effect.gen(function*() {
          const provider = yield* AccessTokenProvider.AccessTokenProvider
          assert.strictEqual(valueOf(yield* provider.get), "repeated")
          yield* TestClock.adjust("54 minutes")
          const startedAt = yield* source.calls
          // One caller a second for the last six minutes, the very last second included.
          for (let second = 0; second < 359; second++) {
            yield* TestClock.adjust("1 seconds")
            assert.strictEqual(yield* atOnce(provider), "repeated")
          }
          const renewals = (yield* source.calls) - startedAt
          // Cooldowns of at least 0.75, 1.5, 3, … 45 seconds fit into five minutes at most 12 times.
          assert.isAtMost(renewals, 12)
          assert.isAtLeast(renewals, 5)
        }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)))
      }))

    it.effect("once it is dead, the next one is asked for at once, whatever the cooldown", () =>
      Effect.gen(function*() {
        const { provider, source } = yield* holding("100 seconds")
        const repeated = yield* Effect.map(provider.current, Option.getOrThrow)
        yield* TestClock.adjust("96 seconds")
        const caller = yield* Effect.fork(provider.get)
        yield* Effect.flatMap(source.next, (call) => call.answer(Effect.succeed(repeated)))
        assert.strictEqual(valueOf(yield* Fiber.join(caller)), "one")
        yield* TestClock.adjust("500 millis")
        assert.strictEqual(yield* atOnce(provider), "one", "no further request within the cooldown")
        assert.strictEqual(yield* source.calls, 2)
        yield* TestClock.adjust("3500 millis")
        const after = yield* Effect.fork(provider.get)
        yield* Effect.flatMap(source.next, (call) => call.answer(token("two")))
        assert.strictEqual(valueOf(yield* Fiber.join(after)), "two")
      }).pipe(provided()))

    it.effect("a token that dies no later is accepted, and is no progress either", () =>
      Effect.gen(function*() {
        const { provider, source } = yield* holding()
        yield* TestClock.adjust("56 minutes")
        yield* atOnce(provider)
        yield* Effect.flatMap(source.next, (call) => call.answer(token("shorter", "10 seconds")))
        yield* settle
        assert.strictEqual(yield* atOnce(provider), "shorter")
        yield* TestClock.adjust("700 millis")
        yield* atOnce(provider)
        assert.strictEqual(yield* source.calls, 2)
      }).pipe(provided()))
  })

  it.effect("lifetimes of 1 s and less: at most one request a get, and none in the background within a second", () =>
    Effect.gen(function*() {
      for (const life of [1000, 500, 100]) {
        const virtual = VirtualClock.make()
        const source = yield* answering((n) => token(`token-${n}`, life))
        yield* Effect.gen(function*() {
          const provider = yield* AccessTokenProvider.AccessTokenProvider
          let background = 0
          for (let call = 0; call < 500; call++) {
            const before = yield* source.calls
            const { state } = yield* provider.status
            yield* provider.get
            yield* settle
            const requests = (yield* source.calls) - before
            assert.isAtMost(requests, 1)
            if (state !== "Empty" && state !== "Expired") background += requests
            yield* virtual.advance("10 millis")
          }
          assert.isAtMost(background, 5, `5 seconds of tokens of ${life} ms`)
        }).pipe(
          Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
          Effect.withClock(virtual.clock)
        )
      }
    }))

  it.effect("lifetimes of 0 and below: TokenExpiredError (DeadOnArrival), one request a get, none in the cooldown", () =>
    Effect.gen(function*() {
      for (const life of [0, -5000]) {
        const source = yield* answering(() => dead(life))
        yield* Effect.gen(function*() {
          const provider = yield* AccessTokenProvider.AccessTokenProvider
          const error = yield* Effect.flip(provider.get)
          assert.instanceOf(error, AccessTokenError.TokenExpiredError)
          assert.strictEqual(error.reason, "DeadOnArrival")
          assert.isTrue(Option.isSome(error.retryAt))
          for (let call = 0; call < 10; call++) yield* Effect.flip(provider.get)
          assert.strictEqual(yield* source.calls, 1)
          yield* TestClock.adjust("1 seconds")
          yield* Effect.flip(provider.get)
          assert.strictEqual(yield* source.calls, 2)
        }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)))
      }
    }))

  it.effect("a huge lifetime is held without a timer, and margins stay within their bounds", () =>
    Effect.gen(function*() {
      const { provider } = yield* holding("3650 days")
      yield* TestClock.adjust("3600 days")
      assert.strictEqual(yield* atOnce(provider), "one")
      assert.strictEqual((yield* provider.status).state, "Fresh")
    }).pipe(provided()))
})
