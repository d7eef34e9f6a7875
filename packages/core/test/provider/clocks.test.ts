import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { Clock, DateTime, Effect, Fiber, Layer, Option } from "effect"
import { answering, settle, token, valueOf } from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

const hour = 3_600_000

const run = <A, E>(
  test: (tools: {
    readonly virtual: VirtualClock.VirtualClock
    readonly provider: AccessTokenProvider.Service
    readonly calls: Effect.Effect<number>
  }) => Effect.Effect<A, E>,
  lifetime = hour
) =>
  Effect.gen(function*() {
    const virtual = VirtualClock.make()
    const source = yield* answering((n) => token(`token-${n}`, lifetime))
    return yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* provider.get
      return yield* test({ virtual, provider, calls: source.calls })
    }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)), Effect.withClock(virtual.clock))
  })

describe("AccessTokenProvider, clocks", () => {
  for (const [name, by] of [["1 hour", hour], ["24 hours", 24 * hour]] as const) {
    it.effect(`when the wall clock moves forward ${name}, the token expires, and one acquisition replaces it`, () =>
      run(({ calls, provider, virtual }) =>
        Effect.gen(function*() {
          virtual.jump(by)
          assert.strictEqual((yield* provider.status).state, "Expired")
          assert.strictEqual(valueOf(yield* provider.get), "token-2")
          yield* virtual.advance("30 minutes")
          assert.strictEqual(valueOf(yield* provider.get), "token-2")
          assert.strictEqual(yield* calls, 2)
        })
      ))

    it.effect(`when the wall clock moves back ${name}, the token fails with ClockMovedBack, and the next one is valid for 60 minutes`, () =>
      run(({ calls, provider, virtual }) =>
        Effect.gen(function*() {
          yield* virtual.advance("30 minutes")
          virtual.jump(-by)
          const error = yield* Effect.flip(provider.current)
          assert.instanceOf(error, AccessTokenError.TokenExpiredError)
          assert.strictEqual(error.reason, "ClockMovedBack")
          assert.strictEqual(valueOf(yield* provider.get), "token-2")
          yield* virtual.advance("59 minutes")
          yield* provider.get
          yield* settle
          yield* virtual.advance("1 minutes")
          assert.strictEqual(valueOf(yield* provider.get), "token-3")
          assert.strictEqual(yield* calls, 3)
        })
      ))
  }

  it.effect("when the wall clock moves back by less than the token's age, the token still expires after 60 minutes", () =>
    run(({ calls, provider, virtual }) =>
      Effect.gen(function*() {
        yield* virtual.advance("50 minutes")
        virtual.jump(-40 * 60_000)
        assert.strictEqual(valueOf(yield* provider.get), "token-1")
        yield* virtual.advance("10 minutes")
        assert.strictEqual((yield* provider.status).state, "Expired", "by the wall clock, 40 minutes are left")
        assert.strictEqual((yield* Effect.flip(provider.current)).reason, "Elapsed")
        assert.strictEqual(valueOf(yield* provider.get), "token-2")
        assert.strictEqual(yield* calls, 2)
      })
    ))

  test("a caller that joins a renewal while the wall clock is ahead does not get its failure once the clock is corrected", function*() {
    const virtual = VirtualClock.make()
    const down = new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 })
    const source = yield* answering((n) =>
      n === 1 ? token("token-1") : Effect.zipRight(Effect.sleep("5 seconds"), Effect.fail(down))
    )
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* provider.get
      yield* virtual.advance("3590 seconds")
      yield* Effect.fork(provider.get)
      yield* settle
      assert.strictEqual(yield* source.calls, 2, "the renewal is in flight")
      virtual.jump(20_000)
      assert.strictEqual((yield* provider.status).state, "Expired")
      const caller = yield* Effect.fork(provider.get)
      yield* settle
      virtual.jump(-20_000)
      yield* virtual.advance("5 seconds")
      assert.strictEqual(valueOf(yield* Fiber.join(caller)), "token-1")
      assert.strictEqual(yield* source.calls, 2)
    }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)), Effect.withClock(virtual.clock))
  })

  test("a token that a clock made expire is not passed to the source, which would remove it from a store as rejected", function*() {
    const virtual = VirtualClock.make()
    const replaced: Array<string | undefined> = []
    const source = yield* answering((n, replacing) => {
      replaced.push(Option.getOrUndefined(Option.map(replacing, valueOf)))
      return token(`token-${n}`)
    })
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* provider.get
      virtual.jump(-10 * 60_000)
      yield* provider.get
      yield* virtual.advance("60 minutes")
      yield* provider.get
      yield* provider.refresh
      yield* provider.invalidate(yield* provider.get)
      yield* provider.get
    }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)), Effect.withClock(virtual.clock))
    deepStrictEqual(replaced, [undefined, undefined, undefined, "token-3", "token-4"])
  })

  it.effect("when the wall clock moves by 1 s, as NTP does, the token stays valid", () =>
    run(({ calls, provider, virtual }) =>
      Effect.gen(function*() {
        virtual.jump(-1000)
        assert.strictEqual(valueOf(yield* provider.get), "token-1")
        virtual.jump(2000)
        assert.strictEqual(valueOf(yield* provider.get), "token-1")
        virtual.jump(-2001)
        yield* provider.get
        assert.strictEqual(yield* calls, 2, "1 001 ms before acquiredAt is too far back")
      })
    ))

  it.effect("when the machine sleeps and only the wall clock advances, the token expires", () =>
    run(({ calls, provider, virtual }) =>
      Effect.gen(function*() {
        virtual.jump(2 * hour)
        assert.strictEqual(valueOf(yield* provider.get), "token-2")
        assert.strictEqual(yield* calls, 2)
      })
    ))

  test("clock jumps during the acquisition, before and after acquiredAt is set, never extend the lifetime", function*() {
    const jumps = [0, -900, 900, -30 * 60_000, 30 * 60_000, -hour, hour, -24 * hour, 24 * hour]
    let served = 0
    for (const [before, after] of jumps.flatMap((before) => jumps.map((after) => [before, after] as const))) {
      const virtual = VirtualClock.make()
      const source = yield* answering((n) =>
        Effect.gen(function*() {
          virtual.jump(before)
          const acquired = yield* token(`token-${n}`)
          yield* Effect.sleep("1 seconds")
          virtual.jump(after)
          return acquired
        })
      )
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        const getting = yield* Effect.fork(Effect.exit(provider.get))
        yield* virtual.advance("1 seconds")
        yield* Fiber.join(getting)
        const isLive = Effect.map(provider.status, ({ state }) => state !== "Expired" && state !== "Empty")
        while (yield* isLive) {
          served++
          yield* virtual.advance("1 minutes")
          assert.isAtMost(virtual.monotonic(), hour + 60_000, `jumps ${before} and ${after}`)
        }
      }).pipe(
        Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
        Effect.withClock(virtual.clock)
      )
    }
    assert.isAbove(served, 1000, "most of the tokens were valid for a while")
  })

  test("when the same token arrives again after the wall clock moved back, its lifetime is not extended", function*() {
    const virtual = VirtualClock.make()
    const same = yield* Effect.withClock(token("same"), virtual.clock)
    const source = yield* answering(() => Effect.succeed(same))
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* provider.get
      yield* virtual.advance("57 minutes")
      virtual.jump(-40 * 60_000)
      yield* provider.refresh
      yield* virtual.advance("4 minutes")
      assert.strictEqual((yield* provider.status).state, "Expired")
    }).pipe(
      Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
      Effect.withClock(virtual.clock)
    )
  })

  test("when the wall clock moves back during the acquisition, get fails with ClockMovedBack, and the next token is valid", function*() {
    const virtual = VirtualClock.make()
    const source = yield* answering((n) =>
      Effect.tap(token(`token-${n}`), () =>
        Effect.sync(() => {
          if (n === 1) virtual.jump(-hour)
        }))
    )
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      const error = yield* Effect.flip(provider.get)
      assert.strictEqual(error._tag === "TokenExpiredError" && error.reason, "ClockMovedBack")
      yield* virtual.advance("1 seconds")
      assert.strictEqual(valueOf(yield* provider.get), "token-2")
    }).pipe(
      Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
      Effect.withClock(virtual.clock)
    )
  })

  test("a cooldown ends when either clock reaches its end, and its retryAt follows the wall clock", function*() {
    const virtual = VirtualClock.make()
    const source = yield* answering(() =>
      Effect.fail(new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 }))
    )
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* Effect.flip(provider.get)
      // When the wall clock moves back, no request is sent until the monotonic clock reaches the end of the cooldown.
      for (const jump of [-hour, -24 * hour, 200]) {
        virtual.jump(jump)
        const error = yield* Effect.flip(provider.get)
        const wait = Option.getOrThrow(error.retryAt).epochMillis - virtual.wall()
        assert.isAbove(wait, 0)
        assert.isAtMost(wait, 1000)
      }
      assert.strictEqual(yield* source.calls, 1)
      yield* virtual.advance("1 seconds")
      yield* Effect.flip(provider.get)
      assert.strictEqual(yield* source.calls, 2)
      virtual.jump(hour)
      yield* Effect.flip(provider.get)
      assert.strictEqual(yield* source.calls, 3, "the wall clock moved forward, as after the machine slept")
      yield* Effect.flip(provider.get)
      assert.strictEqual(yield* source.calls, 3)
    }).pipe(
      Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
      Effect.withClock(virtual.clock)
    )
  })

  test("after the machine slept for two hours during a cooldown of one hour, get sends a request", function*() {
    const virtual = VirtualClock.make()
    const source = yield* answering((n) =>
      n === 1
        ? Effect.fail(
          new AccessTokenError.TokenRefusedError({
            reason: "Unavailable",
            status: 503,
            retryAt: Option.some(DateTime.unsafeMake(virtual.wall() + hour))
          })
        )
        : token("fresh")
    )
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* Effect.flip(provider.get)
      virtual.jump(hour / 2)
      const error = yield* Effect.flip(provider.get)
      assert.strictEqual(
        Option.getOrThrow(error.retryAt).epochMillis,
        virtual.wall() + hour / 2,
        "the same retryAt as before"
      )
      virtual.jump(1.5 * hour)
      assert.strictEqual(valueOf(yield* provider.get), "fresh")
      assert.strictEqual(yield* source.calls, 2)
    }).pipe(
      Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
      Effect.withClock(virtual.clock)
    )
  })

  it.effect("the provider uses its layer's clock, not the caller's", () =>
    run(({ calls, provider }) =>
      Effect.gen(function*() {
        const later = VirtualClock.make(Date.UTC(2030, 0, 1))
        assert.strictEqual(valueOf(yield* Effect.withClock(provider.get, later.clock)), "token-1")
        assert.isAbove(yield* Effect.withClock(Clock.currentTimeMillis, later.clock), Date.UTC(2029, 0, 1))
        assert.strictEqual(yield* calls, 1)
      })
    ))

  it.effect("no fiber sleeps while no caller waits", () =>
    run(({ provider, virtual }) =>
      Effect.gen(function*() {
        assert.strictEqual(virtual.sleepers(), 0)
        yield* virtual.advance("56 minutes")
        yield* provider.get
        yield* settle
        assert.strictEqual(virtual.sleepers(), 0, "after a background renewal")
        const sleeping = yield* Effect.fork(Effect.sleep("1 hour"))
        yield* settle
        assert.strictEqual(virtual.sleepers(), 1, "control: a sleeping fiber is counted")
        yield* Fiber.interrupt(sleeping)
      })
    ))
})
