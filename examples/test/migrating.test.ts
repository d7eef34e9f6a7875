/** The bugs of the caches in handRolled.ts, which docs/guides/migrating.md lists and the provider does not have. */
import { HttpClient, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessToken,
  AccessTokenError,
  AccessTokenProvider,
  AuthorizedHttpClient,
  TokenSource
} from "@store-api/core"
import {
  Clock,
  Context,
  DateTime,
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Option,
  Redacted,
  Ref,
  type Scope,
  TestClock
} from "effect"
import { inCache, inRef, type Token, withTtl } from "./handRolled.js"

interface Endpoint {
  readonly takes?: Duration.DurationInput
  /** The lifetime of the n-th token. */
  readonly life?: (n: number) => Duration.DurationInput
  readonly fails?: (n: number) => boolean
}

const down = new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 })

/** An endpoint that responds with token n to the n-th request, and counts the requests. */
const endpoint = ({ fails = () => false, life = () => "60 minutes", takes = 0 }: Endpoint) =>
  Effect.map(Ref.make(0), (count) => ({
    requests: Ref.get(count),
    request: Effect.gen(function*() {
      const n = yield* Ref.updateAndGet(count, (n) => n + 1)
      const asked = yield* Clock.currentTimeMillis
      yield* Effect.sleep(takes)
      if (fails(n)) return yield* down
      return { value: `token-${n}`, expiresAt: asked + Duration.toMillis(life(n)) }
    })
  }))

type Request = Effect.Effect<Token, AccessTokenError.AccessTokenError>
type Get = Effect.Effect<string, AccessTokenError.AccessTokenError>

const sourceOf = (request: Request) =>
  TokenSource.layer(() =>
    Effect.zipWith(
      DateTime.now,
      request,
      (acquiredAt, { expiresAt, value }) =>
        new AccessToken.AccessToken({
          value: Redacted.make(value),
          acquiredAt,
          expiresAt: DateTime.unsafeMake(expiresAt)
        })
    )
  )

const provided = (request: Request) =>
  Effect.map(
    Layer.build(Layer.orDie(Layer.provide(AccessTokenProvider.layer(), sourceOf(request)))),
    (context) => Context.get(context, AccessTokenProvider.AccessTokenProvider)
  )

const provider = (request: Request): Effect.Effect<Get, never, Scope.Scope> =>
  Effect.map(
    provided(request),
    ({ get }) => Effect.map(get, ({ value }) => Redacted.value(value))
  )

type Use<A> = (
  get: Get,
  requests: Effect.Effect<number>,
  setBack: (by: Duration.DurationInput) => Effect.Effect<void>
) => Effect.Effect<A, AccessTokenError.AccessTokenError>

/** The test clock, with a wall clock that can be set back; the monotonic clock continues. */
const adjustable = Effect.map(Effect.clock, (clock) => {
  let back = 0
  const wall = () => clock.unsafeCurrentTimeMillis() - back
  return {
    setBack: (by: Duration.DurationInput) =>
      Effect.sync(() => void (back += Duration.toMillis(by))),
    clock: {
      [Clock.ClockTypeId]: Clock.ClockTypeId,
      unsafeCurrentTimeMillis: wall,
      unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
      currentTimeMillis: Effect.sync(wall),
      currentTimeNanos: clock.currentTimeNanos,
      sleep: (duration) => clock.sleep(duration)
    } satisfies Clock.Clock
  }
})

/** Runs the same test with each cache, one after the other. Returns the results by name. */
const each = <A>(settings: Endpoint, use: Use<A>) => {
  const one = (make: (request: Request) => Effect.Effect<Get, never, Scope.Scope>) =>
    Effect.scoped(Effect.gen(function*() {
      const { request, requests } = yield* endpoint(settings)
      const { clock, setBack } = yield* adjustable
      const get = yield* Effect.withClock(make(request), clock)
      return yield* use(Effect.withClock(get, clock), requests, setBack)
    }))
  return Effect.all({
    inRef: one(inRef),
    withTtl: one(withTtl),
    inCache: one(inCache),
    provider: one(provider)
  })
}

