import { HttpClient, HttpClientError, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider, TokenEndpoint, TokenSource } from "@store-api/core"
import { DateTime, Deferred, Effect, Exit, Fiber, FiberId, Layer, Logger, Option, Random, Scope } from "effect"
import { type Acquisition, down, hour, minute, run, valueOf } from "./support/pinnedProvider.js"
import { settle, token } from "./support/scriptedSource.js"
import * as VirtualClock from "./support/virtualClock.js"
import { clientId, clientSecret, credentialsOf, tokenBody } from "./support/wire.js"

/** Calls `get` every 250 ms. */
const tenMinutes = (provider: AccessTokenProvider.Service, virtual: VirtualClock.VirtualClock) =>
  Effect.forEach(
    Array.from({ length: 2400 }),
    () => Effect.zipRight(Effect.exit(provider.get), virtual.advance(250)),
    { discard: true }
  )

describe("AccessTokenProvider, in bounds", () => {
  describe("a source that never ends", () => {
    it.effect.each(
      [["can be interrupted", Effect.interruptible], ["cannot be interrupted", Effect.uninterruptible]] as const
    )("and %s: callers fail with Timeout after 2 minutes, and the provider works again", ([, region]) => {
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
          assert.strictEqual(valueOf(yield* provider.get), "fresh", "a late result does not replace it")
        }))
    })

    it.effect("while a token is valid: it is served, and the next renewal brings another", () =>
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

    it.effect("in a renewal: a caller who comes after the token has expired ends within 2 minutes and 30 seconds", () =>
      run(
        (n) => n === 1 ? token("one", "60 seconds") : Effect.never,
        ({ calls, provider, virtual }) =>
          Effect.gen(function*() {
            yield* provider.get
            yield* virtual.advance("56 seconds")
            yield* provider.get
            yield* virtual.advance("5 seconds")
            const caller = yield* Effect.fork(Effect.flip(provider.get))
            yield* virtual.advance("10 seconds")
            assert.strictEqual(yield* calls, 3, "the renewal was given up")
            yield* virtual.advance(2 * minute)
            const error = yield* Fiber.join(caller)
            assert.strictEqual("reason" in error && error.reason, "Timeout")
          })
      ))

    it.effect("in a renewal that refresh joins: refresh ends within 2 minutes and 30 seconds", () =>
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

    it.effect("in a renewal whose token is rejected: a caller that waits for it ends within 2 minutes and 30 seconds", () =>
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

    it.effect("is interrupted after 2 minutes, and nothing is left running", () =>
      Effect.gen(function*() {
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
      }))

    it.effect("and cannot be interrupted: the scope closes after 10 seconds", () =>
      Effect.gen(function*() {
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
          assert.strictEqual("reason" in error && error.reason, "Closed", "callers do not wait for it")
          assert.isTrue(Option.isNone(yield* Fiber.poll(closing)))
          yield* virtual.advance("10 seconds")
          yield* Fiber.join(closing)
        }).pipe(Effect.withClock(virtual.clock))
      }))
  })

  it.effect("a source that computes for long does not hold up a caller with a valid token", () =>
    Effect.gen(function*() {
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
    }))

  it.effect("an API in place of the endpoint, which answers 401: at most 30 requests in 10 minutes", () =>
    run(
      () => Effect.fail(new AccessTokenError.TokenRefusedError({ reason: "Other", status: 401 })),
      ({ calls, provider, virtual }) =>
        Effect.gen(function*() {
          yield* tenMinutes(provider, virtual)
          assert.isAtMost(yield* calls, 30)
          assert.isAtLeast(yield* calls, 10)
        })
    ))

  describe("429", () => {
    const limited = (retryAfter: Option.Option<number>) =>
      Effect.flatMap(DateTime.now, (now) =>
        new AccessTokenError.TokenRefusedError({
          reason: "RateLimited",
          status: 429,
          retryAt: Option.map(retryAfter, (millis) => DateTime.add(now, { millis }))
        }))

    it.effect("without Retry-After: at most 30 requests in 10 minutes from a caller every 250 ms", () =>
      run(() => limited(Option.none()), ({ calls, provider, virtual }) =>
        Effect.gen(function*() {
          yield* tenMinutes(provider, virtual)
          assert.isAtMost(yield* calls, 30)
          assert.isAtLeast(yield* calls, 10)
        })))

    it.effect("with Retry-After: no request before its moment", () =>
      Effect.gen(function*() {
        const times: Array<number> = []
        yield* run((_, virtual) => {
          times.push(virtual.monotonic())
          return limited(Option.some(90_000))
        }, ({ provider, virtual }) => tenMinutes(provider, virtual))
        assert.isAtLeast(times.length, 5)
        for (const [index, time] of times.slice(1).entries()) assert.isAtLeast(time - (times[index] ?? 0), 90_000)
      }))

    it.effect("to a renewal, with Retry-After: callers whose token expires wait for its moment too", () =>
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
    /** Renews a token of 10 s two seconds before its end, and fails it when the test says so. */
    const failing = <A, E>(
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

    it.effect.each([["a failure", Effect.fail(down)], ["a defect", Effect.die("an invented defect")]] as const)(
      "%s is not handed to callers who joined it: they share one acquisition of their own",
      ([, second]) =>
        failing(second, ({ calls, fail, provider, virtual }) =>
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

    it.effect("nor to callers whose token was rejected meanwhile", () =>
      failing(Effect.fail(down), ({ fail, provider }) =>
        Effect.gen(function*() {
          yield* provider.invalidate(yield* provider.get)
          const caller = yield* Effect.fork(provider.get)
          yield* settle
          yield* fail
          assert.strictEqual(valueOf(yield* Fiber.join(caller)), "fresh")
        })))

    it.effect("nor to a caller who waited for it, when another caller has a new token already", () =>
      failing(Effect.fail(down), ({ fail, provider, virtual }) =>
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

    it.effect("nor to callers when another acquisition brings the rejected token again", () =>
      Effect.gen(function*() {
        const failed = yield* Deferred.make<void>()
        const virtual = VirtualClock.make()
        const one = yield* Effect.withClock(token("one"), virtual.clock)
        yield* run(
          (n) => n === 2 ? Effect.zipRight(Deferred.await(failed), Effect.fail(down)) : Effect.succeed(one),
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
      }))

    it.effect("puts no pause before later callers", () =>
      failing(Effect.fail(down), ({ calls, fail, provider, virtual }) =>
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
      return failing(Effect.fail(down), ({ fail, virtual }) =>
        Effect.gen(function*() {
          yield* virtual.advance("5 seconds")
          yield* fail
          yield* settle
          deepStrictEqual(lines, ["Access token renewal failed, and the cached token is not valid any more"])
        })).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
    })

    it.effect("a caller who waited for it while the token was valid gets a token too", () =>
      failing(Effect.fail(down), ({ fail, provider, virtual }) =>
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

  describe("a process that is stopped in the middle of a renewal", () => {
    type Answer = "an answer" | "no answer" | "a broken connection"

    /** An endpoint that takes a second; the second answer is as given. Counts the requests. */
    const endpoint = (answer: Answer) => {
      let requests = 0
      const client = HttpClient.make((request) =>
        Effect.gen(function*() {
          requests++
          const second = requests === 2
          const isLost = second && answer === "no answer"
          yield* isLost ? Effect.never : Effect.sleep(1000)
          return second && answer === "a broken connection"
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

    const answers: ReadonlyArray<Answer> = ["an answer", "no answer", "a broken connection"]
    const cases = [7000, 40_000].flatMap((stop) => answers.map((answer) => [stop / 1000, answer] as const))

    it.effect.each(cases)(
      "for %s s, and then %s: calls before and after its timers fire succeed",
      ([seconds, answer]) =>
        Effect.gen(function*() {
          for (let moment = 0; moment <= 4000; moment += 100) {
            const { requests, source } = endpoint(answer)
            const virtual = VirtualClock.make()
            yield* Effect.gen(function*() {
              const provider = yield* AccessTokenProvider.AccessTokenProvider
              const first = yield* Effect.fork(provider.get)
              yield* virtual.advance(1000)
              yield* Fiber.join(first)
              yield* virtual.advance(5500)
              yield* provider.get
              yield* virtual.advance(moment)
              const before = requests()
              virtual.freeze(seconds * 1000)
              // These find the renewal in flight; the others come when its timers have fired.
              const joining = yield* Effect.forkAll([provider.get, provider.get])
              yield* virtual.advance(0)
              const later = yield* Effect.forkAll([provider.get, provider.get, provider.get])
              yield* virtual.advance(5000)
              yield* Fiber.join(joining)
              yield* Fiber.join(later)
              assert.isAtMost(requests(), before + 2, `stopped after ${moment} ms`)
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
