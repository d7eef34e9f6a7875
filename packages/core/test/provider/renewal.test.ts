import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { DateTime, Effect, Fiber, Layer, Logger, LogLevel, Option, Redacted, TestClock } from "effect"
import {
  answering,
  layer as scripted,
  outage,
  ScriptedSource,
  settle,
  token,
  valueOf
} from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

const provided = (options: AccessTokenProvider.Options = {}) =>
  Effect.provide(Layer.provideMerge(AccessTokenProvider.layer(options), scripted))

/** A token with a lifetime, in milliseconds, of zero or less. */
const expiredOnArrival = (lifetime: number) =>
  Effect.map(DateTime.now, (acquiredAt) =>
    new AccessToken.AccessToken({
      value: Redacted.make("expired"),
      acquiredAt,
      expiresAt: DateTime.add(acquiredAt, { millis: lifetime })
    }))

/** A provider that has cached the token `one`, and its source. */
const withCachedToken = (lifetime: Parameters<typeof token>[1] = "60 minutes") =>
  Effect.gen(function*() {
    const provider = yield* AccessTokenProvider.AccessTokenProvider
    const source = yield* ScriptedSource
    const first = yield* Effect.fork(provider.get)
    yield* Effect.flatMap(source.next, (call) => call.complete(token("one", lifetime)))
    yield* Fiber.join(first)
    return { provider, source }
  })

