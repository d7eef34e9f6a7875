import { setImmediate } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import type { AccessTokenProvider } from "@store-api/core"
import { asyncProperty } from "@store-api/testing/test"
import { Effect, FastCheck as fc, Option } from "effect"
import {
  heldRenewals,
  hour,
  minute,
  numberedTokens,
  outage,
  providerTest,
  token,
  tokenOfAge,
  withProvider
} from "../support/scriptedSource.js"

describe("AccessTokenProvider, rejection", () => {
  /** Invalidates the token that `get` returns, this many times. Returns how often the provider dropped it. */
  const rejectTokens = (provider: AccessTokenProvider.Service, count: number) =>
    Effect.gen(function*() {
      let dropped = 0
      for (let rejection = 0; rejection < count; rejection++) {
        yield* provider.invalidate(yield* provider.get)
        if (Option.isNone(yield* provider.current)) dropped++
      }
      return dropped
    })

  providerTest(
    "invalidate does nothing when no token is cached",
    numberedTokens,
    function*({ after, provider }) {
      yield* provider.invalidate(yield* token("one"))
      yield* after(0, { state: "Empty", calls: 0 })
    }
  )

  providerTest(
    "five rejections take effect at once, or later one per minute",
    numberedTokens,
    function*({ after, provider, virtual }) {
      const half = minute / 2
      const steps = [[0, 20, 5], [minute - 1, 2, 0], [1, 2, 1], [1.5 * minute, 2, 1], [
        half,
        2,
        1
      ], [10 * minute, 20, 5]]
      for (const [passed = 0, rejections = 0, dropped = 0] of steps) {
        yield* virtual.advance(passed)
        assert.strictEqual(yield* rejectTokens(provider, rejections), dropped)
        // Without budget the token is kept: the caller gets the API's 401.
        if (passed === 0) yield* after(0, { gets: "token-6" })
      }
    }
  )

  providerTest(
    "five rejections take effect after a sleep in which the monotonic clock stood",
    numberedTokens,
    function*({ provider, virtual }) {
      assert.strictEqual(yield* rejectTokens(provider, 20), 5)
      virtual.jump(3 * hour)
      assert.strictEqual(yield* rejectTokens(provider, 20), 5)
    }
  )

  providerTest(
    "a wall clock that moves back does not take away the budget",
    numberedTokens,
    function*({ provider, virtual }) {
      assert.strictEqual(yield* rejectTokens(provider, 20), 5)
      yield* virtual.advance(minute)
      virtual.jump(-500)
      assert.strictEqual(yield* rejectTokens(provider, 2), 1)
    }
  )

  providerTest(
    "a refresh, a renewal or a token that the endpoint returns again does not change the budget",
    (n) => n % 2 === 0 ? tokenOfAge("same", 0, hour) : token(`token-${n}`),
    function*({ provider, virtual }) {
      assert.strictEqual(yield* rejectTokens(provider, 3), 3)
      yield* virtual.advance(2000)
      yield* provider.refresh
      yield* provider.refresh
      assert.strictEqual(yield* rejectTokens(provider, 20), 2)
    }
  )

  /** Calls at one moment, and then a pause: by both clocks, by the wall clock alone (sleep), or with it set back. */
  interface Burst {
    readonly calls: number
    readonly pause: number
    readonly asleep: number
    readonly setBack: number
  }

  const burst = fc.record<Burst>({
    calls: fc.integer({ min: 0, max: 6 }),
    pause: fc.oneof(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 0, max: 300_000 })),
    asleep: fc.oneof(
      { weight: 4, arbitrary: fc.constant(0) },
      fc.integer({ min: 0, max: 20 * minute })
    ),
    setBack: fc.oneof(
      { weight: 6, arbitrary: fc.constant(0) },
      fc.integer({ min: 0, max: 5000 })
    )
    // Further than the pause, the clock would expire a token, which costs a request that no rejection causes.
  }).map(({ setBack, ...burst }): Burst => ({
    ...burst,
    setBack: Math.min(setBack, burst.pause)
  }))
  const rhythm = fc.record({
    bursts: fc.array(burst, { minLength: 1, maxLength: 6 }),
    times: fc.integer({ min: 1, max: 6 })
  }).map(({ bursts, times }) => Array.from({ length: times }, () => bursts).flat())

  const everyMinute = (first: number) =>
    [first, ...Array<number>(11).fill(6)].map((calls): Burst => ({
      calls,
      pause: minute,
      asleep: 0,
      setBack: 0
    }))

  /** The times of the token requests, by the clock that advanced further. */
  const tokenRequests = async (rhythm: ReadonlyArray<Burst>, { lifetime, recovers, rejects }: {
    readonly lifetime: number
    readonly recovers: boolean
    readonly rejects: boolean
  }) => {
    let passed = 0
    const requests: Array<number> = []
    await Effect.runPromise(withProvider((n) => {
      requests.push(passed)
      return token(`token-${n}`, lifetime)
    }, function*({ provider, virtual }) {
      for (const { asleep, calls, pause, setBack } of rhythm) {
        // AuthorizedHttpClient repeats a request whose body it can send again.
        for (let n = 0; n < (recovers ? 2 * calls : calls); n++) {
          const token = yield* provider.get
          if (rejects) yield* provider.invalidate(token)
        }
        virtual.freeze(pause)
        virtual.jump(asleep - setBack)
        passed += pause + Math.max(asleep - setBack, 0)
      }
    }))
    return requests
  }

  /** Virtual time passes in microtasks: without a turn of the event loop, the worker would not answer Vitest. */
  const nextTurn = async () => {
    await setImmediate()
  }

  /** The greatest number of requests in any ten minutes. */
  const mostInTenMinutes = (times: ReadonlyArray<number>) =>
    Math.max(
      0,
      ...times.map((start) =>
        times.filter((at) => at >= start && at <= start + 10 * minute).length
      )
    )

  it(
    "an API that rejects everything costs at most 15 more token requests in any ten minutes, at any rhythm of calls",
    async () => {
      let reached = 0
      await fc.assert(
        asyncProperty(rhythm, fc.boolean(), async (rhythm, recovers) => {
          // So long a lifetime that no token expires: each further request replaces a rejected token.
          const requests = await tokenRequests(rhythm, {
            lifetime: 1e9,
            recovers,
            rejects: true
          })
          const most = mostInTenMinutes(requests.slice(1))
          assert.isAtMost(most, 15)
          reached = Math.max(reached, most)
        }).beforeEach(nextTurn),
        { numRuns: 1000, examples: [[everyMinute(6), true], [everyMinute(1), false]] }
      )
      assert.strictEqual(reached, 15, "control: a rhythm reaches the bound")
    },
    240_000
  )

  it(
    "an API that rejects everything costs at most 5 more token requests plus one per minute if tokens expire meanwhile",
    () =>
      fc.assert(
        asyncProperty(
          rhythm,
          fc.integer({ min: 10_000, max: hour }),
          async (bursts, lifetime) => {
            // A wall clock that is set back invalidates only tokens that were acquired after that time.
            const rhythm = bursts.map((burst) => ({ ...burst, setBack: 0 }))
            const run = (rejects: boolean) =>
              tokenRequests(rhythm, { lifetime, recovers: true, rejects })
            const passed = rhythm.reduce((sum, { asleep, pause }) => sum + pause + asleep, 0)
            const [works, rejects] = [await run(false), await run(true)]
            assert.isAtMost(rejects.length, works.length + 5 + passed / minute)
          }
        ).beforeEach(nextTurn),
        { numRuns: 300 }
      ),
    240_000
  )

  providerTest(
    "a rejection does not lengthen a cooldown",
    (n) => n === 2 ? Effect.fail(outage) : token(`token-${n}`),
    function*({ after, provider }) {
      yield* provider.invalidate(yield* provider.get)
      yield* after(0, { gets: "Transport" })
      yield* after(750, { gets: "token-3", calls: 3 })
    }
  )

  providerTest(
    "callers wait for the renewal in flight after a rejection",
    heldRenewals(),
    function*({ after, startCallers, complete, expectOutcome, provider }) {
      const one = yield* provider.get
      yield* after("57 minutes", { gets: "one", calls: 2 })
      yield* provider.invalidate(one)
      yield* after(0, { current: "none" })
      const waiting = yield* startCallers(1)
      yield* after(0, { calls: 2 })
      yield* complete(token("two"))
      yield* expectOutcome(waiting, "two")
      yield* provider.invalidate(one)
      // A late rejection of the old token does not drop the new one.
      yield* after(0, { gets: "two" })
    }
  )

  providerTest(
    "callers in must-wait get the new token after a rejection",
    heldRenewals(),
    function*({ after, startCallers, complete, expectOutcome, provider }) {
      const one = yield* provider.get
      yield* after("3580 seconds", { state: "MustWait" })
      const waiting = [yield* startCallers(1), yield* startCallers(1, provider.refresh)]
      yield* provider.invalidate(one)
      // Half of the remaining lifetime is over.
      yield* after("11 seconds", { gets: "waits" })
      for (const caller of waiting) yield* expectOutcome(caller, "waits")
      yield* complete(token("two"))
      for (const caller of waiting) yield* expectOutcome(caller, "two")
    }
  )
})
