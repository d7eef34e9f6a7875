import { assert, describe, it } from "@effect/vitest"
import { type AccessToken, type AccessTokenError, AccessTokenProvider } from "@store-api/core"
import type { Clock } from "effect"
import { Deferred, Duration, Effect, Fiber, Layer, Option } from "effect"
import { type Acquisition, aged, down, hour, minute, run, valueOf } from "./support/pinnedProvider.js"
import { answering, settle, token } from "./support/scriptedSource.js"
import * as VirtualClock from "./support/virtualClock.js"

describe("AccessTokenProvider, at the edges of a life", () => {
  describe("renewal", () => {
    it.effect("begins a second after the last token came, at its moment", () =>
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

    it.effect("is asked for again when the pause after a failure is over, at its moment", () =>
      run((n) => n === 1 ? token("one") : Effect.fail(down), ({ calls, provider, virtual }) =>
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
        })))

    it.effect("a token that comes again once it was dead is progress: its next renewal is not paused", () =>
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

    it.effect("a better token ends the counting of those that brought none", () =>
      run((n) => aged(n < 4 ? "same" : `token-${n}`, 58 * minute, 2 * minute + n * minute), ({
        calls,
        provider,
        virtual
      }) =>
        Effect.gen(function*() {
          yield* provider.get
          yield* provider.refresh
          yield* virtual.advance(1500)
          yield* provider.get
          yield* settle
          assert.strictEqual(yield* calls, 3, "the second in vain")
          yield* virtual.advance(3000)
          yield* provider.get
          yield* settle
          assert.strictEqual(yield* calls, 4, "progress")
          yield* virtual.advance(1000)
          yield* provider.get
          yield* settle
          assert.strictEqual(yield* calls, 5, "no pause after it")
        }), { refreshAhead: hour }))

    it.effect("is due by whichever clock leaves less", () =>
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

    it.effect("waits for half of what the nearer clock leaves", () =>
      run((n) => n === 1 ? token("one") : Effect.never, ({
        provider,
        virtual
      }) =>
        Effect.gen(function*() {
          yield* provider.get
          yield* virtual.advance(hour - 20_000)
          for (const jump of [10_000, -20_000]) {
            virtual.jump(jump)
            const left = jump > 0 ? 10_000 : 15_000
            const caller = yield* Effect.fork(provider.get)
            yield* virtual.advance(left / 2 - 1)
            assert.isTrue(Option.isNone(yield* Fiber.poll(caller)), `${left} are left`)
            yield* virtual.advance(1)
            assert.strictEqual(valueOf(yield* Fiber.join(caller)), "one")
          }
        })))

    it.effect("no timer is longer than 2 minutes, and no caller with a token waits longer than 20 s, however long tokens live", () =>
      Effect.gen(function*() {
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
      }))
  })

  describe("how long a token lives by the monotonic clock", () => {
    /** A token of which 10 minutes are gone and 50 are left; the wall clock moves while it is acquired, and after. */
    const jumping = (meanwhile: number, then: number, livesFor: number) =>
      run(
        (_, virtual) =>
          Effect.tap(aged("one", 10 * minute, 50 * minute), () => Effect.sync(() => virtual.jump(meanwhile))),
        ({
          provider,
          virtual
        }) =>
          Effect.gen(function*() {
            yield* provider.get
            virtual.jump(then)
            yield* virtual.advance(livesFor - 1)
            assert.strictEqual((yield* provider.status).state, "MustWait", "a millisecond is left")
            yield* virtual.advance(1)
            assert.strictEqual((yield* provider.status).state, "Expired")
            assert.isBelow(virtual.wall(), Option.getOrThrow((yield* provider.status).expiresAt).epochMillis)
          })
      )

    it.effect("as long as the wall clock gave it before the request, when that moved back meanwhile", () =>
      jumping(-5 * minute, 0, 50 * minute))

    it.effect("as long as the wall clock gives it when it comes, when that moved forward meanwhile", () =>
      jumping(5 * minute, -5 * minute, 45 * minute))

    it.effect("never longer than its whole life, when it was stamped by a clock that was ahead", () =>
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
          assert.strictEqual((yield* provider.status).state, "Expired", "the wall clock gives it 900 ms more")
        })))

    it.effect("another token of the same end lives on its own account after the wall clock moved back", () =>
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
            assert.strictEqual((yield* provider.status).state, "Fresh", "one would be dead")
          })
      ))

    it.effect("the same value with a later end lives longer", () =>
      run(() => token("sliding", "100 seconds"), ({ provider, virtual }) =>
        Effect.gen(function*() {
          yield* provider.get
          yield* virtual.advance("70 seconds")
          yield* provider.refresh
          yield* virtual.advance("70 seconds")
          assert.strictEqual((yield* provider.status).state, "Fresh")
        })))
  })

  describe("who waits while a token must be renewed", () => {
    /** Holds `one`, with 20 seconds left; the renewal ends when the test says so. */
    const waiting = <A, E>(
      renewed: Acquisition,
      test: (tools: {
        readonly virtual: VirtualClock.VirtualClock
        readonly provider: AccessTokenProvider.Service
        readonly caller: Fiber.RuntimeFiber<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
        readonly land: Effect.Effect<void>
      }) => Effect.Effect<A, E>
    ) =>
      Effect.flatMap(
        Deferred.make<void>(),
        (landing) =>
          run(
            (n) => n === 1 ? token("one") : Effect.zipRight(Deferred.await(landing), renewed),
            ({ provider, virtual }) =>
              Effect.gen(function*() {
                yield* provider.get
                yield* virtual.advance(hour - 20_000)
                const caller = yield* Effect.fork(provider.get)
                yield* settle
                const land = Effect.zipRight(Deferred.succeed(landing, undefined), settle)
                return yield* test({ virtual, provider, caller, land })
              })
          )
      )

    it.effect("is not given a token that died meanwhile, but the failure of the renewal", () =>
      waiting(Effect.fail(down), ({ caller, land, virtual }) =>
        Effect.gen(function*() {
          virtual.jump(30_000)
          yield* land
          assert.strictEqual((yield* Effect.flip(Fiber.join(caller)))._tag, "TokenRequestError")
        })))

    it.effect("is given the token as it came, also when it is the same value with a later end", () =>
      waiting(token("one"), ({ caller, land, virtual }) =>
        Effect.gen(function*() {
          yield* land
          assert.strictEqual((yield* Fiber.join(caller)).expiresAt.epochMillis, virtual.wall() + hour)
        })))

    it.effect("waits on when half is over and the token has died", () =>
      waiting(token("two"), ({ caller, land, virtual }) =>
        Effect.gen(function*() {
          virtual.jump(30_000)
          yield* virtual.advance(10_000)
          assert.isTrue(Option.isNone(yield* Fiber.poll(caller)))
          yield* land
          assert.strictEqual(valueOf(yield* Fiber.join(caller)), "two")
        })))
  })
})
