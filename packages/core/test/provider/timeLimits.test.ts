import { HttpClient, HttpClientError, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, SharedTokenSource, TokenEndpoint, TokenStore } from "@store-api/core"
import { Deferred, type Duration, Effect, Exit, Fiber, FiberId, Layer, Logger, LogLevel, Option, Random } from "effect"
import { authUrl, credentials, settled } from "../support/fleet.js"
import {
  heldTest,
  hour,
  minute,
  outage,
  outcomeOf,
  providerTest,
  renewalTest,
  settle,
  timeline,
  token
} from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"
import { clientId, clientSecret, credentialsOf, tokenBody } from "../support/wire.js"

describe("AccessTokenProvider, limits", () => {
  describe("a source that hangs", () => {
    it.effect.each(
      [["interruptible", Effect.interruptible], ["uninterruptible", Effect.uninterruptible]] as const
    )("%s: callers fail with Timeout after 2 minutes, and the next call succeeds", ([, region]) => {
      const released = Deferred.unsafeMake<void>(FiberId.none)
      const never = Effect.zipRight(region(Deferred.await(released)), token("late"))
      return timeline((n) => n === 1 ? never : token("fresh"), function*({ after, callers, provider, virtual }) {
        const waiting = [yield* callers(1), yield* Effect.fork(Effect.map(outcomeOf(provider.refresh), Array.of))]
        yield* virtual.advance(2 * minute - 1)
        for (const caller of waiting) assert.isTrue(Option.isNone(yield* Fiber.poll(caller)))
        yield* virtual.advance(1)
        for (const caller of waiting) deepStrictEqual(yield* Fiber.join(caller), ["Timeout"])
        yield* after("1 seconds", { gets: "fresh", calls: 2 })
        yield* Deferred.succeed(released, undefined)
        yield* settle
        // A late result does not replace the cached token.
        yield* after(0, { gets: "fresh" })
      })
    })

    renewalTest(
      "in a renewal: callers get the cached token, and the next renewal replaces it",
      function*({ after, complete, interrupted, provider }) {
        yield* provider.get
        yield* after(hour - 3 * minute, { gets: "one", calls: 2 })
        yield* after(2 * minute, { gets: "one" })
        assert.strictEqual(yield* interrupted, 1)
        yield* after("1 seconds", { gets: "one", calls: 3 })
        // Of the two acquisitions, the first was abandoned.
        yield* complete(token("late"))
        yield* after(0, { gets: "one" })
        yield* complete(token("three"))
        yield* after(0, { gets: "three" })
      }
    )

    const hangingRenewal = (lifetime: Duration.DurationInput, options?: AccessTokenProvider.Options) =>
      providerTest((n) => n === 1 ? token("one", lifetime) : Effect.never, options)

    hangingRenewal("60 seconds")(
      "in a renewal: a caller that arrives after the token expired waits at most 2 minutes and 30 seconds",
      function*({ after, callers, provider, virtual }) {
        yield* provider.get
        yield* after("56 seconds", { gets: "one" })
        yield* virtual.advance("5 seconds")
        const caller = yield* callers(1)
        // The caller waits until the renewal is 30 seconds old. Then a new acquisition starts.
        yield* after("24 seconds", { calls: 2 })
        yield* after("1 seconds", { calls: 3 })
        yield* virtual.advance(2 * minute)
        deepStrictEqual(yield* Fiber.join(caller), ["Timeout"])
      }
    )

    hangingRenewal("60 seconds")(
      "in a renewal: a caller of refresh waits at most 2 minutes and 30 seconds",
      function*({ after, provider, virtual }) {
        yield* provider.get
        yield* after("50 seconds", { gets: "one" })
        const caller = yield* Effect.fork(outcomeOf(provider.refresh))
        yield* virtual.advance(2.5 * minute)
        assert.strictEqual(yield* Fiber.join(caller), "Timeout")
      }
    )

    providerTest((n) => n === 2 ? Effect.never : token(`token-${n}`))(
      "in a renewal that is 30 seconds old: a caller of refresh gets another token",
      function*({ after, provider, virtual }) {
        yield* provider.get
        yield* after(hour - 3 * minute, { gets: "token-1" })
        yield* virtual.advance("40 seconds")
        assert.strictEqual(yield* outcomeOf(provider.refresh), "token-3")
        yield* after(0, { calls: 3 })
      }
    )

    hangingRenewal("60 minutes", { leeway: "3 minutes" })(
      "in a renewal: a caller whose token is rejected waits at most 2 minutes and 30 seconds",
      function*({ callers, provider, virtual }) {
        const first = yield* provider.get
        yield* virtual.advance(hour - 2.9 * minute)
        const caller = yield* callers(1)
        yield* provider.invalidate(first)
        yield* virtual.advance(2.5 * minute)
        assert.isTrue(Option.isSome(yield* Fiber.poll(caller)))
      }
    )

    heldTest(
      "is interrupted after 2 minutes, and no fiber is left sleeping",
      function*({ callers, interrupted, virtual }) {
        const caller = yield* callers(1)
        yield* virtual.advance(2 * minute - 1)
        assert.strictEqual(yield* interrupted, 0)
        yield* virtual.advance(1)
        assert.strictEqual(yield* interrupted, 1)
        yield* Fiber.join(caller)
        assert.strictEqual(virtual.sleepers(), 0)
      }
    )

    providerTest(() => Effect.uninterruptible(Effect.never))(
      "uninterruptible: the scope closes after 10 seconds",
      function*({ callers, close, virtual }) {
        const caller = yield* callers(1)
        const closing = yield* Effect.fork(close)
        yield* settle
        deepStrictEqual(yield* Fiber.join(caller), ["Closed"], "callers fail before the scope is closed")
        assert.isTrue(Option.isNone(yield* Fiber.poll(closing)))
        yield* virtual.advance("10 seconds")
        yield* Fiber.join(closing)
        assert.strictEqual(virtual.sleepers(), 0, "no time limit goes on")
      }
    )
  })

  describe("Effect.never", () => {
    it.live.each(
      [
        ["the credentials", false],
        ["the credentials", true],
        ["get", true],
        ["lease", true],
        ["put", true],
        ["the body of a response", false],
        ["the body of a response", true]
      ] as const
    )(
      "in %s (shared: %s): callers end within 2 minutes and 30 seconds, and later ones get a token",
      ([place, shared]) =>
        Effect.gen(function*() {
          const virtual = VirtualClock.make(undefined, settled)
          let [hangs, cancelled] = [true, 0]
          const at = <A, E>(name: typeof place, effect: Effect.Effect<A, E>) =>
            Effect.suspend(() => hangs && name === place ? Effect.never : effect)
          const cancel = () => {
            cancelled++
          }

          const client = HttpClient.make((request) =>
            Effect.sync(() => {
              const body = hangs && place === "the body of a response" ? new ReadableStream({ cancel }) : tokenBody()
              return HttpClientResponse.fromWeb(request, new Response(body))
            })
          )
          const memory = yield* TokenStore.makeMemory
          const store = TokenStore.TokenStore.of({
            ...memory,
            get: (key) => at("get", memory.get(key)),
            lease: (key, duration) => at("lease", memory.lease(key, duration)),
            put: (key, entry, lifetime) => at("put", memory.put(key, entry, lifetime))
          })
          const options = { authUrl, credentials: at("the credentials", Effect.succeed(credentials)) }
          const endpoint = TokenEndpoint.layer(options)
          const live = AccessTokenProvider.layer().pipe(
            Layer.provide(shared ? SharedTokenSource.layer(options).pipe(Layer.provide(endpoint)) : endpoint),
            Layer.provide(Layer.succeed(TokenStore.TokenStore, store)),
            Layer.provide(Layer.succeed(HttpClient.HttpClient, client))
          )
          yield* Effect.gen(function*() {
            const provider = yield* AccessTokenProvider.AccessTokenProvider
            const callers = yield* Effect.forkAll([provider.get, provider.refresh].map(Effect.exit))
            yield* virtual.advance(2.5 * minute)
            assert.isTrue(Option.isSome(yield* Fiber.poll(callers)), "the callers have ended")
            hangs = false
            yield* virtual.advance("5 seconds")
            assert.isTrue(Exit.isSuccess(yield* Effect.exit(provider.get)))
          }).pipe(
            Effect.provide(live),
            Effect.provide(Logger.minimumLogLevel(LogLevel.None)),
            Effect.withClock(virtual.clock)
          )
          yield* settled
          assert.strictEqual(virtual.sleepers(), 0, "nothing is left running")
          if (place === "the body of a response") assert.isAbove(cancelled, 0, "its socket is free")
        })
    )
  })

  test("a source with a long computation does not delay a caller with a valid token", function*() {
    let computed = false
    const script = (n: number) =>
      Effect.suspend(() => {
        computed = n > 1
        return token(`token-${n}`)
      })
    yield* timeline(script, function*({ provider, virtual }) {
      yield* provider.get
      yield* virtual.advance(57 * minute)
      assert.isFalse(yield* Effect.map(provider.get, () => computed))
      yield* settle
      assert.isTrue(computed)
    })
  })

  describe("a renewal that fails after the token has expired", () => {
    const script = (n: number) => n === 1 ? token("one", "10 seconds") : n === 2 ? undefined : token("fresh")

    /** Starts to renew a token of 10 s when 1.5 s are left. The test completes the renewal. */
    const failingRenewal: typeof heldTest = (title, steps) =>
      providerTest(script)(title, function*(tools) {
        yield* tools.provider.get
        yield* tools.after("8500 millis", { gets: "one", calls: 2 })
        yield* Effect.gen(() => steps(tools))
      })

    for (const [kind, second] of [["a failure", Effect.fail(outage)], ["a defect", Effect.die("invented")]] as const) {
      failingRenewal(
        `with ${kind}: callers that joined it share a new acquisition`,
        function*({ after, callers, complete, provider, virtual }) {
          yield* virtual.advance("5 seconds")
          const waiting = yield* callers(2)
          const refreshing = yield* Effect.fork(outcomeOf(provider.refresh))
          yield* after(0, { calls: 2 })
          yield* complete(second)
          deepStrictEqual([...yield* Fiber.join(waiting), yield* Fiber.join(refreshing)], ["fresh", "fresh", "fresh"])
          yield* after(0, { calls: 3 })
        }
      )
    }

    failingRenewal(
      "a caller whose token was rejected during it gets a new token",
      function*({ callers, complete, provider }) {
        yield* provider.invalidate(yield* provider.get)
        const caller = yield* callers(1)
        yield* complete(Effect.fail(outage))
        deepStrictEqual(yield* Fiber.join(caller), ["fresh"])
      }
    )

    failingRenewal(
      "a caller that waited for it gets the token that another caller has acquired",
      function*({ callers, complete, virtual }) {
        yield* virtual.advance("1200 millis")
        const waiting = yield* callers(1)
        virtual.jump(hour)
        const others = yield* callers(2)
        yield* complete(Effect.fail(outage))
        deepStrictEqual([...yield* Fiber.join(waiting), ...yield* Fiber.join(others)], ["fresh", "fresh", "fresh"])
      }
    )

    failingRenewal(
      "a caller that started to wait while the token was valid gets a new token",
      function*({ callers, complete, virtual }) {
        yield* virtual.advance("1200 millis")
        const waiting = yield* callers(1)
        virtual.freeze(5000)
        yield* complete(Effect.fail(outage))
        deepStrictEqual(yield* Fiber.join(waiting), ["fresh"])
      }
    )

    test("starts no cooldown for later callers, and is logged with the state of the cached token", function*() {
      const lines: Array<string> = []
      const logger = Logger.make(({ logLevel, message }) => lines.push(`${logLevel.label} ${String(message)}`))
      yield* timeline(script, function*({ after, complete, provider, virtual }) {
        yield* provider.get
        yield* after("8500 millis", { gets: "one", calls: 2 })
        yield* virtual.advance("5 seconds")
        yield* complete(Effect.fail(outage))
        deepStrictEqual(lines, ["WARN Access token renewal failed, and the cached token is not valid any more"])
        yield* after(0, { gets: "fresh", calls: 3 })
      }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
    })

    test("callers get a token, even if the next acquisition returns the rejected one again", function*() {
      const one = yield* Effect.withClock(token("one"), VirtualClock.make().clock)
      yield* timeline(
        (n) => n === 2 ? undefined : Effect.succeed(one),
        function*({ after, callers, complete, provider }) {
          yield* provider.get
          yield* after(hour - 20_000, { state: "MustWait", gets: "waits" })
          yield* provider.invalidate(one)
          const waiting = yield* callers(2)
          yield* complete(Effect.fail(outage))
          deepStrictEqual(yield* Fiber.join(waiting), ["one", "one"])
        }
      )
    })
  })

  it.effect.each([-4, -3.5, -3, -2.5, -2])(
    "an endpoint that fails for 3 s, from %s s around the expiry: at most 8 requests, and a token 1.5 s after it is back",
    (from) =>
      Effect.gen(function*() {
        const [life, step] = [8000, 20]
        const virtual = VirtualClock.make()
        const [fails, works] = [life + from * 1000, life + from * 1000 + 3000]
        const isDown = () => virtual.monotonic() >= fails && virtual.monotonic() < works
        let [requests, lost, recovered] = [0, 0, Infinity]
        const client = HttpClient.make((request) =>
          Effect.gen(function*() {
            yield* Effect.sleep(step)
            if (!isDown()) {
              return HttpClientResponse.fromWeb(request, new Response(tokenBody({ expires_in: life / 1000 })))
            }
            requests++
            return HttpClientResponse.fromWeb(request, new Response("", { status: 503 }))
          })
        )
        const source = TokenEndpoint.layer({ authUrl, credentials: Effect.succeed(credentials) }).pipe(
          Layer.provide(Layer.succeed(HttpClient.HttpClient, client))
        )
        yield* Effect.gen(function*() {
          const provider = yield* AccessTokenProvider.AccessTokenProvider
          const caller = yield* Effect.fork(provider.get)
          yield* virtual.advance(step)
          const first = yield* Fiber.join(caller)
          const call = Effect.gen(function*() {
            const called = virtual.monotonic()
            const exit = yield* Effect.exit(provider.get)
            if (Exit.isFailure(exit) && called < life) lost++
            const isNew = Exit.isSuccess(exit) && exit.value !== first
            if (isNew) recovered = Math.min(recovered, virtual.monotonic() - works)
          })
          while (virtual.monotonic() < works + 3000) {
            yield* Effect.fork(call)
            yield* virtual.advance(step)
          }
        }).pipe(
          Effect.provide(Layer.provide(AccessTokenProvider.layer(), source)),
          Effect.provide(Logger.minimumLogLevel(LogLevel.None)),
          Effect.withClock(virtual.clock),
          Effect.withRandom(Random.make(from))
        )
        assert.isAbove(requests, 0, "control: it fails")
        assert.isAtMost(requests, 8)
        assert.isAtMost(recovered, 1500)
        assert.strictEqual(lost, 0, "a caller fails only after the token has expired")
      })
  )

  describe("a process that is stopped during a renewal", () => {
    type Outcome = "a response" | "no response" | "a broken connection"

    /** An endpoint that responds after 1 second. The second request has the given outcome. Counts the requests. */
    const endpoint = (outcome: Outcome) => {
      let requests = 0
      const client = HttpClient.make((request) =>
        Effect.gen(function*() {
          requests++
          const second = requests === 2
          const isLost = second && outcome === "no response"
          yield* isLost ? Effect.never : Effect.sleep(1000)
          return second && outcome === "a broken connection"
            ? yield* new HttpClientError.RequestError({ request, reason: "Transport" })
            : HttpClientResponse.fromWeb(
              request,
              new Response(tokenBody({ access_token: `t${requests}`, expires_in: 8 }))
            )
        })
      )
      const source = TokenEndpoint.layer({
        authUrl: "https://auth.shop.example",
        credentials: Effect.succeed(credentialsOf(clientId, clientSecret)),
        attemptTimeout: "2 seconds",
        deadline: "4 seconds"
      }).pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, client)))
      return { requests: () => requests, source }
    }

    const outcomes: ReadonlyArray<Outcome> = ["a response", "no response", "a broken connection"]
    const cases = [7000, 40_000].flatMap((stop) => outcomes.map((outcome) => [stop / 1000, outcome] as const))

    it.effect.each(cases)(
      "for %s s, and then %s: calls before and after its timers fire succeed",
      ([seconds, outcome]) =>
        Effect.gen(function*() {
          // Without the stop, a renewal that gets no response sends its request once more.
          const undisturbed = outcome === "a response" ? 2 : 3
          for (let moment = 0; moment <= 4000; moment += 100) {
            const { requests, source } = endpoint(outcome)
            const virtual = VirtualClock.make()
            yield* Effect.gen(function*() {
              const provider = yield* AccessTokenProvider.AccessTokenProvider
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
              assert.isAtMost(requests(), undisturbed + 1, `stopped after ${moment} ms`)
            }).pipe(
              Effect.provide(Layer.provide(AccessTokenProvider.layer(), source)),
              Effect.withClock(virtual.clock),
              Effect.withRandom(Random.fixed([0]))
            )
          }
        })
    )
  })
})
