import { HttpClient, HttpClientError, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { AccessTokenProvider, TokenEndpoint } from "@store-api/core"
import type { LiveSteps } from "@store-api/testing/effectMajor"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import {
  Deferred,
  type Duration,
  Effect,
  Fiber,
  FiberId,
  Layer,
  Logger,
  LogLevel,
  Option,
  Random
} from "effect"
import { authUrl, credentials } from "../support/fleet.js"
import {
  type Acquire,
  heldRenewals,
  hour,
  minute,
  outage,
  providerTest,
  settle,
  token,
  type Tools,
  withProvider
} from "../support/scriptedSource.js"
import { tokenBody } from "../support/wire.js"

describe("AccessTokenProvider, limits", () => {
  describe("a source that hangs", () => {
    it.effect.each(
      [["interruptible", Effect.interruptible, 1], [
        "uninterruptible",
        Effect.uninterruptible,
        0
      ]] as const
    )(
      "callers fail with Timeout after 2 minutes if the source hangs in an acquisition that is %s",
      ([, region, interruptions]) => {
        const released = Deferred.unsafeMake<void>(FiberId.none)
        let interrupted = 0
        const never = region(Deferred.await(released)).pipe(
          Effect.onInterrupt(() => Effect.sync(() => interrupted++)),
          Effect.zipRight(token("late"))
        )
        return withProvider(
          (n) => n === 1 ? never : token("fresh"),
          function*({ after, startCallers, expectOutcome, provider, virtual }) {
            const waiting = [yield* startCallers(1), yield* startCallers(1, provider.refresh)]
            yield* virtual.advance(2 * minute - 1)
            for (const caller of waiting) yield* expectOutcome(caller, "waits")
            assert.strictEqual(interrupted, 0)
            yield* virtual.advance(1)
            for (const caller of waiting) yield* expectOutcome(caller, "Timeout")
            assert.strictEqual(interrupted, interruptions)
            assert.strictEqual(virtual.sleepers(), 0, "no time limit goes on")
            yield* after("1 seconds", { gets: "fresh", calls: 2 })
            yield* Deferred.succeed(released, undefined)
            yield* settle
            // A late result does not replace the cached token.
            yield* after(0, { gets: "fresh" })
          }
        )
      }
    )

    providerTest(
      "the next renewal replaces one that hangs",
      heldRenewals(),
      function*({ after, complete, interruptions, provider }) {
        yield* provider.get
        yield* after(hour - 3 * minute, { gets: "one", calls: 2 })
        yield* after(2 * minute, { gets: "one" })
        assert.strictEqual(yield* interruptions, 1)
        yield* after("1 seconds", { gets: "one", calls: 3 })
        // Of the two acquisitions, the first was abandoned.
        yield* complete(token("late"))
        yield* after(0, { gets: "one" })
        yield* complete(token("three"))
        yield* after(0, { gets: "three" })
      }
    )

    const hangingRenewals = (lifetime: Duration.DurationInput): Acquire => (n) =>
      n === 1 ? token("one", lifetime) : Effect.never

    providerTest(
      "a caller waits at most 2.5 minutes if the token expires during a renewal that hangs",
      hangingRenewals("60 seconds"),
      function*({ after, startCallers, expectOutcome, provider, virtual }) {
        yield* provider.get
        yield* after("56 seconds", { gets: "one" })
        yield* virtual.advance("5 seconds")
        const caller = yield* startCallers(1)
        // The caller waits until the renewal is 30 seconds old. Then a new acquisition starts.
        yield* after("24 seconds", { calls: 2 })
        yield* after("1 seconds", { calls: 3 })
        yield* virtual.advance(2 * minute)
        yield* expectOutcome(caller, "Timeout")
      }
    )

    providerTest(
      "refresh waits at most 2.5 minutes if the token is rejected during a renewal that hangs",
      hangingRenewals("60 minutes"),
      function*({ startCallers, expectOutcome, provider, virtual }) {
        const first = yield* provider.get
        yield* virtual.advance(hour - 2.9 * minute)
        const waiting = [yield* startCallers(1), yield* startCallers(1, provider.refresh)]
        yield* provider.invalidate(first)
        yield* virtual.advance(2.5 * minute)
        for (const caller of waiting) yield* expectOutcome(caller, "Timeout")
      },
      { leeway: "3 minutes" }
    )

    providerTest(
      "refresh replaces a renewal that is 30 s old",
      (n) => n === 2 ? Effect.never : token(`token-${n}`),
      function*({ after, provider }) {
        yield* provider.get
        yield* after(hour - 3 * minute, { gets: "token-1" })
        yield* after("40 seconds", { refreshes: "token-3", calls: 3 })
      }
    )

    providerTest(
      "the scope closes after 10 s if the source cannot be interrupted",
      () => Effect.uninterruptible(Effect.never),
      function*({ startCallers, close, expectOutcome, virtual }) {
        const caller = yield* startCallers(1)
        const closing = yield* Effect.fork(close)
        yield* expectOutcome(caller, "Closed")
        assert.isTrue(
          Option.isNone(yield* Fiber.poll(closing)),
          "callers fail before the scope is closed"
        )
        yield* virtual.advance("10 seconds")
        yield* Fiber.join(closing)
        assert.strictEqual(virtual.sleepers(), 0, "no time limit goes on")
      }
    )
  })

  test("a source with a long computation does not delay a caller with a valid token", function*() {
    let computed = false
    const script = (n: number) =>
      Effect.suspend(() => {
        computed = n > 1
        return token(`token-${n}`)
      })
    yield* withProvider(script, function*({ provider, virtual }) {
      yield* provider.get
      yield* virtual.advance(57 * minute)
      assert.isFalse(yield* Effect.map(provider.get, () => computed))
      yield* settle
      assert.isTrue(computed)
    })
  })

  describe("a renewal that fails after the token has expired", () => {
    /** Starts to renew a token of 10 s when 1.5 s are left. The test completes the renewal. */
    const failingRenewalTest = (title: string, steps: (tools: Tools) => LiveSteps) =>
      providerTest(
        title,
        (n) => n === 1 ? token("one", "10 seconds") : n === 2 ? undefined : token("fresh"),
        function*(tools) {
          yield* tools.provider.get
          yield* tools.after("8500 millis", { gets: "one", calls: 2 })
          yield* Effect.gen(() => steps(tools))
        }
      )

    for (
      const [title, second] of [[
        "all callers share another acquisition after a failure",
        Effect.fail(outage)
      ], [
        "all callers share another acquisition after a defect",
        Effect.die("invented")
      ]] as const
    ) {
      failingRenewalTest(
        title,
        function*({ after, startCallers, complete, expectOutcome, provider, virtual }) {
          yield* virtual.advance("5 seconds")
          const waiting = [yield* startCallers(2), yield* startCallers(1, provider.refresh)]
          yield* after(0, { calls: 2 })
          yield* complete(second)
          for (const caller of waiting) yield* expectOutcome(caller, "fresh")
          yield* after(0, { calls: 3 })
        }
      )
    }

    failingRenewalTest(
      "callers get a new token if the renewal of a rejected one fails",
      function*({ startCallers, complete, expectOutcome, provider }) {
        yield* provider.invalidate(yield* provider.get)
        const caller = yield* startCallers(1)
        yield* complete(Effect.fail(outage))
        yield* expectOutcome(caller, "fresh")
      }
    )

    failingRenewalTest(
      "callers before the expiry share an acquisition with those after it",
      function*({ after, startCallers, complete, expectOutcome, virtual }) {
        yield* virtual.advance("1200 millis")
        const waiting = [yield* startCallers(1)]
        virtual.freeze(5000)
        waiting.push(yield* startCallers(2))
        yield* complete(Effect.fail(outage))
        for (const caller of waiting) yield* expectOutcome(caller, "fresh")
        yield* after(0, { calls: 3 })
      }
    )

    test("callers get the rejected token if the endpoint returns it again after a failed renewal", function*() {
      const one = yield* Effect.withClock(token("one"), VirtualClock.make().clock)
      yield* withProvider(
        (n) => n === 2 ? undefined : Effect.succeed(one),
        function*({ after, startCallers, complete, expectOutcome, provider }) {
          yield* provider.get
          yield* after(hour - 20_000, { state: "MustWait", gets: "waits" })
          yield* provider.invalidate(one)
          const waiting = yield* startCallers(2)
          yield* complete(Effect.fail(outage))
          yield* expectOutcome(waiting, "one")
        }
      )
    })
  })

  describe("with TokenEndpoint", () => {
    interface EndpointTools {
      readonly provider: AccessTokenProvider.Service
      readonly virtual: VirtualClock.VirtualClock
      readonly requests: () => number
    }

    /** Runs the steps with a provider over the real endpoint. A response that fails is a broken connection. */
    const overEndpoint = (
      respond: (number: number) => Effect.Effect<Response, void>,
      steps: (tools: EndpointTools) => LiveSteps,
      options: Partial<TokenEndpoint.Options> = {}
    ) =>
      Effect.gen(function*() {
        const virtual = VirtualClock.make()
        let requests = 0
        const client = HttpClient.make((request) =>
          Effect.suspend(() => {
            requests++
            return respond(requests)
          }).pipe(Effect.mapBoth({
            onFailure: () =>
              new HttpClientError.RequestError({ request, reason: "Transport" }),
            onSuccess: (response) => HttpClientResponse.fromWeb(request, response)
          }))
        )
        const layer = AccessTokenProvider.layer().pipe(
          Layer.provide(
            TokenEndpoint.layer({
              authUrl,
              credentials: Effect.succeed(credentials),
              ...options
            })
          ),
          Layer.provide(Layer.succeed(HttpClient.HttpClient, client))
        )
        yield* Effect.gen(function*() {
          const provider = yield* AccessTokenProvider.AccessTokenProvider
          yield* Effect.gen(() => steps({ provider, virtual, requests: () => requests }))
        }).pipe(
          Effect.provide(layer),
          Effect.scoped,
          Effect.provide(Logger.minimumLogLevel(LogLevel.None)),
          Effect.withClock(virtual.clock),
          Effect.withRandom(Random.fixed([0]))
        )
      })

    it.effect.each(
      [
        ["of 503 responses", Effect.sync(() => new Response("", { status: 503 })), 5000],
        // In the worst case the outage ends as the third attempt starts. After two attempts of 10 s and pauses of at
        // least 150 and 300 ms, the deadline of 30 s leaves 9.55 s for it. A cooldown of up to 5 s follows.
        ["without a response", Effect.never, 14_600]
      ] as const
    )("callers get a token soon after ten minutes %s", ([, response, bound]) => {
      let isDown = false
      const respond = () => isDown ? response : Effect.sync(() => new Response(tokenBody()))
      return overEndpoint(respond, function*({ provider, virtual }) {
        yield* provider.get
        yield* virtual.advance("56 minutes")
        isDown = true
        // One more caller every three seconds. They wait concurrently.
        for (let second = 0; second < 600; second += 3) {
          yield* Effect.fork(Effect.exit(provider.get))
          yield* virtual.advance("3 seconds")
        }
        assert.strictEqual(
          (yield* provider.status).state,
          "Expired",
          "the token expired during the outage"
        )
        isDown = false
        const end = virtual.monotonic()
        while ((yield* provider.status).state !== "Fresh") {
          yield* Effect.fork(Effect.exit(provider.get))
          yield* virtual.advance("100 millis")
          assert.isAtMost(virtual.monotonic() - end, bound)
        }
      })
    })

    type Outcome = "a response" | "no response" | "a broken connection"
    const outcomes: ReadonlyArray<Outcome> = [
      "a response",
      "no response",
      "a broken connection"
    ]
    const cases = [7, 40].flatMap((seconds) =>
      outcomes.map((outcome) => [seconds, outcome] as const)
    )

    it.effect.each(cases)(
      "every call succeeds in a process that is stopped for %s s during a renewal that gets %s",
      ([seconds, outcome]) => {
        /** The endpoint responds after 1 second. The second request has the given outcome. */
        const respond = (number: number) => {
          const outcomeNow = number === 2 ? outcome : "a response"
          return Effect.zipRight(
            outcomeNow === "no response" ? Effect.never : Effect.sleep(1000),
            outcomeNow === "a broken connection"
              ? Effect.fail(undefined)
              : Effect.sync(() =>
                new Response(tokenBody({ access_token: `t${number}`, expires_in: 8 }))
              )
          )
        }
        const stoppedAfter = (moment: number) =>
          overEndpoint(respond, function*({ provider, requests, virtual }) {
            const first = yield* Effect.fork(provider.get)
            yield* virtual.advance(1000)
            yield* Fiber.join(first)
            yield* virtual.advance(5500)
            yield* provider.get
            yield* virtual.advance(moment)
            virtual.freeze(seconds * 1000)
            // These callers join the in-flight renewal. The later ones arrive after its timers fired.
            const earlier = yield* Effect.forkAll([provider.get, provider.get])
            yield* virtual.advance(0)
            const later = yield* Effect.forkAll([provider.get, provider.get, provider.get])
            yield* virtual.advance(5000)
            yield* Fiber.join(earlier)
            yield* Fiber.join(later)
            // Without the stop, a renewal that gets no response sends its request once more.
            const undisturbed = outcome === "a response" ? 2 : 3
            assert.isAtMost(requests(), undisturbed + 1, `stopped after ${moment} ms`)
          }, { attemptTimeout: "2 seconds", deadline: "4 seconds" })
        return Effect.forEach(
          Array.from({ length: 41 }, (_, index) => 100 * index),
          stoppedAfter
        )
      }
    )
  })
})
