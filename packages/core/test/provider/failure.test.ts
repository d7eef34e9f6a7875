import { HttpClient, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider, ClientCredentials, TokenEndpoint } from "@store-api/core"
import { Cause, Clock, DateTime, Duration, Effect, Exit, Fiber, Layer, Option, Redacted, Ref, TestClock } from "effect"
import { answering, layer as scripted, ScriptedSource, settle, token, valueOf } from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

const provided = (options: AccessTokenProvider.Options = {}) =>
  Effect.provide(Layer.provideMerge(AccessTokenProvider.layer(options), scripted))

const down = new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 6 })
const refused = new AccessTokenError.TokenRefusedError({ reason: "InvalidClient", status: 401 })

/** Calls `get` every `step` for `total` milliseconds. Returns the times at which requests were sent. */
const requestTimes = (
  failure: AccessTokenError.AccessTokenError,
  options: { readonly step: number; readonly total: number }
) =>
  Effect.gen(function*() {
    const virtual = VirtualClock.make()
    const times = yield* Ref.make<ReadonlyArray<number>>([])
    const source = yield* answering(() =>
      Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        yield* Ref.update(times, (all) => [...all, now])
        return yield* Effect.fail(failure)
      })
    )
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      for (let passed = 0; passed < options.total; passed += options.step) {
        yield* Effect.exit(provider.get)
        yield* virtual.advance(options.step)
      }
    }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)), Effect.withClock(virtual.clock))
    return yield* Ref.get(times)
  })

const gaps = (times: ReadonlyArray<number>) => times.slice(1).map((time, index) => time - (times[index] ?? 0))

/** Each gap is 75 % to 100 % of its doubled cooldown, plus at most one step. */
const assertGaps = (times: ReadonlyArray<number>, max: number, step: number) => {
  gaps(times).forEach((gap, index) => {
    const pause = Math.min(1000 * 2 ** index, max)
    assert.isAtLeast(gap, 0.75 * pause, `gap ${index}`)
    assert.isAtMost(gap, pause + step, `gap ${index}`)
  })
}

