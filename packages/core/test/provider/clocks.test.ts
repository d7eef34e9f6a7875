import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { LiveSteps } from "@store-api/testing/effectMajor"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Clock, Effect, Option } from "effect"
import {
  heldRenewals,
  hour,
  minute,
  numberedTokens,
  outage,
  providerTest,
  settle,
  token,
  tokenOfAge,
  type Tools,
  valueOf,
  withProvider
} from "../support/scriptedSource.js"

describe("AccessTokenProvider, clocks", () => {
  const failEachTime = () => Effect.fail(outage)

  const hours = [{ by: 1 }, { by: 24 }]

  test.each(hours)(
    "one acquisition replaces a token when the wall clock moves forward by $by h, as in a sleep",
    function*({ by }) {
      yield* withProvider(numberedTokens, function*({ after, virtual }) {
        yield* after(0, { gets: "token-1" })
        virtual.jump(by * hour)
        yield* after(0, { state: "Expired", gets: "token-2" })
        yield* after("30 minutes", { gets: "token-2", calls: 2 })
      })
    }
  )

  test.each(hours)(
    "a token fails with ClockMovedBack when the wall clock moves back by $by h",
    function*({ by }) {
      yield* withProvider(numberedTokens, function*({ after, virtual }) {
        yield* after(0, { gets: "token-1" })
        yield* virtual.advance("30 minutes")
        virtual.jump(-by * hour)
        yield* after(0, { current: "ClockMovedBack" })
      })
    }
  )

  test.each(hours)(
    "a token that was acquired after the wall clock moved back by $by h is valid for 60 minutes",
    function*({ by }) {
      yield* withProvider(numberedTokens, function*({ after, virtual }) {
        yield* after(0, { gets: "token-1" })
        virtual.jump(-by * hour)
        yield* after(0, { gets: "token-2" })
        yield* after("59 minutes", { state: "RefreshSoon", calls: 2 })
        yield* after("1 minutes", { state: "Expired", gets: "token-3", calls: 3 })
      })
    }
  )

  /** Gets a token whose wall clock moves back after 50 minutes. */
  const moveBack = (by: number, steps: (tools: Tools) => LiveSteps) =>
    withProvider(numberedTokens, function*(tools) {
      yield* tools.after(0, { gets: "token-1" })
      yield* tools.virtual.advance("50 minutes")
      tools.virtual.jump(-by)
      yield* Effect.gen(() => steps(tools))
    })

  const movedBack = [["900 ms", 900], ["half of the lifetime", 30 * minute]] as const

  test.each(movedBack)(
    "the token expires in time even if the wall clock moves back by %s",
    function*([, by]) {
      yield* moveBack(by, function*({ after }) {
        yield* after(0, { gets: "token-1" })
        yield* after(10 * minute - 1, { state: "MustWait" })
        yield* after(1, { state: "Expired", current: "Elapsed" })
        yield* after(0, { gets: "token-2", calls: 2 })
      })
    }
  )

  test.each(movedBack)(
    "the token is renewed in time even if the wall clock moves back by %s",
    function*([, by]) {
      yield* moveBack(by, function*({ after }) {
        yield* after(6 * minute, { gets: "token-1", calls: 1 })
        yield* after(1, { gets: "token-1", calls: 2 })
      })
    }
  )

  providerTest(
    "a caller gets the cached token when its expiry was a clock error that has been corrected",
    heldRenewals(),
    function*({ after, startCallers, complete, expectOutcome, virtual }) {
      yield* after(0, { gets: "one" })
      yield* virtual.advance("3590 seconds")
      yield* startCallers(1)
      virtual.jump(20_000)
      yield* after(0, { state: "Expired", calls: 2 })
      const caller = yield* startCallers(1)
      virtual.jump(-20_000)
      yield* complete(Effect.fail(outage))
      yield* expectOutcome(caller, "one")
      yield* after(0, { calls: 2 })
    }
  )

  test("the source gets the token that it replaces, whatever made it expire", function*() {
    const replaced: Array<string | undefined> = []
    yield* withProvider((n, _, replacing) => {
      replaced.push(Option.getOrUndefined(Option.map(replacing, valueOf)))
      return token(`token-${n}`)
    }, function*({ provider, virtual }) {
      yield* provider.get
      virtual.jump(-10 * minute)
      yield* provider.get
      yield* virtual.advance("60 minutes")
      yield* provider.get
      yield* provider.refresh
      yield* provider.invalidate(yield* provider.get)
      yield* provider.get
    })
    deepStrictEqual(replaced, [undefined, "token-1", "token-2", "token-3", "token-4"])
  })

  providerTest(
    "the token stays valid when the wall clock moves by 1 s, as NTP does",
    numberedTokens,
    function*({ after, virtual }) {
      for (
        const [jump, gets] of [[0, "token-1"], [-1000, "token-1"], [2000, "token-1"], [
          -2001,
          "token-2"
        ]] as const
      ) {
        virtual.jump(jump)
        yield* after(0, { gets })
      }
    }
  )

  test("clock jumps during the acquisition never extend the lifetime", function*() {
    const jumps = [0, -900, 900, -30 * minute, 30 * minute, -hour, hour, -24 * hour, 24 * hour]
    let served = 0
    for (
      const [before, after] of jumps.flatMap((before) =>
        jumps.map((after) => [before, after] as const)
      )
    ) {
      yield* withProvider((n, virtual) =>
        Effect.gen(function*() {
          virtual.jump(before)
          const acquired = yield* token(`token-${n}`)
          yield* Effect.sleep("1 seconds")
          virtual.jump(after)
          return acquired
        }), function*({ startCallers, provider, virtual }) {
        yield* startCallers(1)
        yield* virtual.advance("1 seconds")
        const isLive = Effect.map(
          provider.status,
          ({ state }) => state !== "Expired" && state !== "Empty"
        )
        while (yield* isLive) {
          served++
          yield* virtual.advance("1 minutes")
          assert.isAtMost(virtual.monotonic(), hour + minute, `jumps ${before} and ${after}`)
        }
      })
    }
    assert.isAbove(served, 1000, "most of the tokens were valid for a while")
  })

  const movedBackAgain = [
    ["less than its age", 40 * minute],
    ["its age", 57 * minute],
    ["its age and a part of a second", 57 * minute + 500]
  ] as const

  test.each(movedBackAgain)(
    "a wall clock that moved back by %s does not extend the lifetime of a token that arrives again",
    function*([, by]) {
      const same = yield* Effect.withClock(token("same"), VirtualClock.make().clock)
      yield* withProvider(() => Effect.succeed(same), function*({ after, provider, virtual }) {
        yield* provider.get
        yield* virtual.advance("57 minutes")
        virtual.jump(-by)
        yield* provider.refresh
        yield* after("4 minutes", { state: "Expired" })
      })
    }
  )

  test("a wall clock that moved back does not extend the lifetime of a token that arrived twice a part of a millisecond apart", function*() {
    const same = yield* Effect.withClock(token("same"), VirtualClock.make().clock)
    yield* withProvider(() => Effect.succeed(same), function*({ after, provider, virtual }) {
      yield* provider.get
      yield* virtual.advance(50 * minute + 0.7)
      // The wall clock counts whole milliseconds.
      virtual.jump(-0.7)
      yield* provider.refresh
      yield* virtual.advance("7 minutes")
      virtual.jump(-57 * minute)
      yield* provider.refresh
      yield* after("4 minutes", { state: "Expired" })
    })
  })

  providerTest(
    "get fails with ClockMovedBack once when the wall clock moves back during the acquisition",
    (n, virtual) =>
      Effect.tap(
        token(`token-${n}`),
        () => Effect.sync(() => virtual.jump(n === 1 ? -hour : 0))
      ),
    function*({ after }) {
      yield* after(0, { gets: "ClockMovedBack" })
      yield* after("1 seconds", { gets: "token-2" })
    }
  )

  providerTest(
    "a cooldown ends by the monotonic clock if the wall clock moves back",
    failEachTime,
    function*({ after, virtual }) {
      yield* after(0, { gets: "Transport" })
      virtual.jump(-hour)
      yield* after(749, { gets: "Transport", calls: 1 })
      yield* after(1, { gets: "Transport", calls: 2 })
    }
  )

  providerTest(
    "a cooldown ends once by the wall clock if that moves forward, as in a sleep",
    failEachTime,
    function*({ after, virtual }) {
      yield* after(0, { gets: "Transport" })
      virtual.jump(hour)
      yield* after(0, { gets: "Transport", calls: 2 })
      yield* after(0, { gets: "Transport", calls: 2 })
    }
  )

  providerTest(
    "the retryAt of a cooldown follows the wall clock",
    failEachTime,
    function*({ provider, virtual }) {
      for (const jump of [0, -hour, -24 * hour, 200]) {
        virtual.jump(jump)
        const { retryAt } = yield* Effect.flip(provider.get)
        assert.strictEqual(retryAt?.epochMillis, virtual.wall() + 750)
      }
    }
  )

  providerTest(
    "the provider uses its layer's clock",
    numberedTokens,
    function*({ after, provider }) {
      yield* provider.get
      const { clock } = VirtualClock.make(Date.UTC(2030, 0, 1))
      assert.strictEqual(valueOf(yield* Effect.withClock(provider.get, clock)), "token-1")
      assert.isAbove(
        yield* Effect.withClock(Clock.currentTimeMillis, clock),
        Date.UTC(2029, 0, 1)
      )
      yield* after(0, { calls: 1 })
    }
  )
})