/** Runs an effect to its end, and advances the clock in steps for as long as it needs. */
const settled = <A, E>(
  fiber: Fiber.Fiber<A, E>,
  step: Duration.DurationInput = "100 millis"
) =>
  Effect.gen(function*() {
    while (Option.isNone(yield* Fiber.poll(fiber))) yield* TestClock.adjust(step)
    return yield* Fiber.await(fiber)
  })

const at = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.flatMap(Effect.fork(effect), (fiber) => settled(fiber))

const tag = <A>(exit: Exit.Exit<A, unknown>) =>
  Exit.match(exit, {
    onSuccess: () => "a token",
    onFailure: (cause) => cause._tag === "Interrupt" ? "interrupted" : "an error"
  })

describe("the bugs of hand-written caches, which the provider does not have", () => {
  it.effect("each of a hundred concurrent callers sends a token request", () =>
    Effect.gen(function*() {
      const found = yield* each({ takes: "200 millis" }, (get, requests) =>
        Effect.zipRight(
          at(Effect.all(Array.from({ length: 100 }, () => get), { concurrency: "unbounded" })),
          requests
        ))
      deepStrictEqual(found, { inRef: 100, withTtl: 1, inCache: 1, provider: 1 })
    }))

  it.effect("interrupting the first caller interrupts the others, or sends a second request", () =>
    Effect.gen(function*() {
      const found = yield* each(
        { takes: "1 second" },
        (get, requests) =>
          Effect.gen(function*() {
            const first = yield* Effect.fork(get)
            yield* TestClock.adjust("100 millis")
            const second = yield* Effect.fork(get)
            yield* TestClock.adjust("100 millis")
            yield* Fiber.interrupt(first)
            const exit = yield* settled(second)
            return [tag(exit), yield* requests] as const
          })
      )
      deepStrictEqual(found, {
        inRef: ["a token", 2],
        withTtl: ["a token", 2],
        inCache: ["interrupted", 1],
        provider: ["a token", 1]
      })
    }))

  it.effect("a failure is cached like a token", () =>
    Effect.gen(function*() {
      const found = yield* each({ fails: (n) => n === 1 }, (get) =>
        Effect.gen(function*() {
          yield* Effect.exit(get)
          yield* TestClock.adjust("30 minutes")
          return tag(yield* Effect.exit(get))
        }))
      deepStrictEqual(found, {
        inRef: "a token",
        withTtl: "an error",
        inCache: "an error",
        provider: "a token"
      })
    }))

  it.effect("during an outage each call sends a request", () =>
    Effect.gen(function*() {
      const found = yield* each({ fails: () => true }, (get, requests) =>
        Effect.gen(function*() {
          for (let call = 0; call < 1000; call++) {
            yield* Effect.exit(get)
          }
          return yield* requests
        }))
      // The other two cache the failure.
      deepStrictEqual(found, { inRef: 1000, withTtl: 1, inCache: 1, provider: 1 })
    }))

  it.effect("a failed renewal discards a valid token", () =>
    Effect.gen(function*() {
      const found = yield* each({ fails: (n) => n > 1 }, (get) =>
        Effect.gen(function*() {
          yield* get
          yield* TestClock.adjust("57 minutes")
          yield* Effect.exit(get)
          yield* TestClock.adjust("1 second")
          return tag(yield* Effect.exit(get))
        }))
      // The Ref does not renew before expiry.
      deepStrictEqual(found, {
        inRef: "a token",
        withTtl: "an error",
        inCache: "an error",
        provider: "a token"
      })
    }))

  it.effect("callers wait for each renewal", () =>
    Effect.gen(function*() {
      const found = yield* each({ takes: "200 millis" }, (get) =>
        Effect.gen(function*() {
          yield* at(get)
          yield* TestClock.adjust("50 minutes")
          let waited = 0
          for (let minute = 50; minute < 62; minute++) {
            yield* TestClock.adjust("1 minute")
            const call = yield* Effect.fork(get)
            yield* TestClock.adjust(0)
            if (Option.isNone(yield* Fiber.poll(call))) waited++
            yield* settled(call)
          }
          return waited > 0
        }))
      deepStrictEqual(found, { inRef: true, withTtl: true, inCache: true, provider: false })
    }))

  it.effect("returns a token that expires on its way to the API", () =>
    Effect.gen(function*() {
      const found = yield* each({}, (get) =>
        Effect.gen(function*() {
          yield* get
          yield* TestClock.adjust(Duration.minutes(60).pipe(Duration.subtract("1 millis")))
          return yield* get
        }))
      // The other two renew after 55 minutes.
      deepStrictEqual(found, {
        inRef: "token-1",
        withTtl: "token-2",
        inCache: "token-2",
        provider: "token-2"
      })
    }))

  it.effect("returns an expired token when its lifetime is shorter than expected", () =>
    Effect.gen(function*() {
      const found = yield* each(
        { life: (n) => n === 1 ? "10 minutes" : "60 minutes" },
        (get) =>
          Effect.gen(function*() {
            yield* get
            yield* TestClock.adjust("20 minutes")
            return yield* get
          })
      )
      deepStrictEqual(found, {
        inRef: "token-2",
        withTtl: "token-1",
        inCache: "token-1",
        provider: "token-2"
      })
    }))

  it.effect("a wall clock that is set back extends the lifetime of a token", () =>
    Effect.gen(function*() {
      const found = yield* each({}, (get, _, setBack) =>
        Effect.gen(function*() {
          yield* get
          yield* TestClock.adjust("30 minutes")
          yield* setBack("1 hour")
          yield* TestClock.adjust("45 minutes")
          return yield* get
        }))
      deepStrictEqual(found, {
        inRef: "token-1",
        withTtl: "token-1",
        inCache: "token-1",
        provider: "token-2"
      })
    }))

  it.effect("a revoked token is sent until it expires", () =>
    Effect.gen(function*() {
      /** An API that accepts only the second token. */
      const api = HttpClient.make((request) =>
        Effect.succeed(HttpClientResponse.fromWeb(
          request,
          new Response(null, {
            status: request.headers["authorization"] === "Bearer token-2" ? 200 : 401
          })
        ))
      )
      const byHand = yield* each({}, (get) =>
        Effect.gen(function*() {
          const client = HttpClient.mapRequestEffect(
            api,
            (request) =>
              Effect.map(get, (token) => HttpClientRequest.bearerToken(request, token))
          )
          const call = Effect.orDie(client.get("https://api.store.example/orders"))
          yield* call
          yield* TestClock.adjust("10 minutes")
          return (yield* call).status
        }))
      deepStrictEqual(byHand, { inRef: 401, withTtl: 401, inCache: 401, provider: 401 })

      const { request, requests } = yield* endpoint({})
      const authorized = yield* AuthorizedHttpClient.withAccessToken(api, {
        apiUrl: "https://api.store.example"
      }).pipe(
        Effect.provideServiceEffect(AccessTokenProvider.AccessTokenProvider, provided(request))
      )
      assert.strictEqual((yield* authorized.get("/orders")).status, 200)
      assert.strictEqual(yield* requests, 2)
    }).pipe(Effect.scoped))

  it.effect("a layer that is built at each use creates a cache each time: bind it to a constant", () =>
    Effect.gen(function*() {
      const { request, requests } = yield* endpoint({})
      const make = () => Layer.provide(AccessTokenProvider.layer(), sourceOf(request))
      const get = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, ({ get }) => get)
      yield* Effect.all([Effect.provide(get, make()), Effect.provide(get, make())])
      assert.strictEqual(yield* requests, 2)
      const StoreAuthLive = make()
      const twice = Layer.mergeAll(
        Layer.effectDiscard(get).pipe(Layer.provide(StoreAuthLive)),
        Layer.effectDiscard(get).pipe(Layer.provide(StoreAuthLive))
      )
      yield* Effect.scoped(Layer.build(twice))
      assert.strictEqual(yield* requests, 3)
    }))
})
