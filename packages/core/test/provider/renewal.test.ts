import { assert, describe, it } from "@effect/vitest"
import type { LiveSteps } from "@store-api/testing/effectMajor"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Clock, Duration, Effect, Fiber } from "effect"
import {
  heldRenewals,
  hour,
  minute,
  outage,
  providerTest,
  settle,
  token,
  tokenOfAge,
  type Tools,
  valueOf,
  withProvider
} from "../support/scriptedSource.js"

describe("AccessTokenProvider, renewal", () => {
  providerTest(
    "callers in refresh-soon do not wait for the renewal",
    heldRenewals(),
    function*({ after, complete, provider }) {
      yield* provider.get
      yield* after("56 minutes", { gets: "one", calls: 1 })
      yield* after(1, { state: "RefreshSoon", gets: "one", calls: 2 })
      for (let caller = 0; caller < 50; caller++) yield* after(0, { gets: "one", calls: 2 })
      assert.isTrue((yield* provider.status).acquiring)
      assert.strictEqual(yield* complete(token("two")), "one")
      yield* after(0, { state: "Fresh", gets: "two", calls: 2 })
    }
  )

  it.effect.each([[0, 240_000], [0.5, 270_000], [1, 300_000]] as const)(
    "the renewal starts when 80 % to 100 % of refreshAhead is left: with a random number of %d",
    ([chance, margin]) =>
      withProvider((n) => token(`token-${n}`), function*({ after }) {
        yield* after(0, { gets: "token-1" })
        yield* after(hour - margin, { gets: "token-1", calls: 1 })
        yield* after(1, { gets: "token-1", calls: 2 })
      }, { chance })
  )

  providerTest(
    "the margins of a short lifetime are fractions of it",
    heldRenewals("100 seconds"),
    function*({ after }) {
      yield* after(0, { gets: "one" })
      yield* after("80 seconds", { state: "Fresh" })
      yield* after(1, { state: "RefreshSoon", gets: "one" })
      yield* after(14_999, { state: "RefreshSoon" })
      yield* after(1, { state: "MustWait" })
      yield* after(4999, { state: "Expired", calls: 2 })
    }
  )

  providerTest(
    "a renewal starts at least 1 s after the last token",
    (n) => tokenOfAge(`token-${n}`, 58 * minute, 2 * minute),
    function*({ after }) {
      yield* after(0, { gets: "token-1" })
      yield* after(999, { gets: "token-1", calls: 1 })
      yield* after(1, { gets: "token-1", calls: 2 })
    }
  )

  describe("must-wait", () => {
    /** Renews a token of which 20 seconds are left. The test completes the renewal. */
    const mustWaitTest = (title: string, steps: (tools: Tools) => LiveSteps) =>
      providerTest(title, heldRenewals(), function*(tools) {
        yield* tools.provider.get
        yield* tools.after(hour - 20_000, { state: "MustWait" })
        yield* Effect.gen(() => steps(tools))
      })

    mustWaitTest(
      "callers in must-wait wait for the renewal",
      function*({ startCallers, complete, expectOutcome, provider, virtual }) {
        const waiting = [
          yield* startCallers(1),
          yield* startCallers(1, Effect.uninterruptible(provider.get))
        ]
        yield* virtual.advance("9 seconds")
        for (const caller of waiting) yield* expectOutcome(caller, "waits")
        yield* complete(token("two"))
        for (const caller of waiting) yield* expectOutcome(caller, "two")
      }
    )

    mustWaitTest(
      "callers in must-wait wait at most half of what is left",
      function*({ after, startCallers, expectOutcome, provider, virtual }) {
        // By the clock that leaves less: the wall clock after it moved forward, the monotonic one after it moved back.
        for (
          const [jump, half] of [[0, 10_000], [0, 5000], [2000, 1500], [
            -20_000,
            1750
          ]] as const
        ) {
          virtual.jump(jump)
          const withOtherClock = Effect.withClock(
            Effect.uninterruptible(provider.get),
            Clock.make()
          )
          const waiting = [yield* startCallers(1), yield* startCallers(1, withOtherClock)]
          yield* virtual.advance(half - 1)
          for (const caller of waiting) yield* expectOutcome(caller, "waits")
          yield* virtual.advance(1)
          for (const caller of waiting) yield* expectOutcome(caller, "one")
        }
        yield* after(0, { calls: 2 })
      }
    )

    mustWaitTest(
      "callers in must-wait get the cached token when the renewal fails",
      function*({ after, startCallers, complete, expectOutcome }) {
        const waiting = yield* startCallers(10)
        yield* complete(Effect.fail(outage))
        yield* expectOutcome(waiting, "one")
        yield* after(0, { gets: "one", calls: 2 })
      }
    )

    mustWaitTest(
      "callers in must-wait get the renewed token even if it has the same value",
      function*({ complete, provider, virtual }) {
        const waiting = yield* Effect.fork(provider.get)
        yield* settle
        yield* complete(token("one"))
        assert.strictEqual(
          (yield* Fiber.join(waiting)).expiresAt.epochMillis,
          virtual.wall() + hour
        )
      }
    )

    mustWaitTest(
      "callers in must-wait go on waiting when the token expires",
      function*({ startCallers, complete, expectOutcome, virtual }) {
        const waiting = yield* startCallers(1)
        virtual.jump(15_000)
        // Half of the remaining lifetime is over.
        yield* virtual.advance("10 seconds")
        yield* expectOutcome(waiting, "waits")
        yield* complete(token("two"))
        yield* expectOutcome(waiting, "two")
      }
    )
  })

  providerTest(
    "callers without a valid token get the failure of the request",
    heldRenewals(),
    function*({ complete, provider, virtual }) {
      yield* provider.get
      yield* virtual.advance(hour)
      const caller = yield* Effect.fork(Effect.flip(provider.get))
      yield* settle
      yield* complete(Effect.fail(outage))
      const error = yield* Fiber.join(caller)
      if (error._tag !== "TokenRequestError") return assert.fail(error._tag)
      assert.isDefined(error.retryAt)
      assert.strictEqual(error.attempts, outage.attempts)
    }
  )

  describe("a token with a lifetime of 100 years", () => {
    /** A caller within the longest leeway. `sleeps` are the durations of all timers. */
    const waitForLongToken = (
      check: (tools: Tools & { readonly sleeps: ReadonlyArray<number> }) => LiveSteps
    ) => {
      const sleeps: Array<number> = []
      return withProvider(
        (n) => n === 1 ? token("one", "36500 days") : Effect.never,
        function*(tools) {
          yield* tools.provider.get
          yield* tools.virtual.advance("36000 days")
          yield* Effect.gen(() => check({ ...tools, sleeps }))
        },
        {
          leeway: "3650 days",
          clock: ({ clock }) => ({
            ...clock,
            sleep: (duration) => {
              sleeps.push(Duration.toMillis(duration))
              return clock.sleep(duration)
            }
          })
        }
      )
    }

    test("no timer exceeds 2 minutes for any lifetime", function*() {
      yield* waitForLongToken(function*({ sleeps, startCallers }) {
        yield* startCallers(1)
        assert.isAtMost(Math.max(...sleeps), 2 * minute)
        assert.isAbove(sleeps.length, 0, "control")
      })
    })

    test("a caller with a valid token waits at most 20 s for any lifetime", function*() {
      yield* waitForLongToken(function*({ expectOutcome, startCallers, virtual }) {
        const waiting = yield* startCallers(1)
        yield* virtual.advance("20 seconds")
        yield* expectOutcome(waiting, "one")
      })
    })
  })

  describe("a renewal without progress", () => {
    providerTest(
      "the same value with a later expiry does not count as progress",
      heldRenewals("100 seconds"),
      function*({ after, complete }) {
        yield* after(0, { gets: "one" })
        yield* after("80001 millis", { gets: "one", calls: 2 })
        yield* complete(token("one", "21 seconds"))
        yield* after("17 seconds", { gets: "one", calls: 3 })
        yield* complete(token("one", "5 seconds"))
        // At least the last of 5 seconds would be refresh-soon after progress.
        yield* after("4200 millis", { state: "Fresh", gets: "one", calls: 3 })
      }
    )

    providerTest(
      "another token that does not expire later does not count as progress",
      heldRenewals(),
      function*({ after, complete }) {
        yield* after(0, { gets: "one" })
        yield* after("57 minutes", { gets: "one", calls: 2 })
        yield* complete(token("shorter", "7 seconds"))
        yield* after(0, { gets: "shorter" })
        // With less than 8 seconds left, only progress would let it be renewed before it expires.
        yield* after("6 seconds", { state: "Fresh", gets: "shorter", calls: 2 })
      }
    )

    providerTest(
      "the same value counts as progress after that token has expired",
      () => token("again", "100 seconds"),
      function*({ after }) {
        yield* after(0, { gets: "again" })
        yield* after("100 seconds", { gets: "again", calls: 2 })
        yield* after("81 seconds", { gets: "again", calls: 3 })
      },
      {
        cooldown: { base: "10 minutes", max: "10 minutes" }
      }
    )
  })

  describe("an endpoint that repeats one token until it expires", () => {
    it.effect.each([
      {
        seconds: 3600,
        expected: [5],
        endpoint: "returns what is left in whole seconds",
        precision: 1000
      },
      { seconds: 3600, expected: [5], endpoint: "returns the same expiry", precision: 1 },
      {
        seconds: 40,
        expected: [2, 3],
        endpoint: "returns what is left in whole seconds",
        precision: 1000
      },
      { seconds: 40, expected: [2, 3], endpoint: "returns the same expiry", precision: 1 }
    ])(
      "an endpoint that repeats a token of $seconds s gets few requests: it $endpoint",
      ({ expected, precision, seconds }) => {
        const expiresAt = VirtualClock.make().wall() + seconds * 1000
        return withProvider((_, virtual) => {
          const left = expiresAt - virtual.wall()
          return left > 0
            ? token("repeated", Math.floor(left / precision) * precision)
            : token("next")
        }, function*({ after, calls, provider, virtual }) {
          yield* after(0, { gets: "repeated" })
          yield* virtual.advance(seconds * 700)
          while (virtual.wall() < expiresAt) {
            assert.strictEqual(valueOf(yield* provider.get), "repeated")
            yield* virtual.advance(100)
          }
          assert.include(expected, yield* calls)
          yield* after(0, { gets: "next" })
        })
      }
    )

    const start = VirtualClock.make().wall()

    providerTest(
      "the renewal of a repeated token starts when a fifth of what was left is left",
      (n, virtual) =>
        tokenOfAge(
          n < 6 ? "same" : "next",
          virtual.wall() - start,
          start + hour - virtual.wall()
        ),
      function*({ after, virtual }) {
        yield* after(0, { gets: "same" })
        for (
          const [left, calls] of [[240_000, 2], [48_000, 3], [9600, 4], [1920, 5]] as const
        ) {
          yield* after(start + hour - left - virtual.wall(), {
            gets: "same",
            calls: calls - 1
          })
          yield* after(1, { gets: "same", calls })
        }
        yield* after(1918, { gets: "same", calls: 5 })
      }
    )

    providerTest(
      "no renewal starts just before a repeated token expires",
      heldRenewals("40 seconds"),
      function*({ after, complete }) {
        yield* after(0, { gets: "one" })
        yield* after("38500 millis", { state: "MustWait", gets: "waits" })
        yield* complete(token("one", "1500 millis"))
        yield* after("1499 millis", { gets: "one", calls: 2 })
        yield* after(1, { gets: "waits" })
        yield* complete(token("two"))
        yield* after(0, { gets: "two" })
      }
    )
  })
})