describe("AccessTokenProvider, failure", () => {
  it.effect("all waiting callers get the failure, and the next call after the cooldown sends a new request", () =>
    Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      const source = yield* ScriptedSource
      const callers = yield* Effect.fork(
        Effect.all(Array.from({ length: 5 }, () => Effect.flip(provider.get)), { concurrency: "unbounded" })
      )
      const first = yield* source.next
      yield* settle
      yield* first.complete(Effect.fail(down))
      assert.strictEqual((yield* Fiber.join(callers)).length, 5)
      assert.strictEqual(yield* source.calls, 1, "5 callers, one request")
      yield* TestClock.adjust("1 seconds")
      const caller = yield* Effect.fork(provider.get)
      yield* Effect.flatMap(source.next, (call) => call.complete(token("back")))
      assert.strictEqual(valueOf(yield* Fiber.join(caller)), "back")
    }).pipe(provided()))

  it.effect("within the cooldown get fails immediately with the last error and its retryAt, and sends no request", () =>
    Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      const source = yield* ScriptedSource
      const caller = yield* Effect.fork(Effect.flip(provider.get))
      yield* Effect.flatMap(source.next, (call) => call.complete(Effect.fail(down)))
      const first = yield* Fiber.join(caller)
      const retryAt = Option.getOrThrow(first.retryAt).epochMillis
      assert.isAtLeast(retryAt, 750)
      assert.isAtMost(retryAt, 1000)
      const again = yield* Effect.flip(provider.get)
      assert.strictEqual(again._tag, "TokenRequestError")
      assert.strictEqual(Option.getOrThrow(again.retryAt).epochMillis, retryAt)
      const status = yield* provider.status
      assert.strictEqual(status.state, "Empty")
      assert.strictEqual(Option.getOrThrow(status.cooldown).error, "TokenRequestError")
      assert.strictEqual(Option.getOrThrow(status.cooldown).until.epochMillis, retryAt)
      assert.strictEqual(yield* source.calls, 1)
      yield* TestClock.setTime(retryAt)
      assert.isTrue(Option.isNone((yield* provider.status).cooldown))
      const fiber = yield* Effect.fork(provider.get)
      yield* source.next
      yield* Fiber.interrupt(fiber)
    }).pipe(provided()))

  test("TokenExpiredError has the end of the cooldown in retryAt", function*() {
    const source = yield* answering((n) => n === 1 ? token("cached") : Effect.fail(down))
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* provider.get
      yield* TestClock.adjust("60 minutes")
      assert.isTrue(Option.isNone((yield* Effect.flip(provider.current)).retryAt))
      const failed = yield* Effect.flip(provider.get)
      const expired = yield* Effect.flip(provider.current)
      assert.strictEqual(expired._tag, "TokenExpiredError")
      deepStrictEqual(expired.retryAt, failed.retryAt)
      assert.isTrue(Option.isSome(expired.retryAt))
    }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)))
  })

  test("while callers fail, the cooldowns double from 1 s to 5 s, each × 0.75 to 1", function*() {
    const times = yield* requestTimes(down, { step: 10, total: 60_000 })
    assertGaps(times, 5000, 10)
    assert.isAtLeast(times.length, 12)
  })

  test("when the endpoint refuses the credentials, the cooldowns double up to 60 s", function*() {
    const times = yield* requestTimes(refused, { step: 100, total: 300_000 })
    assertGaps(times, 60_000, 100)
    assert.isAtLeast(times.length, 8)
  })

  test("while a valid token is cached, the cooldowns double up to 60 s, and callers get that token", function*() {
    const virtual = VirtualClock.make()
    const lifetime = 10 * 3_600_000
    const source = yield* answering((n) => n === 1 ? token("cached", lifetime) : Effect.fail(down))
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* provider.get
      yield* virtual.advance(lifetime - 240_000)
      let last = 0
      const pauses: Array<number> = []
      for (let passed = 0; passed < 200_000; passed += 100) {
        assert.strictEqual(valueOf(yield* provider.get), "cached")
        yield* settle
        const calls = yield* source.calls
        if (calls - 1 > pauses.length) {
          pauses.push(passed - last)
          last = passed
        }
        yield* virtual.advance(100)
      }
      // From the second renewal on: 1, 2, 4, 8, 16, 32, 60 seconds, jittered.
      pauses.slice(1).forEach((pause, index) => {
        const full = Math.min(1000 * 2 ** index, 60_000)
        assert.isAtLeast(pause, 0.75 * full)
        assert.isAtMost(pause, full + 100)
      })
      assert.isAtLeast(pauses.length, 7)
    }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)), Effect.withClock(virtual.clock))
  })

  test("after an outage of ten minutes, callers get a token within 5 s", function*() {
    // The outage starts while a token is cached and continues after its expiry. From then on, the cooldowns of
    // renewals, up to 60 s, must not apply.
    const virtual = VirtualClock.make()
    const back = yield* Ref.make(false)
    const source = yield* answering((n) =>
      Effect.flatMap(Ref.get(back), (back) => n === 1 || back ? token(`token-${n}`) : Effect.fail(down))
    )
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* provider.get
      yield* virtual.advance("56 minutes")
      for (let second = 0; second < 600; second++) {
        yield* Effect.exit(provider.get)
        yield* virtual.advance("1 seconds")
      }
      assert.isTrue(Exit.isFailure(yield* Effect.exit(provider.get)), "callers fail during the outage")
      yield* Ref.set(back, true)
      let waited = 0
      while (Exit.isFailure(yield* Effect.exit(provider.get))) {
        yield* virtual.advance("100 millis")
        waited += 100
        assert.isAtMost(waited, 5000)
      }
    }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)), Effect.withClock(virtual.clock))
  })

  for (
    const [name, response, bound] of [
      ["of 503 responses", Effect.succeed(503), 5000],
      // In the worst case the outage ends as the third attempt starts. After two attempts of 10 s and pauses of at
      // least 150 and 300 ms, the deadline of 30 s leaves 9.55 s for it. A cooldown of up to 5 s follows.
      ["without a response", Effect.never, 14_600]
    ] as const
  ) {
    test(`with TokenEndpoint, after ten minutes ${name}, callers get a token within ${bound} ms`, function*() {
      const virtual = VirtualClock.make()
      let isDown = false
      const client = HttpClient.make((request) =>
        Effect.map(
          Effect.suspend(() => isDown ? response : Effect.succeed(200)),
          (status) =>
            HttpClientResponse.fromWeb(
              request,
              new Response(JSON.stringify({ access_token: "invented", token_type: "bearer" }), { status })
            )
        )
      )
      const credentials = ClientCredentials.make({
        clientId: "demo-client",
        clientSecret: Redacted.make("an invented secret")
      })
      const layer = AccessTokenProvider.layer().pipe(
        Layer.provide(TokenEndpoint.layer({ authUrl: "https://auth.store.example", credentials })),
        Layer.provide(Layer.succeed(HttpClient.HttpClient, client))
      )
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        yield* provider.get
        yield* virtual.advance("56 minutes")
        isDown = true
        // One more caller every second. They wait concurrently.
        for (let second = 0; second < 600; second++) {
          yield* Effect.fork(Effect.exit(provider.get))
          yield* virtual.advance("1 seconds")
        }
        assert.strictEqual((yield* provider.status).state, "Expired", "the token expired during the outage")
        isDown = false
        const end = virtual.monotonic()
        while ((yield* provider.status).state !== "Fresh") {
          yield* Effect.fork(Effect.exit(provider.get))
          yield* virtual.advance("100 millis")
          assert.isAtMost(virtual.monotonic() - end, bound)
        }
      }).pipe(Effect.provide(layer), Effect.withClock(virtual.clock))
    })
  }

  test("Retry-After lengthens a cooldown, up to an hour, and never shortens it", function*() {
    for (
      const [retryAfter, least, most] of [
        [100, 750, 1000],
        [20_000, 20_000, 20_000],
        [Duration.toMillis("7 days"), 3_600_000, 3_600_000],
        [-5000, 750, 1000]
      ] as const
    ) {
      const source = yield* answering(() =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          new AccessTokenError.TokenRefusedError({
            reason: "RateLimited",
            status: 429,
            retryAt: Option.some(DateTime.unsafeMake(now + retryAfter))
          }))
      )
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const now = yield* Clock.currentTimeMillis
        const error = yield* Effect.flip(provider.get)
        const pause = Option.getOrThrow(error.retryAt).epochMillis - now
        assert.isAtLeast(pause, least)
        assert.isAtMost(pause, most)
        yield* TestClock.adjust(least - 1)
        yield* Effect.flip(provider.get)
        assert.strictEqual(yield* source.calls, 1)
        yield* TestClock.adjust(most - least + 1)
        yield* Effect.flip(provider.get)
        assert.strictEqual(yield* source.calls, 2)
      }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)))
    }
  })

  test("refresh sends a request during a cooldown and resets the cooldowns", function*() {
    const source = yield* answering(() => Effect.fail(down))
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* Effect.flip(provider.get)
      yield* TestClock.adjust("1 seconds")
      yield* Effect.flip(provider.get)
      yield* TestClock.adjust("2 seconds")
      yield* Effect.flip(provider.get)
      assert.strictEqual(yield* source.calls, 3)
      const now = yield* Clock.currentTimeMillis
      const error = yield* Effect.flip(provider.refresh)
      assert.strictEqual(yield* source.calls, 4)
      assert.isAtMost(Option.getOrThrow(error.retryAt).epochMillis - now, 1000)
    }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)))
  })

  test("a success resets the cooldowns", function*() {
    const source = yield* answering((n) => n === 4 ? token("good", "1 seconds") : Effect.fail(down))
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      for (const pause of [1000, 2000, 4000]) {
        yield* Effect.flip(provider.get)
        yield* TestClock.adjust(pause)
      }
      assert.strictEqual(valueOf(yield* provider.get), "good")
      yield* TestClock.adjust("1 seconds")
      const now = yield* Clock.currentTimeMillis
      const error = yield* Effect.flip(provider.get)
      assert.isAtMost(Option.getOrThrow(error.retryAt).epochMillis - now, 1000)
    }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)))
  })

  test("cooldown.base and cooldown.max are the first and the longest cooldown", function*() {
    const source = yield* answering(() => Effect.fail(refused))
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      for (const pause of [100, 200, 300, 300]) {
        const now = yield* Clock.currentTimeMillis
        yield* Effect.flip(provider.get)
        const { cooldown } = yield* provider.status
        const length = Option.getOrThrow(cooldown).until.epochMillis - now
        assert.isAtMost(length, pause)
        assert.isAtLeast(length, 0.75 * pause - 1)
        yield* TestClock.adjust(pause)
      }
    }).pipe(
      Effect.provide(
        Layer.provide(
          AccessTokenProvider.layer({ cooldown: { base: "100 millis", max: "300 millis" } }),
          source.layer
        )
      )
    )
  })

  describe("a faulty source", () => {
    it.effect("a defect reaches the waiting callers and starts a cooldown, and the next call succeeds", () =>
      Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const source = yield* ScriptedSource
        const callers = yield* Effect.fork(
          Effect.all(Array.from({ length: 3 }, () => Effect.exit(provider.get)), { concurrency: "unbounded" })
        )
        const call = yield* source.next
        yield* settle
        yield* call.complete(Effect.die("an invented defect"))
        for (const exit of yield* Fiber.join(callers)) {
          assert.isTrue(Exit.isFailure(exit) && Cause.isDie(exit.cause))
        }
        const duringCooldown = yield* Effect.flip(provider.get)
        assert.instanceOf(duringCooldown, AccessTokenError.TokenRequestError)
        assert.isTrue(Option.isSome(duringCooldown.retryAt), "later callers get a typed error during the cooldown")
        assert.strictEqual(yield* source.calls, 1)
        yield* TestClock.adjust("1 seconds")
        const next = yield* Effect.fork(provider.get)
        yield* Effect.flatMap(source.next, (call) => call.complete(token("works")))
        assert.strictEqual(valueOf(yield* Fiber.join(next)), "works")
      }).pipe(provided()))

    test("an exception that acquire throws is a defect", function*() {
      const source = yield* answering((n) => {
        if (n === 1) throw new Error("an invented throw")
        return token("works")
      })
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const exit = yield* Effect.exit(provider.get)
        assert.isTrue(Exit.isFailure(exit) && Cause.isDie(exit.cause))
        yield* TestClock.adjust("1 seconds")
        assert.strictEqual(valueOf(yield* provider.get), "works")
      }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)))
    })

    test("callers get a valid cached token despite a defect in the renewal", function*() {
      const source = yield* answering((n) => n === 1 ? token("cached") : Effect.die("an invented defect"))
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        yield* provider.get
        yield* TestClock.adjust("3580 seconds")
        assert.strictEqual(
          valueOf(yield* provider.get),
          "cached",
          "must-wait: gets the cached token when the renewal has failed"
        )
        assert.strictEqual(valueOf(yield* provider.get), "cached", "within the cooldown")
        assert.strictEqual(yield* source.calls, 2)
      }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)))
    })

    test("a source that interrupts itself causes a TokenRequestError, not an interruption", function*() {
      const source = yield* answering((n) => n === 1 ? Effect.interrupt : token("works"))
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const error = yield* Effect.flip(provider.get)
        assert.instanceOf(error, AccessTokenError.TokenRequestError)
        assert.notStrictEqual(error.reason, "Closed")
        yield* TestClock.adjust("1 seconds")
        assert.strictEqual(valueOf(yield* provider.get), "works")
      }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)))
    })
  })
})
