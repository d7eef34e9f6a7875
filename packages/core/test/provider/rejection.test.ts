import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { Effect, FastCheck as fc, Fiber, Layer, Option, TestClock } from "effect"
import {
  aged,
  answering,
  hour,
  layer as scripted,
  minute,
  run,
  ScriptedSource,
  settle,
  token,
  valueOf
} from "../support/scriptedSource.js"
import { test } from "../support/test.js"

describe("AccessTokenProvider, rejection", () => {
  /** Invalidates the token that `get` returns. Returns whether the provider dropped it. */
  const rejectToken = (provider: AccessTokenProvider.Service) =>
    Effect.gen(function*() {
      yield* provider.invalidate(yield* provider.get)
      return Option.isNone(yield* provider.current)
    })

  const rejectTokens = (provider: AccessTokenProvider.Service, count: number) =>
    Effect.map(
      Effect.forEach(Array.from({ length: count }), () => rejectToken(provider)),
      (dropped) => dropped.filter((dropped) => dropped).length
    )

  it.effect("does nothing when no token is cached", () =>
    run(() => token("one"), ({ calls, provider }) =>
      Effect.gen(function*() {
        yield* provider.invalidate(yield* token("one"))
        assert.strictEqual((yield* provider.status).state, "Empty")
        assert.strictEqual(yield* calls, 0)
      })))

  it.effect("five rejections take effect at once, and one more per minute, up to five again", () =>
    run((n) => token(`token-${n}`), ({ provider, virtual }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* rejectTokens(provider, 20), 5)
        const kept = yield* provider.get
        assert.strictEqual(valueOf(kept), "token-6", "the token is kept: the caller gets the API's 401")
        yield* virtual.advance(minute - 1)
        assert.strictEqual(yield* rejectTokens(provider, 2), 0)
        yield* virtual.advance(1)
        assert.strictEqual(yield* rejectTokens(provider, 2), 1)
        yield* provider.get
        yield* virtual.advance(1.5 * minute)
        assert.strictEqual(yield* rejectTokens(provider, 2), 1)
        yield* provider.get
        yield* virtual.advance(minute / 2)
        assert.strictEqual(yield* rejectTokens(provider, 2), 1, "half a minute was left")
        yield* provider.get
        yield* virtual.advance(10 * minute)
        assert.strictEqual(yield* rejectTokens(provider, 20), 5)
      })))

  it.effect("the first rejection after three hours of sleep takes effect, although the monotonic clock stood still", () =>
    run((n) => token(`token-${n}`), ({ provider, virtual }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* rejectTokens(provider, 20), 5)
        virtual.jump(3 * hour)
        assert.strictEqual(yield* rejectTokens(provider, 20), 5)
      })))

  it.effect("a wall clock that moves back does not take away the budget", () =>
    run((n) => token(`token-${n}`), ({ provider, virtual }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* rejectTokens(provider, 20), 5)
        yield* virtual.advance(minute)
        virtual.jump(-500)
        assert.strictEqual(yield* rejectTokens(provider, 2), 1)
      })))

  it.effect("a refresh, a renewal or a token that the endpoint returns again does not change the budget", () =>
    run(
      (n) => n % 2 === 0 ? aged("same", 0, hour) : token(`token-${n}`),
      ({ provider, virtual }) =>
        Effect.gen(function*() {
          assert.strictEqual(yield* rejectTokens(provider, 3), 3)
          yield* virtual.advance(2000)
          yield* provider.refresh
          yield* provider.refresh
          assert.strictEqual(yield* rejectTokens(provider, 20), 2)
        })
    ))

  /** Calls at one moment, and then a pause: by both clocks, by the wall clock alone (sleep), or with it set back. */
  interface Burst {
    readonly calls: number
    readonly pause: number
    readonly asleep: number
    readonly setBack: number
  }

  const steady = fc.record({ pause: fc.integer({ min: 1, max: 120_000 }), length: fc.integer({ min: 2, max: 25 }) })
    .map((
      { length, pause }
    ) => Array.from({ length }, (): Burst => ({ calls: 1, pause, asleep: 0, setBack: 0 })))
  const waves = fc.record({
    calls: fc.integer({ min: 2, max: 8 }),
    every: fc.integer({ min: 500, max: 8000 }),
    pause: fc.integer({ min: 20_000, max: 120_000 }),
    count: fc.integer({ min: 2, max: 8 })
  }).map(({ calls, count, every, pause }) =>
    Array.from({ length: calls * count }, (_, n): Burst => ({
      calls: 1,
      pause: n % calls === calls - 1 ? pause : every,
      asleep: 0,
      setBack: 0
    }))
  )
  const random = fc.array(
    fc.record<Burst>({
      calls: fc.integer({ min: 0, max: 6 }),
      pause: fc.oneof(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 0, max: 300_000 })),
      asleep: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 20 * minute })),
      setBack: fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 5000 }))
    }),
    { minLength: 2, maxLength: 10 }
  )
  const rhythm = fc.array(fc.oneof(steady, waves, random), { minLength: 1, maxLength: 2 }).map((parts) => parts.flat())

  const everyMinute = Array.from({ length: 11 }, (): Burst => ({ calls: 6, pause: minute, asleep: 0, setBack: 0 }))

  /** The times of the token requests, by the clock that advanced further. */
  const tokenRequests = (
    rhythm: ReadonlyArray<Burst>,
    { lifetime, recovers, rejects }: {
      readonly lifetime: number
      readonly recovers: boolean
      readonly rejects: boolean
    }
  ) => {
    let passed = 0
    const requests: Array<number> = []
    return run((n) => {
      requests.push(passed)
      return token(`token-${n}`, lifetime)
    }, ({ provider, virtual }) => {
      const call = Effect.flatMap(provider.get, (token) => rejects ? provider.invalidate(token) : Effect.void)
      return Effect.gen(function*() {
        for (const { asleep, calls, pause, setBack } of rhythm) {
          for (let n = 0; n < calls; n++) {
            yield* call
            // AuthorizedHttpClient repeats a request whose body it can send again.
            if (recovers) yield* call
          }
          virtual.freeze(pause)
          virtual.jump(asleep - setBack)
          passed += pause + Math.max(asleep - setBack, 0)
        }
        return requests
      })
    })
  }

  /** The greatest number of requests in any ten minutes. */
  const mostInTenMinutes = (times: ReadonlyArray<number>) =>
    Math.max(0, ...times.map((start) => times.filter((at) => at >= start && at <= start + 10 * minute).length))

  it(
    "in any ten minutes and at any rhythm of calls, an API that rejects everything costs at most 15 token requests more",
    async () => {
      let reached = 0
      await fc.assert(
        fc.asyncProperty(rhythm, fc.boolean(), async (rhythm, recovers) => {
          // So long a lifetime that no token expires: each further request replaces a rejected token.
          const requests = await Effect.runPromise(tokenRequests(rhythm, { lifetime: 1e9, recovers, rejects: true }))
          const most = mostInTenMinutes(requests.slice(1))
          assert.isAtMost(most, 15)
          reached = Math.max(reached, most)
        }),
        { numRuns: 1000, examples: [[everyMinute, true]] }
      )
      assert.strictEqual(reached, 15, "control: a rhythm reaches the bound")
    },
    60_000
  )

  it("with tokens that expire in between, it costs at most 5 more, and one more per minute", () =>
    fc.assert(
      fc.asyncProperty(rhythm, fc.integer({ min: 10_000, max: hour }), async (bursts, lifetime) => {
        // A wall clock that is set back invalidates only tokens that were acquired after that time.
        const rhythm = bursts.map((burst) => ({ ...burst, setBack: 0 }))
        const run = (rejects: boolean) =>
          Effect.runPromise(tokenRequests(rhythm, { lifetime, recovers: true, rejects }))
        const passed = rhythm.reduce(
          (sum, { asleep, pause, setBack }) => sum + pause + Math.max(asleep - setBack, 0),
          0
        )
        const [works, rejects] = [await run(false), await run(true)]
        assert.isAtMost(rejects.length, works.length + 5 + passed / minute)
      }),
      { numRuns: 300 }
    ), 60_000)

  test("a rejection does not lengthen the cooldown after a failure", function*() {
    const down = new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 })
    const source = yield* answering((n) => n === 2 ? Effect.fail(down) : token(`token-${n}`))
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* provider.invalidate(yield* provider.get)
      assert.strictEqual((yield* Effect.flip(provider.get))._tag, "TokenRequestError")
      yield* TestClock.adjust("1 seconds")
      const third = yield* provider.get
      assert.strictEqual(valueOf(third), "token-3")
      assert.strictEqual(yield* source.calls, 3)
    }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)))
  })

  it.effect("when the token is rejected during its renewal, callers wait for the renewal and do not get the rejected token", () =>
    Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      const source = yield* ScriptedSource
      const first = yield* Effect.fork(provider.get)
      yield* Effect.flatMap(source.next, (call) => call.complete(token("one")))
      const one = yield* Fiber.join(first)
      yield* TestClock.adjust("56 minutes")
      yield* provider.get
      const renewal = yield* source.next
      yield* provider.invalidate(one)
      deepStrictEqual(yield* provider.current, Option.none())
      const waiting = yield* Effect.fork(provider.get)
      yield* settle
      assert.strictEqual(yield* source.calls, 2)
      yield* renewal.complete(token("two"))
      assert.strictEqual(valueOf(yield* Fiber.join(waiting)), "two")
      yield* provider.invalidate(one)
      assert.strictEqual(
        valueOf(yield* provider.get),
        "two",
        "a late rejection of the old token does not drop the new one"
      )
    }).pipe(Effect.provide(Layer.provideMerge(AccessTokenProvider.layer(), scripted))))

  it.effect("when the token is rejected while callers wait in must-wait, they get the new token", () =>
    Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      const source = yield* ScriptedSource
      const first = yield* Effect.fork(provider.get)
      yield* Effect.flatMap(source.next, (call) => call.complete(token("one")))
      const one = yield* Fiber.join(first)
      yield* TestClock.adjust("3580 seconds")
      const waiting = yield* Effect.fork(provider.get)
      const renewal = yield* source.next
      yield* settle
      yield* provider.invalidate(one)
      yield* TestClock.adjust("10 seconds")
      yield* settle
      assert.isTrue(
        Option.isNone(yield* Fiber.poll(waiting)),
        "half of the remaining lifetime is over, and the cached token was dropped"
      )
      yield* renewal.complete(token("two"))
      assert.strictEqual(valueOf(yield* Fiber.join(waiting)), "two")
    }).pipe(Effect.provide(Layer.provideMerge(AccessTokenProvider.layer(), scripted))))
})
