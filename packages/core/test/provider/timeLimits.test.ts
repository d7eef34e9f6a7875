import { HttpClient, HttpClientError, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessTokenError,
  AccessTokenProvider,
  SharedTokenSource,
  TokenEndpoint,
  TokenSource,
  TokenStore
} from "@store-api/core"
import {
  DateTime,
  Deferred,
  Effect,
  Exit,
  Fiber,
  FiberId,
  Layer,
  Logger,
  LogLevel,
  Option,
  Random,
  Scope
} from "effect"
import { authUrl, credentials, settled } from "../support/fleet.js"
import { type Acquisition, hour, minute, outage, run, settle, token, valueOf } from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"
import { clientId, clientSecret, credentialsOf, tokenBody } from "../support/wire.js"

/** Calls `get` every 250 ms for 10 minutes. */
const callForTenMinutes = (provider: AccessTokenProvider.Service, virtual: VirtualClock.VirtualClock) =>
  Effect.forEach(
    Array.from({ length: 2400 }),
    () => Effect.zipRight(Effect.exit(provider.get), virtual.advance(250)),
    { discard: true }
  )

describe("AccessTokenProvider, limits", () => {
  describe("a source that hangs", () => {
    it.effect.each(
      [["interruptible", Effect.interruptible], ["uninterruptible", Effect.uninterruptible]] as const
    )("%s: callers fail with Timeout after 2 minutes, and the next call succeeds", ([, region]) => {
      const released = Deferred.unsafeMake<void>(FiberId.none)
      const never = Effect.zipRight(region(Deferred.await(released)), token("late"))
      return run((n) => n === 1 ? never : token("fresh"), ({ calls, provider, virtual }) =>
        Effect.gen(function*() {
          const callers = yield* Effect.forkAll([Effect.flip(provider.get), Effect.flip(provider.refresh)])
          yield* virtual.advance(2 * minute - 1)
          assert.isTrue(Option.isNone(yield* Fiber.poll(callers)))
          yield* virtual.advance(1)
          for (const error of yield* Fiber.join(callers)) {
            deepStrictEqual([error._tag, "reason" in error && error.reason], ["TokenRequestError", "Timeout"])
          }
          yield* virtual.advance("1 seconds")
          assert.strictEqual(valueOf(yield* provider.get), "fresh")
          assert.strictEqual(yield* calls, 2)
          yield* Deferred.succeed(released, undefined)
          yield* settle
          assert.strictEqual(valueOf(yield* provider.get), "fresh", "a late result does not replace the cached token")
        }))
    })

    it.effect("in a renewal: callers get the cached token, and the next renewal replaces it", () =>
      run((n) => n === 2 ? Effect.never : token(`token-${n}`), ({ provider, virtual }) =>
        Effect.gen(function*() {
          yield* provider.get
          yield* virtual.advance(hour - 3 * minute)
          assert.strictEqual(valueOf(yield* provider.get), "token-1")
          yield* virtual.advance(2 * minute)
          assert.strictEqual(valueOf(yield* provider.get), "token-1")
          yield* virtual.advance("1 seconds")
          assert.strictEqual(valueOf(yield* provider.get), "token-1")
          yield* settle
          assert.strictEqual(valueOf(yield* provider.get), "token-3")
        })))

    it.effect("in a renewal: a caller that arrives after the token expired waits at most 2 minutes and 30 seconds", () =>
      run(
        (n) => n === 1 ? token("one", "60 seconds") : Effect.never,
        ({ calls, provider, virtual }) =>
          Effect.gen(function*() {
            yield* provider.get
            yield* virtual.advance("56 seconds")
            yield* provider.get
            yield* virtual.advance("5 seconds")
            const caller = yield* Effect.fork(Effect.flip(provider.get))
            yield* virtual.advance("24 seconds")
            assert.strictEqual(yield* calls, 2, "the caller waits until the renewal is 30 seconds old")
            yield* virtual.advance("1 seconds")
            assert.strictEqual(yield* calls, 3, "the renewal was abandoned, and a new acquisition started")
            yield* virtual.advance(2 * minute)
            const error = yield* Fiber.join(caller)
            assert.strictEqual("reason" in error && error.reason, "Timeout")
          })
      ))

    it.effect("in a renewal: a caller of refresh waits at most 2 minutes and 30 seconds", () =>
      run(
        (n) => n === 1 ? token("one", "60 seconds") : Effect.never,
        ({ provider, virtual }) =>
          Effect.gen(function*() {
            yield* provider.get
            yield* virtual.advance("50 seconds")
            yield* provider.get
            const caller = yield* Effect.fork(Effect.flip(provider.refresh))
            yield* virtual.advance(2.5 * minute)
            assert.isTrue(Option.isSome(yield* Fiber.poll(caller)))
          })
      ))

    it.effect("in a renewal that is 30 seconds old: a caller of refresh gets another token", () =>
      run(
        (n) => n === 2 ? Effect.never : token(`token-${n}`),
        ({ calls, provider, virtual }) =>
          Effect.gen(function*() {
            yield* provider.get
            yield* virtual.advance(hour - 3 * minute)
            yield* provider.get
            yield* virtual.advance("40 seconds")
            assert.strictEqual(valueOf(yield* provider.refresh), "token-3")
            assert.strictEqual(yield* calls, 3)
          })
      ))

    it.effect("in a renewal: a caller whose token is rejected waits at most 2 minutes and 30 seconds", () =>
      run(
        (n) => n === 1 ? token("one") : Effect.never,
        ({ provider, virtual }) =>
          Effect.gen(function*() {
            const first = yield* provider.get
            yield* virtual.advance(hour - 2.9 * minute)
            const caller = yield* Effect.fork(Effect.flip(provider.get))
            yield* settle
            yield* provider.invalidate(first)
            yield* virtual.advance(2.5 * minute)
            assert.isTrue(Option.isSome(yield* Fiber.poll(caller)))
          }),
        { leeway: "3 minutes" }
      ))

    test("is interrupted after 2 minutes, and no fiber is left sleeping", function*() {
      const ended = yield* Deferred.make<void>()
      yield* run(
        () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(ended, undefined)),
        ({ provider, virtual }) =>
          Effect.gen(function*() {
            const caller = yield* Effect.fork(Effect.exit(provider.get))
            yield* virtual.advance(2 * minute - 1)
            assert.isFalse(yield* Deferred.isDone(ended))
            yield* virtual.advance(1)
            assert.isTrue(yield* Deferred.isDone(ended))
            yield* Fiber.join(caller)
            assert.strictEqual(virtual.sleepers(), 0)
          })
      )
    })

    test("uninterruptible: the scope closes after 10 seconds", function*() {
      const virtual = VirtualClock.make()
      yield* Effect.gen(function*() {
        const scope = yield* Scope.make()
        const source = TokenSource.layer(() => Effect.uninterruptible(Effect.never))
        const context = yield* Layer.buildWithScope(Layer.provide(AccessTokenProvider.layer(), source), scope)
        const provider = yield* Effect.provide(AccessTokenProvider.AccessTokenProvider, context)
        const caller = yield* Effect.fork(Effect.flip(provider.get))
        yield* settle
        const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
        yield* settle
        const error = yield* Fiber.join(caller)
        assert.strictEqual("reason" in error && error.reason, "Closed", "callers fail before the scope is closed")
        assert.isTrue(Option.isNone(yield* Fiber.poll(closing)))
        yield* virtual.advance("10 seconds")
        yield* Fiber.join(closing)
        assert.strictEqual(virtual.sleepers(), 0, "no time limit goes on")
      }).pipe(Effect.withClock(virtual.clock))
    })
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
    yield* run((n) =>
      Effect.suspend(() => {
        computed = n > 1
        return token(`token-${n}`)
      }), ({ provider, virtual }) =>
      Effect.gen(function*() {
        yield* provider.get
        yield* virtual.advance(57 * minute)
        const computedBefore = yield* Effect.map(provider.get, () => computed)
        assert.isFalse(computedBefore)
        yield* settle
        assert.isTrue(computed)
      }))
  })

  it.effect("when an API in place of the endpoint responds with 401, at most 30 requests are sent in 10 minutes", () =>
    run(
      () => Effect.fail(new AccessTokenError.TokenRefusedError({ reason: "Other", status: 401 })),
      ({ calls, provider, virtual }) =>
        Effect.gen(function*() {
          yield* callForTenMinutes(provider, virtual)
          assert.isAtMost(yield* calls, 30)
          assert.isAtLeast(yield* calls, 10)
        })
    ))

  describe("429 responses", () => {
    const limited = (retryAfter: Option.Option<number>) =>
      Effect.flatMap(DateTime.now, (now) =>
        new AccessTokenError.TokenRefusedError({
          reason: "RateLimited",
          status: 429,
          retryAt: Option.map(retryAfter, (millis) => DateTime.add(now, { millis }))
        }))

    it.effect("without Retry-After: calls every 250 ms send at most 30 requests in 10 minutes", () =>
      run(() => limited(Option.none()), ({ calls, provider, virtual }) =>
        Effect.gen(function*() {
          yield* callForTenMinutes(provider, virtual)
          assert.isAtMost(yield* calls, 30)
          assert.isAtLeast(yield* calls, 10)
        })))

    test("with Retry-After: no request is sent before that time", function*() {
      const times: Array<number> = []
      yield* run((_, virtual) => {
        times.push(virtual.monotonic())
        return limited(Option.some(90_000))
      }, ({ provider, virtual }) => callForTenMinutes(provider, virtual))
      assert.isAtLeast(times.length, 5)
      for (const [index, time] of times.slice(1).entries()) assert.isAtLeast(time - (times[index] ?? 0), 90_000)
    })

    it.effect("with Retry-After, to a renewal: no request is sent before that time, even after the token expired", () =>
      run(
        (n) => n === 1 ? token("one", "60 seconds") : limited(Option.some(60_000)),
        ({ calls, provider, virtual }) =>
          Effect.gen(function*() {
            yield* provider.get
            yield* virtual.advance(50_000)
            yield* provider.get
            yield* virtual.advance(20_000)
            const error = yield* Effect.flip(provider.get)
            assert.strictEqual(Option.getOrThrow(error.retryAt).epochMillis, virtual.wall() + 40_000)
            assert.strictEqual(yield* calls, 2)
          })
      ))
  })

  describe("a renewal that fails after the token has expired", () => {
    /** Starts to renew a token of 10 s when 1.5 s are left. The renewal fails when the test runs `fail`. */
    const withFailingRenewal = <A, E>(
      second: Acquisition,
      test: (tools: {
        readonly virtual: VirtualClock.VirtualClock
        readonly provider: AccessTokenProvider.Service
        readonly calls: Effect.Effect<number>
        readonly fail: Effect.Effect<void>
      }) => Effect.Effect<A, E>
    ) =>
      Effect.gen(function*() {
        const failed = yield* Deferred.make<void>()
        yield* run(
          (n) =>
            n === 1
              ? token("one", "10 seconds")
              : n === 2
              ? Effect.zipRight(Deferred.await(failed), second)
              : token("fresh"),
          (tools) =>
            Effect.gen(function*() {
              yield* tools.provider.get
              yield* tools.virtual.advance("8500 millis")
              yield* tools.provider.get
              yield* settle
              yield* test({ ...tools, fail: Deferred.succeed(failed, undefined) })
            })
        )
      })

    it.effect.each([["a failure", Effect.fail(outage)], ["a defect", Effect.die("an invented defect")]] as const)(
      "with %s: callers that joined it share a new acquisition",
      ([, second]) =>
        withFailingRenewal(second, ({ calls, fail, provider, virtual }) =>
          Effect.gen(function*() {
            yield* virtual.advance("5 seconds")
            const callers = yield* Effect.forkAll([provider.get, provider.get, provider.refresh])
            yield* settle
            assert.strictEqual(yield* calls, 2)
            yield* fail
            deepStrictEqual((yield* Fiber.join(callers)).map(valueOf), ["fresh", "fresh", "fresh"])
            assert.strictEqual(yield* calls, 3)
          }))
    )

    it.effect("a caller whose token was rejected during it gets a new token", () =>
      withFailingRenewal(Effect.fail(outage), ({ fail, provider }) =>
        Effect.gen(function*() {
          yield* provider.invalidate(yield* provider.get)
          const caller = yield* Effect.fork(provider.get)
          yield* settle
          yield* fail
          assert.strictEqual(valueOf(yield* Fiber.join(caller)), "fresh")
        })))

    it.effect("a caller that waited for it gets the token that another caller has acquired", () =>
      withFailingRenewal(Effect.fail(outage), ({ fail, provider, virtual }) =>
        Effect.gen(function*() {
          yield* virtual.advance("1200 millis")
          const waiting = yield* Effect.fork(provider.get)
          yield* settle
          virtual.jump(hour)
          const others = yield* Effect.forkAll([provider.get, provider.get])
          yield* settle
          yield* fail
          yield* settle
          assert.strictEqual(valueOf(yield* Fiber.join(waiting)), "fresh")
          deepStrictEqual((yield* Fiber.join(others)).map(valueOf), ["fresh", "fresh"])
        })))

    test("callers get a token, even if the next acquisition returns the rejected one again", function*() {
      const failed = yield* Deferred.make<void>()
      const virtual = VirtualClock.make()
      const one = yield* Effect.withClock(token("one"), virtual.clock)
      yield* run(
        (n) => n === 2 ? Effect.zipRight(Deferred.await(failed), Effect.fail(outage)) : Effect.succeed(one),
        ({ provider, virtual }) =>
          Effect.gen(function*() {
            yield* provider.get
            yield* virtual.advance(hour - 20_000)
            yield* Effect.fork(provider.get)
            yield* settle
            yield* provider.invalidate(one)
            const callers = yield* Effect.forkAll([provider.get, provider.get])
            yield* settle
            yield* Deferred.succeed(failed, undefined)
            deepStrictEqual((yield* Fiber.join(callers)).map(valueOf), ["one", "one"])
          })
      )
    })

    it.effect("starts no cooldown for later callers", () =>
      withFailingRenewal(Effect.fail(outage), ({ calls, fail, provider, virtual }) =>
        Effect.gen(function*() {
          yield* virtual.advance("5 seconds")
          yield* fail
          yield* settle
          assert.strictEqual(valueOf(yield* provider.get), "fresh")
          assert.strictEqual(yield* calls, 3)
        })))

    it.effect("is logged with the state of the cached token", () => {
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => lines.push(String(message)))
      return withFailingRenewal(Effect.fail(outage), ({ fail, virtual }) =>
        Effect.gen(function*() {
          yield* virtual.advance("5 seconds")
          yield* fail
          yield* settle
          deepStrictEqual(lines, ["Access token renewal failed, and the cached token is not valid any more"])
        })).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
    })

    it.effect("a caller that started to wait while the token was valid gets a new token", () =>
      withFailingRenewal(Effect.fail(outage), ({ fail, provider, virtual }) =>
        Effect.gen(function*() {
          yield* virtual.advance("1200 millis")
          const caller = yield* Effect.fork(provider.get)
          yield* settle
          virtual.freeze(5000)
          yield* fail
          yield* settle
          assert.strictEqual(valueOf(yield* Fiber.join(caller)), "fresh")
        })))
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
