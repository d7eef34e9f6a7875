import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { Effect, Fiber, Layer, Option, TestClock } from "effect"
import { answering, layer as scripted, ScriptedSource, settle, token, valueOf } from "./support/scriptedSource.js"
import * as VirtualClock from "./support/virtualClock.js"

const numbered = Effect.map(
  answering((n) => token(`token-${n}`)),
  ({ calls, layer }) => ({ calls, layer: Layer.provide(AccessTokenProvider.layer(), layer) })
)

describe("AccessTokenProvider, rejection", () => {
  it.effect("the first rejection drops the token, and a further one within the interval has no effect", () =>
    Effect.gen(function*() {
      const { calls, layer } = yield* numbered
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        yield* provider.invalidate(yield* provider.get)
        const second = yield* provider.get
        assert.strictEqual(valueOf(second), "token-2")
        yield* TestClock.adjust("999 millis")
        yield* provider.invalidate(second)
        assert.strictEqual(yield* provider.get, second, "the token is kept: the caller gets the API's 401")
        yield* TestClock.adjust("1 millis")
        yield* provider.invalidate(second)
        assert.strictEqual(valueOf(yield* provider.get), "token-3")
        assert.strictEqual(yield* calls, 3)
      }).pipe(Effect.provide(layer))
    }))

  it.effect("when an API rejects every token under load, the interval doubles from 1 s to 60 s", () =>
    Effect.gen(function*() {
      const virtual = VirtualClock.make()
      const { calls, layer } = yield* numbered
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        // For ten minutes, 20 calls per second are rejected with a 401.
        for (let call = 0; call < 12_000; call++) {
          yield* provider.invalidate(yield* provider.get)
          yield* virtual.advance("50 millis")
        }
        // After 1, 1, 2, 4, … 32 s, then one per minute.
        assert.isAtMost(yield* calls, 18)
        assert.isAtLeast(yield* calls, 14)
      }).pipe(Effect.provide(layer), Effect.withClock(virtual.clock))
    }))

  it.effect.each([100, 400, 900, 1100, 2000, 5000, 30_000, 59_000, 61_000])(
    "when an API rejects every token, calls every %s ms send at most 20 token requests in ten minutes",
    (interval) =>
      Effect.gen(function*() {
        const virtual = VirtualClock.make()
        const { calls, layer } = yield* numbered
        yield* Effect.gen(function*() {
          const provider = yield* AccessTokenProvider.AccessTokenProvider
          while (virtual.monotonic() < 600_000) {
            const token = yield* provider.get
            yield* provider.invalidate(token)
            // AuthorizedHttpClient repeats the request with this token, and invalidates it if it is rejected, too.
            const replacement = yield* provider.get
            if (replacement !== token) yield* provider.invalidate(replacement)
            yield* virtual.advance(interval)
          }
          assert.isAtMost(yield* calls, 20)
          assert.isAtLeast(yield* calls, 10)
        }).pipe(Effect.provide(layer), Effect.withClock(virtual.clock))
      })
  )

  it.effect("when a minute passes without a rejection, the next rejection drops the token immediately", () =>
    Effect.gen(function*() {
      const virtual = VirtualClock.make()
      const { calls, layer } = yield* numbered
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        for (let call = 0; call < 600; call++) {
          yield* provider.invalidate(yield* provider.get)
          yield* virtual.advance("100 millis")
        }
        yield* virtual.advance("64 seconds")
        yield* provider.invalidate(yield* provider.get)
        const good = yield* provider.get
        const before = yield* calls
        yield* virtual.advance("64 seconds")
        assert.strictEqual(yield* provider.get, good, "the same token while it is not rejected")
        yield* provider.invalidate(good)
        const next = yield* provider.get
        assert.strictEqual(yield* calls, before + 1)
        yield* virtual.advance("1 seconds")
        yield* provider.invalidate(next)
        yield* provider.get
        assert.strictEqual(yield* calls, before + 2, "the interval is 1 s again after a minute without a rejection")
      }).pipe(Effect.provide(layer), Effect.withClock(virtual.clock))
    }))

  it.effect("when the endpoint returns the rejected token again, one request per interval is sent", () =>
    Effect.gen(function*() {
      const virtual = VirtualClock.make()
      const same = yield* Effect.withClock(token("same"), virtual.clock)
      const source = yield* answering(() => Effect.succeed(same))
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        for (let call = 0; call < 100; call++) {
          yield* provider.invalidate(yield* provider.get)
          yield* virtual.advance("100 millis")
        }
        // In 10 seconds: two requests at the start, then one each after intervals of 1, 2 and 4 seconds.
        assert.isAtMost(yield* source.calls, 5)
      }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)), Effect.withClock(virtual.clock))
    }))

  it.effect("the interval keeps doubling when refresh returns the rejected token again", () =>
    Effect.gen(function*() {
      const virtual = VirtualClock.make()
      const same = yield* Effect.withClock(token("same"), virtual.clock)
      const source = yield* answering(() => Effect.succeed(same))
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        yield* provider.invalidate(yield* provider.get)
        yield* provider.invalidate(yield* provider.get)
        yield* provider.refresh
        yield* virtual.advance("1 seconds")
        yield* provider.invalidate(same)
        yield* provider.get
        const calls = yield* source.calls
        yield* virtual.advance("1500 millis")
        yield* provider.invalidate(same)
        yield* provider.get
        assert.strictEqual(yield* source.calls, calls, "the interval is 2 s")
      }).pipe(
        Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
        Effect.withClock(virtual.clock)
      )
    }))

  it.effect("a rejection does not lengthen the cooldown after a failure", () =>
    Effect.gen(function*() {
      const down = new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 })
      const source = yield* answering((n) => n === 2 ? Effect.fail(down) : token(`token-${n}`))
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        yield* provider.invalidate(yield* provider.get)
        assert.strictEqual((yield* Effect.flip(provider.get))._tag, "TokenRequestError")
        yield* TestClock.adjust("1 seconds")
        const third = yield* provider.get
        assert.strictEqual(valueOf(third), "token-3")
        assert.strictEqual(yield* source.calls, 3)
      }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)))
    }))

  it.effect("when the token is rejected during its renewal, callers wait for the renewal and do not get the rejected token", () =>
    Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      const source = yield* ScriptedSource
      const first = yield* Effect.fork(provider.get)
      yield* Effect.flatMap(source.next, (call) => call.complete(token("one")))
      const one = yield* Fiber.join(first)
      yield* TestClock.adjust("56 minutes")
      yield* provider.get
      const renewal = yield* source.next
      yield* provider.invalidate(one)
      deepStrictEqual(yield* provider.current, Option.none())
      const waiting = yield* Effect.fork(provider.get)
      yield* settle
      assert.strictEqual(yield* source.calls, 2)
      yield* renewal.complete(token("two"))
      assert.strictEqual(valueOf(yield* Fiber.join(waiting)), "two")
      yield* provider.invalidate(one)
      assert.strictEqual(
        valueOf(yield* provider.get),
        "two",
        "a late rejection of the old token does not drop the new one"
      )
      yield* provider.invalidate(yield* provider.get)
      assert.strictEqual(
        valueOf(yield* provider.get),
        "two",
        "the rejection is within the interval, which began when the renewal ended"
      )
    }).pipe(Effect.provide(Layer.provideMerge(AccessTokenProvider.layer(), scripted))))

  it.effect("when the token is rejected while callers wait in must-wait, they get the new token", () =>
    Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      const source = yield* ScriptedSource
      const first = yield* Effect.fork(provider.get)
      yield* Effect.flatMap(source.next, (call) => call.complete(token("one")))
      const one = yield* Fiber.join(first)
      yield* TestClock.adjust("3580 seconds")
      const waiting = yield* Effect.fork(provider.get)
      const renewal = yield* source.next
      yield* settle
      yield* provider.invalidate(one)
      yield* TestClock.adjust("10 seconds")
      yield* settle
      assert.isTrue(
        Option.isNone(yield* Fiber.poll(waiting)),
        "half of the remaining lifetime is over, and the cached token was dropped"
      )
      yield* renewal.complete(token("two"))
      assert.strictEqual(valueOf(yield* Fiber.join(waiting)), "two")
    }).pipe(Effect.provide(Layer.provideMerge(AccessTokenProvider.layer(), scripted))))
})
