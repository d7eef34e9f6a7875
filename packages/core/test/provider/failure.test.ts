import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type AccessToken, AccessTokenError } from "@store-api/core"
import { DateTime, Effect, Fiber, Option } from "effect"
import {
  type Acquire,
  type Acquisition,
  heldAcquisitions,
  heldRenewals,
  hour,
  minute,
  outage,
  providerTest,
  settle,
  token,
  withProvider
} from "../support/scriptedSource.js"

const failEachTime: Acquire = () => Effect.fail(outage)

const refused = (reason: AccessTokenError.TokenRefusedError["reason"], status = 400) =>
  new AccessTokenError.TokenRefusedError({ reason, httpStatus: status })

const refusedByProxy = new AccessTokenError.TokenRequestError({ reason: "Proxy", attempts: 1 })

/** A response of 429 with this `Retry-After`, in milliseconds. */
const limited = (millis: number) =>
  Effect.flatMap(DateTime.now, (now) =>
    new AccessTokenError.TokenRefusedError({
      reason: "RateLimited",
      httpStatus: 429,
      retryAt: DateTime.add(now, { millis })
    }))

/** Asserts the time until `retryAt` of the error with which the call fails, in milliseconds. */
const expectWait = (
  call: Effect.Effect<unknown, AccessTokenError.AccessTokenError>,
  expected: number
) =>
  Effect.gen(function*() {
    const { retryAt } = yield* Effect.flip(call)
    assert(retryAt !== undefined)
    assert.strictEqual(retryAt.epochMillis - (yield* DateTime.now).epochMillis, expected)
  })

