import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError } from "@store-api/core"
import { Deferred, Effect, Fiber, Option, Ref } from "effect"
import * as tokenPolicy from "../../src/internal/provider/tokenPolicy.js"
import * as tokenState from "../../src/internal/provider/tokenState.js"
import { aged, hour, outage, run, settle, token } from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

describe("AccessTokenProvider, intervals and cooldowns", () => {
  describe("failure", () => {
    it.effect("calls during a cooldown get the same error object while its retryAt is correct", () =>
      run(() => Effect.fail(outage), ({ provider, virtual }) =>
        Effect.gen(function*() {
          const first = yield* Effect.flip(provider.get)
          yield* virtual.advance(0.25)
          assert.strictEqual(
            yield* Effect.flip(provider.get),
            first,
            "a fraction of a millisecond does not change retryAt"
          )
          virtual.jump(1)
          assert.strictEqual(yield* Effect.flip(provider.get), first)
          virtual.jump(-10)
          const moved = yield* Effect.flip(provider.get)
          assert.strictEqual(Option.getOrThrow(moved.retryAt).epochMillis, Math.ceil(virtual.wall() + 749.75))
        })))

    it.effect.each(
      [
        ["InvalidClient", "keep doubling, since new credentials are needed", [750, 1500, 3000, 6000, 12_000]],
        ["RateLimited", "keep doubling, since the endpoint limits the rate", [750, 1500, 3000, 6000, 12_000]],
        ["Unavailable", "are at most 5 s", [750, 1500, 3000, 3750, 3750]]
      ] as const
    )(
      "after TokenRefusedError (%s), the cooldowns %s",
      ([reason, , expected]) =>
        run(
          () => Effect.fail(new AccessTokenError.TokenRefusedError({ reason, status: 400 })),
          ({ provider, virtual }) =>
            Effect.gen(function*() {
              const pauses: Array<number> = []
              for (let failure = 0; failure < expected.length; failure++) {
                yield* Effect.flip(provider.get)
                const { cooldown } = yield* provider.status
                const pause = Option.getOrThrow(cooldown).until.epochMillis - virtual.wall()
                pauses.push(pause)
                yield* virtual.advance(pause)
              }
              deepStrictEqual(pauses, [...expected])
            })
        )
    )

    test("a caller of refresh that joins a failing renewal gets the end of the renewal cooldown in retryAt", function*() {
      const wanted = yield* Ref.make<Effect.Effect<void>>(Effect.void)
      yield* run(
        (n) => n === 1 ? token("one") : Effect.zipRight(Effect.flatten(Ref.get(wanted)), Effect.fail(outage)),
        ({ provider, virtual }) =>
          Effect.gen(function*() {
            yield* provider.get
            yield* virtual.advance(hour - 100_000)
            for (let failures = 0; failures < 4; failures++) {
              yield* provider.get
              yield* settle
              yield* virtual.advance(750 * 2 ** failures)
            }
            const failing = yield* Deferred.make<void>()
            yield* Ref.set(wanted, Deferred.await(failing))
            yield* provider.get
            const joining = yield* Effect.fork(Effect.flip(provider.refresh))
            yield* settle
            yield* Deferred.succeed(failing, undefined)
            const error = yield* Fiber.join(joining)
            assert.strictEqual(Option.getOrThrow(error.retryAt).epochMillis - virtual.wall(), 12_000)
          })
      )
    })

    it.effect("the error code distinguishes a faulty source from an unreachable endpoint", () =>
      run(
        (n) => n === 1 ? Effect.die("an invented defect") : Effect.interrupt,
        ({ provider, virtual }) =>
          Effect.gen(function*() {
            yield* Effect.exit(provider.get)
            const code = Effect.map(
              Effect.flip(provider.get),
              (error) => error._tag === "TokenRequestError" ? [error.reason, error.code] : []
            )
            deepStrictEqual(yield* code, ["Transport", Option.some("SOURCE_DEFECT")])
            yield* virtual.advance("1 seconds")
            deepStrictEqual(yield* code, ["Transport", Option.some("SOURCE_INTERRUPTED")])
          })
      ))

    it.effect("a token that is expired on arrival fails with its expiry in expiredAt and the current time in checkedAt", () =>
      run(() => aged("expired", hour, -5000), ({ provider, virtual }) =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(provider.get)
          assert.instanceOf(error, AccessTokenError.TokenExpiredError)
          assert.strictEqual(error.expiredAt.epochMillis, virtual.wall() - 5000)
          assert.strictEqual(error.checkedAt.epochMillis, virtual.wall())
        })))
  })

  it("the result of an acquisition that is not in flight does not change the state", () => {
    const virtual = VirtualClock.make()
    const policy = tokenPolicy.make()
    const now = { wall: virtual.wall(), monotonic: virtual.monotonic() }
    const started = (state: tokenState.State) => {
      const [outcome, next] = tokenState.refresh(state, now)
      return outcome._tag === "Start" ? { acquisition: outcome.acquisition, next } : assert.fail(outcome._tag)
    }
    const land = (state: tokenState.State, acquisition: tokenState.Acquisition, value: string) => {
      const exit = Effect.runSyncExit(Effect.withClock(token(value), virtual.clock))
      return tokenState.land(policy, { acquisition, exit, chance: 0 })(state, now)
    }
    const first = started(tokenState.initial)
    const [, holding] = land(first.next, first.acquisition, "one")
    assert.isTrue(tokenState.hasValidToken(holding, now), "the result of an in-flight acquisition does")
    const second = started(holding)
    const [, closed] = tokenState.close(second.next)
    for (const state of [tokenState.initial, holding, second.next, closed]) {
      deepStrictEqual(land(state, first.acquisition, "late"), [undefined, state])
    }
  })
})
