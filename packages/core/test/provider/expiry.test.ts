import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type AccessToken, type AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { type Clock, Deferred, Duration, Effect, Fiber, Layer, Option } from "effect"
import {
  type Acquisition,
  aged,
  answering,
  hour,
  minute,
  outage,
  run,
  settle,
  token,
  valueOf
} from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

describe("AccessTokenProvider, at the exact boundaries", () => {
  test("a caller whose token is rejected while it waits gets the new token, although its wait was over first", function*() {
    const endpoint = yield* Deferred.make<AccessToken.AccessToken>()
    const script = (n: number) => n === 1 ? aged("old", 59 * minute, 20_000) : Deferred.await(endpoint)
    yield* run(script, ({ provider, virtual }) =>
      Effect.gen(function*() {
        const old = yield* provider.get
        const refreshed = yield* Effect.fork(provider.refresh)
        yield* settle
        const waiting = yield* Effect.fork(provider.get)
        yield* settle
        yield* provider.invalidate(old)
        yield* virtual.advance("11 seconds")
        yield* Effect.flatMap(token("new"), (token) => Deferred.succeed(endpoint, token))
        const tokens = [yield* Fiber.join(refreshed), yield* Fiber.join(waiting)]
        deepStrictEqual(tokens.map(valueOf), ["new", "new"])
      }))
  })

  describe("renewal", () => {
    it.effect("starts exactly 1 second after the last token arrived", () =>
      run((n) => aged(`token-${n}`, 58 * minute, 2 * minute), ({ calls, provider, virtual }) =>
        Effect.gen(function*() {
          yield* provider.get
          yield* virtual.advance(999)
          yield* provider.get
          yield* settle
          assert.strictEqual(yield* calls, 1)
          yield* virtual.advance(1)
          yield* provider.get
          yield* settle
          assert.strictEqual(yield* calls, 2)
        })))

    it.effect("starts again exactly when the cooldown after a failure ends", () =>
      run(
        (n) => n === 1 ? token("one") : Effect.fail(outage),
        ({ calls, provider, virtual }) =>
          Effect.gen(function*() {
            yield* provider.get
            yield* virtual.advance(57 * minute)
            yield* provider.get
            yield* settle
            for (const [passed, expected] of [[749, 2], [1, 3], [1499, 3], [1, 4]] as const) {
              yield* virtual.advance(passed)
              assert.strictEqual(valueOf(yield* provider.get), "one")
              yield* settle
              assert.strictEqual(yield* calls, expected)
            }
          })
      ))

    it.effect("counts the same value as progress after that token expired: the next renewal is not delayed", () =>
      run(() => token("again", "100 seconds"), ({ calls, provider, virtual }) =>
        Effect.gen(function*() {
          yield* provider.get
          yield* virtual.advance("100 seconds")
          yield* provider.get
          yield* virtual.advance("81 seconds")
          yield* provider.get
          yield* settle
          assert.strictEqual(yield* calls, 3)
        }), { cooldown: { base: "10 minutes", max: "10 minutes" } }))

    test("of a repeated token starts when a fifth of what was left is left, and none within the last 8 seconds", function*() {
      const start = VirtualClock.make().wall()
      yield* run(
        (n, virtual) => aged(n < 6 ? "same" : "next", virtual.wall() - start, start + hour - virtual.wall()),
        ({
          calls,
          provider,
          virtual
        }) =>
          Effect.gen(function*() {
            yield* provider.get
            for (const [left, expected] of [[240_000, 2], [48_000, 3], [9600, 4], [1920, 5]] as const) {
              yield* virtual.advance(start + hour - left - virtual.wall())
              yield* provider.get
              yield* settle
              assert.strictEqual(yield* calls, expected - 1)
              yield* virtual.advance(1)
              yield* provider.get
              yield* settle
              assert.strictEqual(yield* calls, expected)
            }
            yield* virtual.advance(1918)
            assert.strictEqual(valueOf(yield* provider.get), "same")
            yield* settle
            assert.strictEqual(yield* calls, 5)
          })
      )
    })

    it.effect.each([
      { left: 8001, expected: 3 },
      { left: 7999, expected: 2 }
    ])(
      "of a token that was repeated with $left ms left: $expected requests",
      ({ expected, left }) =>
        run(() => aged("same", hour - left, left), ({ calls, provider, virtual }) =>
          Effect.gen(function*() {
            yield* provider.get
            yield* provider.refresh
            yield* virtual.advance(left - 100)
            yield* provider.get
            yield* settle
            assert.strictEqual(yield* calls, expected)
          }))
    )

    it.effect("is due by the clock that leaves the shorter remaining lifetime", () =>
      run(() => token("one"), ({ provider, virtual }) =>
        Effect.gen(function*() {
          yield* provider.get
          virtual.jump(57 * minute)
          assert.strictEqual((yield* provider.status).state, "RefreshSoon")
          virtual.jump(2.75 * minute)
          assert.strictEqual((yield* provider.status).state, "MustWait")
          virtual.jump(-59.75 * minute)
          assert.strictEqual((yield* provider.status).state, "Fresh")
        })))

    it.effect("makes callers wait for at most half of the remaining lifetime, by the clock that leaves less", () =>
      run((n) => n === 1 ? token("one") : Effect.never, ({
        provider,
        virtual
      }) =>
        Effect.gen(function*() {
          yield* provider.get
          yield* virtual.advance(hour - 20_000)
          for (const jump of [10_000, -20_000]) {
            virtual.jump(jump)
            const remaining = jump > 0 ? 10_000 : 15_000
            const caller = yield* Effect.fork(provider.get)
            yield* virtual.advance(remaining / 2 - 1)
            assert.isTrue(Option.isNone(yield* Fiber.poll(caller)), `${remaining} ms are left`)
            yield* virtual.advance(1)
            assert.strictEqual(valueOf(yield* Fiber.join(caller)), "one")
          }
        })))

    test("no timer exceeds 2 minutes, and a caller with a valid token waits at most 20 s, for any token lifetime", function*() {
      const virtual = VirtualClock.make()
      const sleeps: Array<number> = []
      const clock: Clock.Clock = {
        ...virtual.clock,
        sleep: (duration) => {
          sleeps.push(Duration.toMillis(duration))
          return virtual.clock.sleep(duration)
        }
      }
      const source = yield* answering((n) => n === 1 ? token("one", "36500 days") : Effect.never)
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        yield* provider.get
        yield* virtual.advance("36000 days")
        const caller = yield* Effect.fork(provider.get)
        yield* settle
        assert.isAtMost(Math.max(...sleeps), 2 * minute)
        yield* virtual.advance("20 seconds")
        assert.strictEqual(valueOf(yield* Fiber.join(caller)), "one")
      }).pipe(
        Effect.provide(Layer.provide(AccessTokenProvider.layer({ leeway: "3650 days" }), source.layer)),
        Effect.withClock(clock)
      )
    })
  })

  describe("the token's lifetime by the monotonic clock", () => {
    /** Acquires a token that is 10 minutes old and expires in 50. The wall clock jumps during that, and afterwards. */
    const expectLifetime = (during: number, afterwards: number, lifetime: number) =>
      run(
        (_, virtual) =>
          Effect.tap(aged("one", 10 * minute, 50 * minute), () => Effect.sync(() => virtual.jump(during))),
        ({
          provider,
          virtual
        }) =>
          Effect.gen(function*() {
            yield* provider.get
            virtual.jump(afterwards)
            yield* virtual.advance(lifetime - 1)
            assert.strictEqual((yield* provider.status).state, "MustWait", "1 ms is left")
            yield* virtual.advance(1)
            assert.strictEqual((yield* provider.status).state, "Expired")
            assert.isBelow(virtual.wall(), Option.getOrThrow((yield* provider.status).expiresAt).epochMillis)
          })
      )

    it.effect("is measured from before the request if the wall clock moved back during the acquisition", () =>
      expectLifetime(-5 * minute, 0, 50 * minute))

    it.effect("is measured from the token's arrival if the wall clock moved forward during the acquisition", () =>
      expectLifetime(5 * minute, -5 * minute, 45 * minute))

    it.effect("never exceeds the full lifetime, even if acquiredAt is ahead of the wall clock", () =>
      run((_, virtual) =>
        Effect.gen(function*() {
          virtual.jump(900)
          const ahead = yield* token("ahead")
          virtual.jump(-900)
          return ahead
        }), ({ provider, virtual }) =>
        Effect.gen(function*() {
          yield* provider.get
          yield* virtual.advance(hour - 1)
          assert.strictEqual((yield* provider.status).state, "MustWait")
          yield* virtual.advance(1)
          assert.strictEqual((yield* provider.status).state, "Expired", "by the wall clock, 900 ms are left")
        })))

    it.effect("does not depend on an earlier token with the same expiresAt after the wall clock moved back", () =>
      run(
        (n) => n === 1 ? token("one") : aged("two", 0, 50 * minute),
        ({ provider, virtual }) =>
          Effect.gen(function*() {
            const one = yield* provider.get
            yield* virtual.advance(50 * minute)
            virtual.jump(-40 * minute)
            const two = yield* provider.refresh
            assert.strictEqual(two.expiresAt.epochMillis, one.expiresAt.epochMillis)
            yield* virtual.advance(11 * minute)
            assert.strictEqual((yield* provider.status).state, "Fresh", "the first token would have expired")
          })
      ))

    it.effect("grows when the same value arrives with a later expiresAt", () =>
      run(() => token("sliding", "100 seconds"), ({ provider, virtual }) =>
        Effect.gen(function*() {
          yield* provider.get
          yield* virtual.advance("70 seconds")
          yield* provider.refresh
          yield* virtual.advance("70 seconds")
          assert.strictEqual((yield* provider.status).state, "Fresh")
        })))
  })

  describe("a caller that waits for a renewal", () => {
    /** Caches `one` and advances to 20 seconds before its expiry. The caller waits until `finishRenewal` runs. */
    const withWaitingCaller = <A, E>(
      renewed: Acquisition,
      test: (tools: {
        readonly virtual: VirtualClock.VirtualClock
        readonly provider: AccessTokenProvider.Service
        readonly caller: Fiber.RuntimeFiber<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
        readonly finishRenewal: Effect.Effect<void>
      }) => Effect.Effect<A, E>
    ) =>
      Effect.flatMap(
        Deferred.make<void>(),
        (mayFinish) =>
          run(
            (n) => n === 1 ? token("one") : Effect.zipRight(Deferred.await(mayFinish), renewed),
            ({ provider, virtual }) =>
              Effect.gen(function*() {
                yield* provider.get
                yield* virtual.advance(hour - 20_000)
                const caller = yield* Effect.fork(provider.get)
                yield* settle
                const finishRenewal = Effect.zipRight(Deferred.succeed(mayFinish, undefined), settle)
                return yield* test({ virtual, provider, caller, finishRenewal })
              })
          )
      )

    it.effect("gets the renewal's failure if the cached token expired while it waited", () =>
      withWaitingCaller(Effect.fail(outage), ({ caller, finishRenewal, virtual }) =>
        Effect.gen(function*() {
          virtual.jump(30_000)
          yield* finishRenewal
          assert.strictEqual((yield* Effect.flip(Fiber.join(caller)))._tag, "TokenRequestError")
        })))

    it.effect("gets the new token, even if it has the same value with a later expiresAt", () =>
      withWaitingCaller(token("one"), ({ caller, finishRenewal, virtual }) =>
        Effect.gen(function*() {
          yield* finishRenewal
          assert.strictEqual((yield* Fiber.join(caller)).expiresAt.epochMillis, virtual.wall() + hour)
        })))

    it.effect("keeps waiting after half of the remaining lifetime if the cached token has expired", () =>
      withWaitingCaller(token("two"), ({ caller, finishRenewal, virtual }) =>
        Effect.gen(function*() {
          virtual.jump(30_000)
          yield* virtual.advance(10_000)
          assert.isTrue(Option.isNone(yield* Fiber.poll(caller)))
          yield* finishRenewal
          assert.strictEqual(valueOf(yield* Fiber.join(caller)), "two")
        })))
  })
})