/** Returns the token value from `get`. Fails the test if `get` waits. */
const getWithoutWaiting = (provider: AccessTokenProvider.Service) =>
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
  it.effect("refresh-soon: callers do not wait, one background renewal starts, and later callers get its token", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* withCachedToken()
      yield* TestClock.adjust("56 minutes")
      for (let caller = 0; caller < 50; caller++) assert.strictEqual(yield* getWithoutWaiting(provider), "one")
      assert.strictEqual((yield* provider.status).state, "RefreshSoon")
      assert.isTrue((yield* provider.status).acquiring)
      assert.strictEqual(yield* source.calls, 2)
      const renewal = yield* source.next
      assert.isTrue(Option.exists(renewal.replacing, (token) => valueOf(token) === "one"))
      yield* renewal.complete(token("two"))
      yield* settle
      assert.strictEqual(yield* getWithoutWaiting(provider), "two")
      assert.strictEqual((yield* provider.status).state, "Fresh")
    }).pipe(provided()))

  it.effect("the renewal starts when 80 % to 100 % of refreshAhead is left, not earlier", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* withCachedToken()
      yield* TestClock.adjust("54 minutes")
      yield* TestClock.adjust("59 seconds")
      yield* getWithoutWaiting(provider)
      assert.strictEqual(yield* source.calls, 1, "5 minutes and a second are left")
      yield* TestClock.adjust("61 seconds")
      yield* getWithoutWaiting(provider)
      assert.strictEqual(yield* source.calls, 2, "4 minutes are left")
    }).pipe(provided()))

  it.effect("for short lifetimes the margins are 25 % and 5 % of the lifetime", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* withCachedToken("100 seconds")
      yield* TestClock.adjust("74 seconds")
      assert.strictEqual((yield* provider.status).state, "Fresh")
      yield* TestClock.adjust("6 seconds")
      assert.strictEqual((yield* provider.status).state, "RefreshSoon")
      assert.strictEqual(yield* getWithoutWaiting(provider), "one")
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
      const { provider, source } = yield* withCachedToken()
      yield* TestClock.adjust("3580 seconds")
      assert.strictEqual((yield* provider.status).state, "MustWait")
      const caller = yield* Effect.fork(provider.get)
      const renewal = yield* source.next
      yield* TestClock.adjust("9 seconds")
      assert.isTrue(Option.isNone(yield* Fiber.poll(caller)), "waits")
      yield* renewal.complete(token("two"))
      assert.strictEqual(valueOf(yield* Fiber.join(caller)), "two")
    }).pipe(provided()))

  it.effect("must-wait: when the endpoint hangs, callers wait for at most half of the remaining lifetime", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* withCachedToken()
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
      assert.strictEqual(yield* source.calls, 2, "no second renewal starts while one hangs")
    }).pipe(provided()))

  it.effect("must-wait: when the renewal fails, callers get the cached token", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* withCachedToken()
      yield* TestClock.adjust("3580 seconds")
      const callers = yield* Effect.fork(
        Effect.all(Array.from({ length: 10 }, () => provider.get), { concurrency: "unbounded" })
      )
      const renewal = yield* source.next
      yield* settle
      yield* renewal.complete(Effect.fail(outage))
      deepStrictEqual((yield* Fiber.join(callers)).map(valueOf), Array.from({ length: 10 }, () => "one"))
      assert.strictEqual(yield* getWithoutWaiting(provider), "one", "returned during the cooldown")
      assert.strictEqual(yield* source.calls, 2)
    }).pipe(provided()))

  it.effect("must-wait: an uninterruptible caller does not wait longer", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* withCachedToken()
      yield* TestClock.adjust("3580 seconds")
      const hanging = yield* Effect.fork(Effect.uninterruptible(provider.get))
      const renewal = yield* source.next
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(valueOf(yield* Fiber.join(hanging)), "one", "after half of the 20 s")
      const served = yield* Effect.fork(Effect.uninterruptible(provider.get))
      yield* settle
      yield* renewal.complete(token("two"))
      assert.strictEqual(valueOf(yield* Fiber.join(served)), "two", "as soon as the renewal succeeds")
    }).pipe(provided()))

  it.effect("a renewal that fails after its token expired logs a warning", () => {
    const lines: Array<string> = []
    return Effect.gen(function*() {
      const { provider, source } = yield* withCachedToken()
      yield* TestClock.adjust("56 minutes")
      yield* getWithoutWaiting(provider)
      const renewal = yield* source.next
      yield* TestClock.adjust("5 minutes")
      yield* renewal.complete(Effect.fail(outage))
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

  test("a token that is close to expiry on arrival is renewed in the background at most once a second", function*() {
    const virtual = VirtualClock.make()
    // On arrival, each token is 58 of its 60 minutes old. Each expires later than the one before.
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
  })

  it.effect("the same token value with a later expiresAt is not progress", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* withCachedToken("100 seconds")
      yield* TestClock.adjust("80 seconds")
      yield* getWithoutWaiting(provider)
      yield* Effect.flatMap(source.next, (call) => call.complete(token("one", "21 seconds")))
      yield* settle
      // At least the last 4 of 20 seconds are refresh-soon, with any jitter.
      yield* TestClock.adjust("17 seconds")
      yield* getWithoutWaiting(provider)
      yield* Effect.flatMap(source.next, (call) => call.complete(token("one", "5 seconds")))
      yield* settle
      // At least the last of 5 seconds would be refresh-soon after progress.
      yield* TestClock.adjust("4200 millis")
      assert.strictEqual(yield* getWithoutWaiting(provider), "one")
      assert.strictEqual((yield* provider.status).state, "Fresh")
      assert.strictEqual(yield* source.calls, 3)
    }).pipe(provided()))

  it.effect("expired: callers wait for the acquisition, and get its failure", () =>
    Effect.gen(function*() {
      const { provider, source } = yield* withCachedToken()
      yield* TestClock.adjust("60 minutes")
      const caller = yield* Effect.fork(Effect.flip(provider.get))
      const renewal = yield* source.next
      yield* renewal.complete(Effect.fail(outage))
      const error = yield* Fiber.join(caller)
      assert.instanceOf(error, AccessTokenError.TokenRequestError)
      assert.strictEqual(error.reason, "Transport")
      assert.strictEqual(error.attempts, 6)
      assert.isTrue(Option.isSome(error.retryAt))
    }).pipe(provided()))

  it.effect("logs one warning per failed renewal and one debug line per acquisition, without the token", () => {
    const lines: Array<{ readonly level: string; readonly text: string }> = []
    const logger = Logger.make(({ annotations, logLevel, message }) => {
      lines.push({ level: logLevel.label, text: `${String(message)} ${JSON.stringify([...annotations])}` })
    })
    return Effect.gen(function*() {
      const { provider, source } = yield* withCachedToken()
      yield* TestClock.adjust("56 minutes")
      yield* getWithoutWaiting(provider)
      yield* getWithoutWaiting(provider)
      yield* Effect.flatMap(source.next, (call) => call.complete(Effect.fail(outage)))
      yield* settle
      assert.strictEqual(yield* getWithoutWaiting(provider), "one")
      yield* TestClock.adjust("1 seconds")
      yield* getWithoutWaiting(provider)
      yield* Effect.flatMap(source.next, (call) => call.complete(Effect.die("invented")))
      yield* settle
      yield* TestClock.adjust("2 seconds")
      yield* getWithoutWaiting(provider)
      yield* Effect.flatMap(source.next, (call) => call.complete(token("two")))
      yield* settle
      assert.strictEqual(yield* getWithoutWaiting(provider), "two")
      deepStrictEqual(lines.map(({ level }) => level), ["DEBUG", "WARN", "WARN", "DEBUG"])
      assert.include(lines[1]?.text, "TokenRequestError")
      assert.include(lines[2]?.text, "Defect")
      const holdsToken = (text: string) => /\b(one|two)\b/.test(text)
      assert.isFalse(lines.some(({ text }) => holdsToken(text)), "no token")
      assert.isTrue(holdsToken(JSON.stringify({ value: "one" })), "control: the search finds a token")
    }).pipe(
      provided(),
      Effect.provide(Layer.mergeAll(
        Logger.replace(Logger.defaultLogger, logger),
        Logger.minimumLogLevel(LogLevel.Debug)
      ))
    )
  })

  describe("an endpoint that repeats one token until it expires", () => {
    it.effect.each([
      { seconds: 3600, expected: [5], endpoint: "returns what is left in whole seconds", precision: 1000 },
      { seconds: 3600, expected: [5], endpoint: "returns the same expiry", precision: 1 },
      { seconds: 40, expected: [2, 3], endpoint: "returns what is left in whole seconds", precision: 1000 },
      { seconds: 40, expected: [2, 3], endpoint: "returns the same expiry", precision: 1 }
    ])(
      "gets few requests in $seconds seconds, no caller waits before it expires, and then the next token is acquired: it $endpoint",
      ({ expected, precision, seconds }) =>
        Effect.gen(function*() {
          const virtual = VirtualClock.make()
          const expiresAt = virtual.wall() + seconds * 1000
          const source = yield* answering(() => {
            const left = expiresAt - virtual.wall()
            return left > 0 ? token("repeated", Math.floor(left / precision) * precision) : token("next")
          })
          yield* Effect.gen(function*() {
            const provider = yield* AccessTokenProvider.AccessTokenProvider
            assert.strictEqual(valueOf(yield* provider.get), "repeated")
            yield* virtual.advance(seconds * 700)
            while (virtual.wall() < expiresAt) {
              assert.strictEqual(yield* getWithoutWaiting(provider), "repeated")
              yield* virtual.advance(100)
            }
            assert.include(expected, yield* source.calls)
            assert.strictEqual(yield* getWithoutWaiting(provider), "next")
          }).pipe(
            Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
            Effect.withClock(virtual.clock)
          )
        })
    )

    it.effect("gets no request when it is about to expire, and callers get a new token as soon as there is one", () =>
      Effect.gen(function*() {
        const { provider, source } = yield* withCachedToken("40 seconds")
        yield* TestClock.adjust("38500 millis")
        const caller = yield* Effect.fork(provider.get)
        yield* Effect.flatMap(source.next, (call) => call.complete(token("one", "1500 millis")))
        assert.strictEqual(valueOf(yield* Fiber.join(caller)), "one")
        yield* TestClock.adjust("1499 millis")
        assert.strictEqual(yield* getWithoutWaiting(provider), "one")
        assert.strictEqual(yield* source.calls, 2)
        yield* TestClock.adjust("1 millis")
        const next = yield* Effect.fork(provider.get)
        yield* Effect.flatMap(source.next, (call) => call.complete(token("two")))
        assert.strictEqual(valueOf(yield* Fiber.join(next)), "two")
      }).pipe(provided()))

    test("gets at most one request per second, even with the shortest cooldown", function*() {
      const repeated = yield* token("repeated")
      const source = yield* answering(() => Effect.succeed(repeated))
      const shortest = { cooldown: { base: "100 millis", max: "100 millis" } } as const
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        yield* provider.get
        yield* TestClock.adjust("56 minutes")
        for (let call = 0; call < 100; call++) {
          yield* TestClock.adjust("100 millis")
          assert.strictEqual(yield* getWithoutWaiting(provider), "repeated")
        }
        assert.isAtMost(yield* source.calls, 12)
      }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(shortest), source.layer)))
    })

    it.effect("gets a request immediately after the token expired, even during the cooldown", () =>
      Effect.gen(function*() {
        const { provider, source } = yield* withCachedToken("100 seconds")
        const repeated = yield* Effect.map(provider.current, Option.getOrThrow)
        yield* TestClock.adjust("96 seconds")
        const caller = yield* Effect.fork(provider.get)
        yield* Effect.flatMap(source.next, (call) => call.complete(Effect.succeed(repeated)))
        assert.strictEqual(valueOf(yield* Fiber.join(caller)), "one")
        yield* TestClock.adjust("500 millis")
        assert.strictEqual(yield* getWithoutWaiting(provider), "one", "no further request within the cooldown")
        assert.strictEqual(yield* source.calls, 2)
        yield* TestClock.adjust("3500 millis")
        const after = yield* Effect.fork(provider.get)
        yield* Effect.flatMap(source.next, (call) => call.complete(token("two")))
        assert.strictEqual(valueOf(yield* Fiber.join(after)), "two")
      }).pipe(provided()))

    it.effect("a token that does not expire later is accepted, but is not progress", () =>
      Effect.gen(function*() {
        const { provider, source } = yield* withCachedToken()
        yield* TestClock.adjust("56 minutes")
        yield* getWithoutWaiting(provider)
        yield* Effect.flatMap(source.next, (call) => call.complete(token("shorter", "10 seconds")))
        yield* settle
        assert.strictEqual(yield* getWithoutWaiting(provider), "shorter")
        yield* TestClock.adjust("700 millis")
        yield* getWithoutWaiting(provider)
        assert.strictEqual(yield* source.calls, 2)
      }).pipe(provided()))
  })

  test("lifetimes of 1 s and less: at most one request per get, and no background renewal within a second", function*() {
    for (const lifetime of [1000, 500, 100]) {
      const virtual = VirtualClock.make()
      const source = yield* answering((n) => token(`token-${n}`, lifetime))
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
        assert.isAtMost(background, 5, `5 seconds of tokens of ${lifetime} ms`)
      }).pipe(
        Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
        Effect.withClock(virtual.clock)
      )
    }
  })

  test("lifetimes of 0 and less: get fails with DeadOnArrival, and sends no request during the cooldown", function*() {
    for (const lifetime of [0, -5000]) {
      const source = yield* answering(() => expiredOnArrival(lifetime))
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
  })

  it.effect("a token with a huge lifetime stays fresh until the longest margin begins", () =>
    Effect.gen(function*() {
      const { provider } = yield* withCachedToken("3650 days")
      yield* TestClock.adjust("3600 days")
      assert.strictEqual(yield* getWithoutWaiting(provider), "one")
      assert.strictEqual((yield* provider.status).state, "Fresh")
    }).pipe(provided()))
})
