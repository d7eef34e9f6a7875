import { assert, describe, it } from "@effect/vitest"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Clock, Duration, Effect, Fiber } from "effect"
import {
  aged,
  hour,
  minute,
  outage,
  providerTest,
  renewalTest,
  settle,
  timeline,
  token,
  valueOf
} from "../support/scriptedSource.js"

/** A source whose first token has this lifetime. The test completes each further acquisition. */
const renewalOf = (lifetime: Duration.DurationInput) =>
  providerTest((n) => n === 1 ? token("one", lifetime) : undefined)

describe("AccessTokenProvider, renewal", () => {
  renewalTest(
    "refresh-soon: callers do not wait, and get its token",
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
    "the renewal starts when 80 % to 100 % of refreshAhead is left, not earlier: with a random number of %d",
    ([chance, margin]) =>
      timeline((n) => token(`token-${n}`), function*({ after }) {
        yield* after(0, { gets: "token-1" })
        yield* after(hour - margin, { gets: "token-1", calls: 1 })
        yield* after(1, { gets: "token-1", calls: 2 })
      }, { chance })
  )

  renewalOf("100 seconds")(
    "for short lifetimes the margins are 25 % and 5 % of the lifetime",
    function*({ after }) {
      yield* after(0, { gets: "one" })
      yield* after("80 seconds", { state: "Fresh" })
      yield* after(1, { state: "RefreshSoon", gets: "one" })
      yield* after(14_999, { state: "RefreshSoon" })
      yield* after(1, { state: "MustWait" })
      yield* after(4999, { state: "Expired", calls: 2 })
    }
  )

  providerTest((n) => aged(`token-${n}`, 58 * minute, 2 * minute))(
    "starts at least 1 s after the last token",
    function*({ after }) {
      yield* after(0, { gets: "token-1" })
      yield* after(999, { gets: "token-1", calls: 1 })
      yield* after(1, { gets: "token-1", calls: 2 })
    }
  )

  describe("must-wait", () => {
    /** The source of `renewalTest`, when 20 seconds are left of the token. */
    const mustWait: typeof renewalTest = (title, steps) =>
      renewalTest(title, function*(tools) {
        yield* tools.provider.get
        yield* tools.after(hour - 20_000, { state: "MustWait" })
        yield* Effect.gen(() => steps(tools))
      })

    mustWait(
      "callers wait for the renewal",
      function*({ callers, complete, got, provider, virtual }) {
        const waiting = [
          yield* callers(1),
          yield* callers(1, Effect.uninterruptible(provider.get))
        ]
        yield* virtual.advance("9 seconds")
        for (const caller of waiting) yield* got(caller, "waits")
        yield* complete(token("two"))
        for (const caller of waiting) yield* got(caller, "two")
      }
    )

    mustWait(
      "callers wait at most half of what is left",
      function*({ after, callers, got, provider, virtual }) {
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
          const waiting = [yield* callers(1), yield* callers(1, withOtherClock)]
          yield* virtual.advance(half - 1)
          for (const caller of waiting) yield* got(caller, "waits")
          yield* virtual.advance(1)
          for (const caller of waiting) yield* got(caller, "one")
        }
        yield* after(0, { calls: 2 })
      }
    )

    mustWait(
      "callers get the cached token when the renewal fails",
      function*({ after, callers, complete, got }) {
        const waiting = yield* callers(10)
        yield* complete(Effect.fail(outage))
        yield* got(waiting, "one")
        yield* after(0, { gets: "one", calls: 2 })
      }
    )

    mustWait(
      "callers get the new token, even with the same value",
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

    mustWait(
      "callers whose token expires go on waiting",
      function*({ callers, complete, got, virtual }) {
        const waiting = yield* callers(1)
        virtual.jump(15_000)
        // Half of the remaining lifetime is over.
        yield* virtual.advance("10 seconds")
        yield* got(waiting, "waits")
        yield* complete(token("two"))
        yield* got(waiting, "two")
      }
    )
  })

  renewalTest(
    "expired: callers wait, and get the failure of the request",
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

  test("no timer exceeds 2 minutes, and a caller with a valid token waits at most 20 s, for any token lifetime", function*() {
    const sleeps: Array<number> = []
    yield* timeline(
      (n) => n === 1 ? token("one", "36500 days") : Effect.never,
      function*({ callers, got, provider, virtual }) {
        yield* provider.get
        yield* virtual.advance("36000 days")
        const waiting = yield* callers(1)
        assert.isAtMost(Math.max(...sleeps), 2 * minute)
        yield* virtual.advance("20 seconds")
        yield* got(waiting, "one")
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
  })

  describe("a renewal without progress", () => {
    renewalOf("100 seconds")(
      "the same value with a later expiresAt is not progress",
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

    renewalTest(
      "a token that does not expire later is accepted, but is not progress",
      function*({ after, complete }) {
        yield* after(0, { gets: "one" })
        yield* after("57 minutes", { gets: "one", calls: 2 })
        yield* complete(token("shorter", "7 seconds"))
        yield* after(0, { gets: "shorter" })
        // With less than 8 seconds left, only progress would let it be renewed before it expires.
        yield* after("6 seconds", { state: "Fresh", gets: "shorter", calls: 2 })
      }
    )

    providerTest(() => token("again", "100 seconds"), {
      cooldown: { base: "10 minutes", max: "10 minutes" }
    })(
      "is not the same value after that token has expired",
      function*({ after }) {
        yield* after(0, { gets: "again" })
        yield* after("100 seconds", { gets: "again", calls: 2 })
        yield* after("81 seconds", { gets: "again", calls: 3 })
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
      "gets few requests in $seconds s, no caller waits before the expiry: it $endpoint",
      ({ expected, precision, seconds }) => {
        const expiresAt = VirtualClock.make().wall() + seconds * 1000
        return timeline((_, virtual) => {
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

    providerTest((n, virtual) =>
      aged(n < 6 ? "same" : "next", virtual.wall() - start, start + hour - virtual.wall())
    )(
      "of a repeated token starts when a fifth of what was left is left, and none within the last 8 seconds",
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

    renewalOf("40 seconds")(
      "gets no request just before the expiry; nobody waits longer",
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