describe("AccessTokenProvider, lifetimes", () => {
  it.effect.each([1000, 100])(
    "one get sends at most one request for a lifetime of %d ms",
    (lifetime) =>
      withProvider(
        (n) => token(`token-${n}`, lifetime),
        function*({ calls, provider, virtual }) {
          let background = 0
          for (let call = 0; call < 500; call++) {
            const before = yield* calls
            const { state } = yield* provider.status
            yield* provider.get
            yield* settle
            const requests = (yield* calls) - before
            assert.isAtMost(requests, 1)
            if (state !== "Empty" && state !== "Expired") background += requests
            yield* virtual.advance("10 millis")
          }
          assert.isAtMost(background, 5, "5 seconds")
        }
      )
  )

  const expired = [{ lifetime: 0 }, { lifetime: -5000 }]

  test.each(expired)(
    "get fails with DeadOnArrival at a lifetime of $lifetime ms",
    function*({ lifetime }) {
      yield* withProvider(
        () => tokenOfAge("expired", hour, lifetime),
        function*({ provider, virtual }) {
          const error = yield* Effect.flip(provider.get)
          assert(error._tag === "TokenExpiredError")
          deepStrictEqual([
            error.reason,
            error.expiredAt.epochMillis,
            error.checkedAt.epochMillis
          ], [
            "DeadOnArrival",
            virtual.wall() + lifetime,
            virtual.wall()
          ])
        }
      )
    }
  )

  test.each(expired)(
    "a cooldown follows a token with a lifetime of $lifetime ms",
    function*({ lifetime }) {
      yield* withProvider(() => tokenOfAge("expired", hour, lifetime), function*({ after }) {
        yield* after(0, { gets: "DeadOnArrival", cooldown: 750 })
        yield* after(749, { gets: "DeadOnArrival", calls: 1 })
        yield* after(1, { gets: "DeadOnArrival", calls: 2 })
      })
    }
  )

  it.effect.each([
    {
      measured: "before the request if the wall clock moved back",
      during: -0.5,
      afterwards: 0,
      lifetime: 59
    },
    {
      measured: "the token's arrival if the wall clock moved forward",
      during: 5,
      afterwards: -5,
      lifetime: 54
    }
  ])(
    "the lifetime by the monotonic clock is measured from $measured",
    ({ afterwards, during, lifetime }) =>
      withProvider(
        (_, virtual) =>
          Effect.gen(function*() {
            const acquired = yield* token("one")
            yield* Effect.sleep("1 minute")
            virtual.jump(during * minute)
            return acquired
          }),
        function*({ after, startCallers, provider, virtual }) {
          yield* startCallers(1)
          yield* virtual.advance("1 minute")
          virtual.jump(afterwards * minute)
          yield* after(lifetime * minute - 1, { state: "MustWait" })
          yield* after(1, { state: "Expired" })
          assert.isBelow(
            virtual.wall(),
            Option.getOrThrow((yield* provider.status).expiresAt).epochMillis
          )
        }
      )
  )

  providerTest(
    "a token expires after its full lifetime even if acquiredAt is ahead of the wall clock",
    (_, virtual) =>
      Effect.gen(function*() {
        virtual.jump(900)
        const ahead = yield* token("ahead")
        virtual.jump(-900)
        return ahead
      }),
    function*({ after, provider }) {
      yield* provider.get
      yield* after(hour - 1, { state: "MustWait" })
      // By the wall clock, 900 ms are left.
      yield* after(1, { state: "Expired" })
    }
  )

  providerTest(
    "the lifetime does not depend on an earlier token with the same expiresAt",
    (n) => n === 1 ? token("one") : tokenOfAge("two", 0, 50 * minute),
    function*({ after, provider, virtual }) {
      const one = yield* provider.get
      yield* virtual.advance(50 * minute)
      virtual.jump(-40 * minute)
      const two = yield* provider.refresh
      assert.strictEqual(two.expiresAt.epochMillis, one.expiresAt.epochMillis)
      // The first token would have expired.
      yield* after(11 * minute, { state: "Fresh" })
    }
  )

  providerTest(
    "the lifetime grows when the same value arrives with a later expiry",
    () => token("sliding", "100 seconds"),
    function*({ after }) {
      yield* after(0, { gets: "sliding" })
      yield* after("70 seconds", { state: "Fresh", refreshes: "sliding" })
      yield* after("70 seconds", { state: "Fresh" })
    }
  )

  providerTest(
    "the lifetime grows when the same value arrives with the same acquiredAt and a later expiry",
    (n) => tokenOfAge("extended", (n - 1) * 70_000, 100_000),
    function*({ after }) {
      yield* after(0, { gets: "extended" })
      yield* after("70 seconds", { state: "Fresh", refreshes: "extended" })
      yield* after("70 seconds", { state: "Fresh" })
    }
  )
})