describe("AccessTokenProvider, failure", () => {
  providerTest(
    "waiting callers get the failure of the acquisition",
    heldAcquisitions,
    function*({ complete, expectOutcome, startCallers }) {
      const waiting = yield* startCallers(5)
      yield* complete(Effect.fail(outage))
      yield* expectOutcome(waiting, "Transport")
    }
  )

  providerTest(
    "the first caller after the cooldown starts an acquisition",
    heldAcquisitions,
    function*({ after, complete, startCallers }) {
      yield* startCallers(1)
      yield* complete(Effect.fail(outage))
      yield* after(749, { gets: "Transport", calls: 1 })
      yield* after(1, { gets: "waits", calls: 2 })
      yield* complete(token("back"))
      yield* after(0, { gets: "back" })
    }
  )

  providerTest(
    "get fails with the last error during the cooldown",
    failEachTime,
    function*({ after, provider, virtual }) {
      const first = yield* Effect.flip(provider.get)
      assert.strictEqual(first.retryAt?.epochMillis, virtual.wall() + 750)
      yield* virtual.advance(0.25)
      assert.strictEqual(
        yield* Effect.flip(provider.get),
        first,
        "a fraction of a millisecond does not change retryAt"
      )
      yield* after(0, { calls: 1 })
    }
  )

  providerTest("status describes the cooldown", failEachTime, function*({ provider }) {
    const { retryAt } = yield* Effect.flip(provider.get)
    const { cooldown, state } = yield* provider.status
    const { error, until } = Option.getOrThrow(cooldown)
    deepStrictEqual([state, error, until], ["Empty", "TokenRequestError", retryAt])
  })

  providerTest(
    "the retryAt of the last error stays when the wall clock moves by 1 ms",
    failEachTime,
    function*({ provider, virtual }) {
      const first = yield* Effect.flip(provider.get)
      yield* virtual.advance(0.25)
      virtual.jump(1)
      assert.strictEqual(yield* Effect.flip(provider.get), first)
    }
  )

  providerTest(
    "the retryAt of the last error is rounded up when the wall clock moves back",
    failEachTime,
    function*({ provider, virtual }) {
      yield* Effect.flip(provider.get)
      yield* virtual.advance(0.25)
      virtual.jump(-9)
      const { retryAt } = yield* Effect.flip(provider.get)
      assert.strictEqual(retryAt?.epochMillis, Math.ceil(virtual.wall() + 749.75))
    }
  )

  describe("the length of a cooldown", () => {
    const to5s = [750, 1500, 3000, 3750, 3750]
    const to60s = [750, 1500, 3000, 6000, 12_000, 24_000, 45_000, 45_000]
    const short = { cooldown: { base: "100 millis", max: "300 millis" } } as const

    it.effect.each<
      [
        string,
        AccessTokenError.AccessTokenError,
        ReadonlyArray<number>,
        Parameters<typeof withProvider>[2]
      ]
    >([
      ["the endpoint cannot be reached: up to 5 s", outage, to5s, {}],
      ["the endpoint is unavailable: up to 5 s", refused("Unavailable"), to5s, {}],
      [
        "the endpoint refuses the credentials: up to 60 s",
        refused("InvalidClient"),
        to60s,
        {}
      ],
      ["the endpoint limits the rate: up to 60 s", refused("RateLimited"), to60s, {}],
      ["a proxy refuses the connection: up to 60 s", refusedByProxy, to60s, {}],
      [
        "an API responds with 401 instead of the endpoint: up to 60 s",
        refused("Other", 401),
        to60s,
        {}
      ],
      ["cooldown has a base and a max", refused("InvalidClient"), [75, 150, 225, 225], short],
      ["a cooldown of zero is raised to 100 ms", outage, [75, 75], {
        cooldown: { base: 0, max: 0 }
      }],
      ["the random number is 0.5", outage, [875, 1750, 3500], { chance: 0.5 }]
    ])(
      "the cooldown doubles after each failure: %s",
      ([, failure, expected, options]) =>
        withProvider(() => Effect.fail(failure), function*({ after }) {
          const { reason } = failure as { readonly reason: string }
          for (const [index, length] of expected.entries()) {
            yield* after(0, { gets: reason, cooldown: length })
            yield* after(length - 1, { gets: reason, calls: index + 1 })
            yield* after(1, { calls: index + 1 })
          }
        }, options)
    )

    providerTest(
      "the cooldown doubles up to 60 s if callers get a valid token",
      (n) => n === 1 ? token("cached", "10 hours") : Effect.fail(outage),
      function*({ after }) {
        yield* after(0, { gets: "cached" })
        yield* after(10 * hour - 4 * minute + 1, { gets: "cached", calls: 2 })
        for (const [index, length] of to60s.entries()) {
          yield* after(length - 1, { gets: "cached", calls: index + 2 })
          yield* after(1, { gets: "cached", calls: index + 3 })
        }
      }
    )

    const week = 7 * 24 * hour

    it.effect.each(
      [["a short one", 100, 750], ["20 s", 20_000, 20_000], ["7 days", week, hour], [
        "a past one",
        -5000,
        750
      ]] as const
    )(
      "Retry-After lengthens a cooldown to one hour at most: %s",
      ([, retryAfter, expected]) =>
        withProvider(() => limited(retryAfter), function*({ after, provider }) {
          yield* expectWait(provider.get, expected)
          yield* after(expected - 1, { gets: "RateLimited", calls: 1 })
          yield* after(1, { gets: "RateLimited", calls: 2 })
        })
    )

    providerTest(
      "the cooldown follows the Retry-After of a renewal even after the token expired",
      (n) => n === 1 ? token("one", "60 seconds") : limited(60_000),
      function*({ after, provider, virtual }) {
        yield* provider.get
        yield* after(50_000, { gets: "one" })
        yield* virtual.advance(20_000)
        yield* expectWait(provider.get, 40_000)
        yield* after(0, { calls: 2 })
      }
    )

    providerTest(
      "refresh sends a request during a cooldown",
      failEachTime,
      function*({ after }) {
        yield* after(0, { gets: "Transport" })
        yield* after(0, { refreshes: "Transport", calls: 2 })
      }
    )

    providerTest(
      "refresh resets the length of the cooldown",
      failEachTime,
      function*({ after, provider }) {
        yield* after(0, { gets: "Transport" })
        yield* after(750, { gets: "Transport" })
        yield* after(1500, { gets: "Transport", calls: 3 })
        yield* expectWait(provider.refresh, 750)
      }
    )

    providerTest(
      "a success resets the cooldown",
      (n) => n === 4 ? token("good", "1 seconds") : Effect.fail(outage),
      function*({ after }) {
        yield* after(0, { gets: "Transport", cooldown: 750 })
        yield* after(750, { gets: "Transport", cooldown: 1500 })
        yield* after(1500, { gets: "Transport", cooldown: 3000 })
        yield* after(3000, { gets: "good" })
        yield* after("1 seconds", { gets: "Transport", cooldown: 750 })
      }
    )

    providerTest(
      "a refresh that joins a failing renewal fails with the cooldown of the renewal",
      heldRenewals(),
      function*({ after, complete, provider, virtual }) {
        yield* provider.get
        yield* virtual.advance(hour - 100_000)
        for (let failures = 0; failures < 4; failures++) {
          yield* after(0, { gets: "one" })
          yield* complete(Effect.fail(outage))
          yield* virtual.advance(750 * 2 ** failures)
        }
        yield* after(0, { gets: "one" })
        const joining = yield* Effect.fork(expectWait(provider.refresh, 12_000))
        yield* settle
        yield* complete(Effect.fail(outage))
        yield* Fiber.join(joining)
      }
    )
  })

  describe("a faulty source", () => {
    // A TokenSource written in plain JavaScript may return a value that is not a token.
    const notAToken = JSON.parse("{}") as AccessToken.AccessToken

    it.effect.each<[string, string, string, () => Acquisition]>([
      [
        "fails with a defect",
        "Defect",
        "SOURCE_DEFECT",
        () => Effect.die("an invented defect")
      ],
      ["throws", "Defect", "SOURCE_DEFECT", () => {
        throw new Error("an invented throw")
      }],
      [
        "returns a value that is not a token",
        "Defect",
        "SOURCE_DEFECT",
        () => Effect.succeed(notAToken)
      ],
      ["interrupts itself", "Transport", "SOURCE_INTERRUPTED", () => Effect.interrupt]
    ])(
      "a source that %s counts as a failed acquisition: callers get %s with the code %s",
      ([, outcome, code, fault]) =>
        withProvider(
          (n) =>
            n === 1
              ? Effect.zipRight(Effect.yieldNow(), Effect.suspend(fault))
              : token("works"),
          function*({ after, startCallers, expectOutcome, provider }) {
            yield* expectOutcome(yield* startCallers(3), outcome)
            const error = yield* Effect.flip(provider.get)
            if (error._tag !== "TokenRequestError") return assert.fail(error._tag)
            deepStrictEqual([error.reason, error.code], ["Transport", code])
            assert.isDefined(error.retryAt)
            assert.isFalse((yield* provider.status).acquiring)
            yield* after(0, { calls: 1 })
            yield* after(750, { gets: "works", calls: 2 })
          }
        )
    )
  })
})
