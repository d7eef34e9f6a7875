import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, AccessTokenProvider, SharedTokenSource, TokenSource, TokenStore } from "@store-api/core"
import {
  Context,
  DateTime,
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  LogLevel,
  Metric,
  Option,
  Redacted,
  Ref,
  TestClock
} from "effect"
import { Renewal } from "../../src/internal/renewal.js"
import { allSeries } from "../support/effectLine.js"
import {
  authUrl,
  credentials,
  credentialsOf,
  drive,
  endpoint,
  fullToken,
  member,
  settled,
  valuesOf,
  watched
} from "../support/fleet.js"
import { type Acquisition, outage, valueOf } from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

const minute = 60_000

const hits = Effect.map(Metric.value(SharedTokenSource.storeHits), ({ count }) => count)

/** The token provider of one process, over its shared source. */
const providerOf = (shared: TokenSource.Service) =>
  Effect.map(
    Layer.build(AccessTokenProvider.layer().pipe(Layer.provide(Layer.succeed(TokenSource.TokenSource, shared)))),
    (context) => Context.get(context, AccessTokenProvider.AccessTokenProvider)
  )

describe("SharedTokenSource", () => {
  test("sends one token request for fifty members that acquire at once", function*() {
    const { requests, source } = yield* endpoint({ takes: 200 })
    const store = yield* TokenStore.makeMemory
    const members = yield* Effect.all(Effect.replicate(member(source, store), 50))
    const before = yield* hits
    const all = Effect.forEach(members, ({ acquire }) => acquire(Option.none()), { concurrency: "unbounded" })
    const { exit } = yield* drive(yield* Effect.fork(all))
    deepStrictEqual(valuesOf(exit), ["token-1"])
    assert.strictEqual(yield* requests, 1)
    assert.strictEqual((yield* hits) - before, 49)
  })

  test("defines its metrics as incremental counters with a name and a description", function*() {
    yield* Metric.increment(SharedTokenSource.storeFailures)
    yield* Metric.increment(SharedTokenSource.storeHits)
    const described = (yield* allSeries)
      .filter(({ labels, name }) => name.startsWith("store_api_token_store_") && Object.keys(labels).length === 0)
      .map(({ description, kind, name }) => [name, [kind === "counts up", description]])
    deepStrictEqual(Object.fromEntries(described), {
      store_api_token_store_failures: [true, "Failed operations of the shared token store"],
      store_api_token_store_hits: [true, "Tokens that were found in the shared token store"]
    })
  })

  test("returns a stored token with all its fields, including its original acquiredAt", function*() {
    const { requests, source } = yield* endpoint()
    const store = yield* TokenStore.makeMemory
    const before = yield* hits
    const acquired = yield* (yield* member(source, store)).acquire(Option.none())
    assert.strictEqual(yield* hits, before)
    yield* TestClock.adjust("20 minutes")
    const shared = yield* (yield* member(source, store)).acquire(Option.none())
    assert.strictEqual(yield* requests, 1)
    assert.strictEqual(yield* hits, before + 1)
    deepStrictEqual({ ...shared }, { ...acquired })
  })

  test("releases the lease and returns the token that another member stored before the lease was granted", function*() {
    const { requests, source } = yield* endpoint()
    const { puts, store } = yield* watched
    const other = yield* member(source, store)
    const late = TokenStore.TokenStore.of({
      ...store,
      lease: (key, duration) => Effect.zipRight(Effect.orDie(other.acquire(Option.none())), store.lease(key, duration))
    })
    const token = yield* (yield* member(source, late)).acquire(Option.none())
    assert.strictEqual(valueOf(token), "token-1")
    assert.strictEqual(yield* requests, 1)
    const [[key] = [""]] = yield* puts
    assert.isTrue(Option.isSome(yield* store.lease(key, "1 second")))
  })

  test("stores a token for its remaining lifetime", function*() {
    const { puts, store } = yield* watched
    yield* TestClock.adjust("1 hour")
    const { source } = yield* endpoint({
      answer: () =>
        Effect.map(fullToken("a token", 60), (token) =>
          new AccessToken.AccessToken({
            ...token,
            acquiredAt: DateTime.subtract(token.acquiredAt, { minutes: 20 }),
            expiresAt: DateTime.subtract(token.expiresAt, { minutes: 20 })
          }))
    })
    yield* (yield* member(source, store)).acquire(Option.none())
    deepStrictEqual((yield* puts).map(([, , life]) => Duration.toMillis(life)), [40 * minute])
  })

  test("ignores an expired token in a store that never removes entries", function*() {
    const { requests, source } = yield* endpoint()
    const memory = yield* TokenStore.makeMemory
    const store = TokenStore.TokenStore.of({ ...memory, put: (key, entry) => memory.put(key, entry, "1 day") })
    const { acquire } = yield* member(source, store, { leeway: 0 })
    yield* acquire(Option.none())
    yield* TestClock.adjust("59 minutes")
    assert.strictEqual(valueOf(yield* acquire(Option.none())), "token-1")
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(valueOf(yield* acquire(Option.none())), "token-2")
    assert.strictEqual(yield* requests, 2)
  })

  test("returns a stored token that has no optional fields", function*() {
    const acquiredAt = yield* DateTime.now
    const plain = new AccessToken.AccessToken({
      value: Redacted.make("plain"),
      acquiredAt,
      expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
    })
    const { source } = yield* endpoint({ answer: () => Effect.succeed(plain) })
    const store = yield* TokenStore.makeMemory
    yield* (yield* member(source, store)).acquire(Option.none())
    deepStrictEqual({ ...(yield* (yield* member(source, store)).acquire(Option.none())) }, { ...plain })
  })

  test("treats an authUrl with and without a trailing slash as the same", function*() {
    const { requests, source } = yield* endpoint()
    const store = yield* TokenStore.makeMemory
    for (const authUrl of ["https://auth.shop.example/base", new URL("https://AUTH.shop.example/base/")]) {
      yield* (yield* member(source, store, { authUrl })).acquire(Option.none())
    }
    assert.strictEqual(yield* requests, 1)
  })

  test("accepts an http authUrl, because the token endpoint checks the scheme", function*() {
    const { requests, source } = yield* endpoint()
    const { acquire } = yield* member(source, yield* TokenStore.makeMemory, { authUrl: "http://auth.shop.example" })
    yield* acquire(Option.none())
    yield* acquire(Option.none())
    assert.strictEqual(yield* requests, 1)
  })

  test("layer shares tokens through the store in its context", function*() {
    const { requests, source } = yield* endpoint()
    const layer = SharedTokenSource.layer({ authUrl, credentials: Effect.succeed(credentials) }).pipe(
      Layer.provide(Layer.merge(Layer.succeed(TokenSource.TokenSource, source), TokenStore.layerMemory))
    )
    const acquire = Effect.flatMap(TokenSource.TokenSource, ({ acquire }) => acquire(Option.none()))
    yield* Effect.provide(Effect.zipRight(acquire, acquire), layer)
    assert.strictEqual(yield* requests, 1)
  })

  test("fails with ConfigurationError when authUrl is not a URL", function*() {
    const error = yield* Effect.flip(
      member((yield* endpoint()).source, yield* TokenStore.makeMemory, { authUrl: "auth.shop.example" })
    )
    assert.strictEqual(error.option, "authUrl")
  })

  describe("the token to replace", () => {
    const setUp = (answer?: Parameters<typeof endpoint>[0]) =>
      Effect.gen(function*() {
        const { requests, source } = yield* endpoint(answer)
        const store = yield* TokenStore.makeMemory
        const first = yield* member(source, store)
        const second = yield* member(source, store)
        return { first, requests, second, store, cached: yield* first.acquire(Option.none()) }
      })

    test("is removed from the store and not returned, unless it is renewed", function*() {
      const { first, cached, requests, second } = yield* setUp()
      assert.strictEqual(valueOf(yield* first.acquire(Option.some(cached))), "token-2")
      assert.strictEqual(valueOf(yield* second.acquire(Option.none())), "token-2")
      assert.strictEqual(yield* requests, 2)
    })

    test("stays in the store when its renewal fails", function*() {
      const { first, cached, requests, second } = yield* setUp({
        answer: (number) => number === 2 ? Effect.fail(outage) : fullToken(`token-${number}`)
      })
      yield* Effect.flip(Effect.provideService(first.acquire(Option.some(cached)), Renewal, true))
      assert.strictEqual(valueOf(yield* second.acquire(Option.none())), "token-1")
      assert.strictEqual(yield* requests, 2)
    })

    test("is removed from the store even if the next acquisition fails", function*() {
      const { first, cached, requests, second } = yield* setUp({
        answer: (number) => number === 2 ? Effect.fail(outage) : fullToken(`token-${number}`)
      })
      deepStrictEqual(yield* Effect.flip(first.acquire(Option.some(cached))), outage)
      assert.strictEqual(valueOf(yield* second.acquire(Option.none())), "token-3")
      assert.strictEqual(yield* requests, 3)
    })

    test("is replaced by the token that another member has stored, without a token request", function*() {
      const { first, cached, requests, second } = yield* setUp()
      yield* TestClock.adjust("1 minute")
      yield* first.acquire(Option.some(cached))
      assert.strictEqual(valueOf(yield* second.acquire(Option.some(cached))), "token-2")
      assert.strictEqual(valueOf(yield* second.acquire(Option.none())), "token-2")
      assert.strictEqual(yield* requests, 2)
    })

    test("is not replaced by a stored token that expires no later", function*() {
      const { requests, second } = yield* setUp()
      assert.strictEqual(valueOf(yield* second.acquire(Option.some(yield* fullToken("another", 60)))), "token-2")
      assert.strictEqual(yield* requests, 2)
      // This token expires a minute earlier than the stored one, which is therefore returned.
      assert.strictEqual(valueOf(yield* second.acquire(Option.some(yield* fullToken("another", 59)))), "token-2")
      assert.strictEqual(yield* requests, 2)
    })

    test("is replaced by a stored token with its value that expires later, if it has expired itself", function*() {
      const { first, cached, requests, second } = yield* setUp({ answer: () => fullToken("extended") })
      yield* TestClock.adjust("56 minutes")
      const extended = yield* Effect.provideService(first.acquire(Option.some(cached)), Renewal, true)
      yield* TestClock.adjust("4 minutes")
      deepStrictEqual({ ...(yield* second.acquire(Option.some(cached))) }, { ...extended })
      assert.strictEqual(yield* requests, 2)
    })

    test("is not shared when the endpoint returns it again", function*() {
      const { first, cached, requests, second } = yield* setUp({ answer: () => fullToken("the same", 60) })
      assert.strictEqual(valueOf(yield* first.acquire(Option.some(cached))), "the same")
      yield* second.acquire(Option.none())
      assert.strictEqual(yield* requests, 3)
    })

    it.effect.each([
      { answer: "another token", lifetime: 60 },
      { answer: "one with a shorter lifetime", lifetime: 10 }
    ])(
      "is replaced with one token request when it is rejected across a fleet of providers: by $answer",
      ({ lifetime }) =>
        Effect.gen(function*() {
          const { requests, source } = yield* endpoint({
            takes: 200,
            answer: (number) => fullToken(`token-${number}`, number === 1 ? 60 : lifetime)
          })
          const store = yield* TokenStore.makeMemory
          const fleet = yield* Effect.forEach(
            Array.from({ length: 20 }),
            () => Effect.flatMap(member(source, store), providerOf)
          )
          const getAll = Effect.forEach(fleet, ({ get }) => get, { concurrency: "unbounded" })
          const { exit: first } = yield* drive(yield* Effect.fork(getAll))
          deepStrictEqual(valuesOf(first), ["token-1"])
          yield* TestClock.adjust("10 seconds")
          const revoked = Exit.match(first, { onFailure: () => [], onSuccess: (tokens) => tokens })
          yield* Effect.forEach(fleet, ({ invalidate }, index) => invalidate(revoked[index] as AccessToken.AccessToken))
          const { exit: second } = yield* drive(yield* Effect.fork(getAll))
          deepStrictEqual(valuesOf(second), ["token-2"])
          assert.strictEqual(yield* requests, 2)
        }).pipe(Effect.scoped)
    )
  })

  describe("a process that starts", () => {
    /** Runs six processes with one token until they renew it, then starts another. Returns what this one got. */
    const startedDuringRenewal = (renewal: Acquisition) => {
      const virtual = VirtualClock.make(undefined, settled)
      return Effect.gen(function*() {
        const { requests, source } = yield* endpoint({ answer: (n) => n === 1 ? fullToken("token-1") : renewal })
        const store = yield* TokenStore.makeMemory
        const fleet = yield* Effect.forEach(
          Array.from({ length: 6 }),
          () => Effect.flatMap(member(source, store), providerOf)
        )
        const getAll = Effect.fork(Effect.forEach(fleet, ({ get }) => get, { concurrency: "unbounded" }))
        yield* getAll
        yield* virtual.advance(57 * minute)
        yield* getAll
        yield* virtual.advance("5 seconds")
        assert.isAbove(yield* requests, 1, "a renewal has begun")
        const { get } = yield* Effect.flatMap(member(source, store), providerOf)
        const started = yield* Effect.fork(get)
        yield* virtual.advance("1 second")
        return yield* Fiber.poll(started)
      }).pipe(Effect.scoped, Effect.withClock(virtual.clock), Logger.withMinimumLogLevel(LogLevel.None))
    }

    it.live.each<[string, Acquisition]>([
      ["hangs", Effect.never],
      ["is slow", Effect.delay(fullToken("token-2"), "20 seconds")],
      ["is down", Effect.delay(Effect.fail(outage), "3 seconds")]
    ])(
      "while six others renew the token has the valid one within 1 s: the endpoint %s",
      ([, renewal]) =>
        Effect.gen(function*() {
          const exit = Option.getOrUndefined(yield* startedDuringRenewal(renewal))
          deepStrictEqual(exit && Exit.map(exit, valueOf), Exit.succeed("token-1"))
        })
    )

    /** Starts a process after `age`, in milliseconds, of a token that another one stored. */
    const startedAt = (
      age: number,
      { answer = fullToken("new"), lifetime = 60 * minute, ...options }: Partial<SharedTokenSource.Options> & {
        readonly lifetime?: number
        readonly answer?: Acquisition
      }
    ) =>
      Effect.gen(function*() {
        const { source } = yield* endpoint({
          answer: (number) => number === 1 ? fullToken("old", lifetime / minute) : answer
        })
        const store = yield* TokenStore.makeMemory
        yield* TestClock.adjust("1 day")
        yield* (yield* member(source, store)).acquire(Option.none())
        yield* TestClock.adjust(age)
        const { acquire } = yield* member(source, store, options)
        const { exit } = yield* drive(yield* Effect.fork(acquire(Option.none())))
        return Exit.map(exit, valueOf)
      })

    const leeways = [
      { leeway: undefined, lifetime: 60 * minute, least: 30_000 },
      { leeway: undefined, lifetime: 2 * minute, least: 6000 },
      { leeway: "2 minutes", lifetime: 60 * minute, least: 2 * minute },
      { leeway: "1 hour", lifetime: 60 * minute, least: 3 * minute },
      { leeway: -1, lifetime: 60 * minute, least: 1 }
    ] as const

    it.effect.each(leeways)(
      "accepts a token with $least ms left and not less, for a lifetime of $lifetime ms and a leeway of $leeway",
      ({ leeway, least, lifetime }) =>
        Effect.gen(function*() {
          deepStrictEqual(yield* startedAt(lifetime - least, { leeway, lifetime }), Exit.succeed("old"))
          deepStrictEqual(yield* startedAt(lifetime - least + 1, { leeway, lifetime }), Exit.succeed("new"))
        })
    )

    test("gets a token with less left only if the acquisition of another fails, and while it is valid", function*() {
      const age = 60 * minute - 20_000
      const failure = (takes: number) => Effect.delay(Effect.fail(outage), takes)
      deepStrictEqual(yield* startedAt(age, { answer: failure(19_999) }), Exit.succeed("old"))
      deepStrictEqual(yield* startedAt(age, { answer: failure(20_000) }), Exit.fail(outage))
      deepStrictEqual(yield* startedAt(age, { answer: Effect.die("an invented defect") }), Exit.succeed("old"))
    })
  })

  describe("when the clocks of two machines differ", () => {
    /** Stores a token, then reads it on a machine whose clock differs from the first by `minutes`. */
    const readAt = (minutes: number, lifetime = 60) =>
      Effect.gen(function*() {
        const { requests, source } = yield* endpoint({ answer: (number) => fullToken(`token-${number}`, lifetime) })
        const store = yield* TokenStore.makeMemory
        yield* TestClock.setTime(Date.UTC(2026, 0, 15))
        const acquired = yield* (yield* member(source, store)).acquire(Option.none())
        yield* TestClock.setTime(Date.UTC(2026, 0, 15) + minutes * 60_000)
        const now = yield* DateTime.now
        const read = yield* (yield* member(source, store)).acquire(Option.none())
        return { acquired, now, read, requests: yield* requests }
      })

    test("a reader whose clock is behind sets acquiredAt to its own time and keeps expiresAt", function*() {
      const { acquired, now, read, requests } = yield* readAt(-5, 50)
      assert.strictEqual(requests, 1)
      deepStrictEqual(read.acquiredAt, now)
      deepStrictEqual(read.expiresAt, acquired.expiresAt)
    })

    test("a reader whose clock is two hours behind limits the lifetime to 60 minutes from receipt", function*() {
      const { now, read, requests } = yield* readAt(-120)
      assert.strictEqual(requests, 1)
      deepStrictEqual(read.acquiredAt, now)
      deepStrictEqual(read.expiresAt, DateTime.add(now, { minutes: 60 }))
    })

    test("a reader whose clock is ahead treats the token as expired early", function*() {
      const ahead = yield* readAt(59)
      assert.strictEqual(ahead.requests, 1)
      assert.strictEqual((yield* readAt(60)).requests, 2)
    })

    it.effect.each([
      { behind: 0, lifetime: 40 },
      { behind: 2 * 60, lifetime: 60 }
    ])(
      "a reader whose clock is $behind minutes behind and then set back expires the token $lifetime minutes after receipt",
      ({ behind, lifetime }) =>
        Effect.gen(function*() {
          const virtual = VirtualClock.make()
          yield* Effect.gen(function*() {
            const { requests, source } = yield* endpoint()
            const store = yield* TokenStore.makeMemory
            yield* (yield* member(source, store)).acquire(Option.none())
            yield* virtual.advance(20 * minute)
            virtual.jump(-behind * minute)
            const provider = yield* providerOf(yield* member(source, store))
            assert.strictEqual(valueOf(yield* provider.get), "token-1")
            assert.strictEqual(yield* requests, 1)
            yield* virtual.advance((lifetime - 10) * minute)
            virtual.jump(-25 * minute)
            yield* virtual.advance(10 * minute - 1)
            assert.notStrictEqual((yield* provider.status).state, "Expired")
            yield* virtual.advance(1)
            assert.strictEqual(
              (yield* provider.status).state,
              "Expired",
              "the wall clock alone would allow 25 more minutes"
            )
          }).pipe(Effect.withClock(virtual.clock), Effect.scoped)
        })
    )
  })

  test("reads credentials at each acquisition and shares only among members with the same ones", function*() {
    const { requests, source } = yield* endpoint()
    const store = yield* TokenStore.makeMemory
    const current = yield* Ref.make(credentials)
    const rotating = yield* member(source, store, { credentials: Ref.get(current) })
    yield* rotating.acquire(Option.none())
    yield* rotating.acquire(Option.none())
    assert.strictEqual(yield* requests, 1)
    yield* Ref.set(current, yield* credentialsOf("invented-client-id", "another-invented-secret"))
    assert.strictEqual(valueOf(yield* rotating.acquire(Option.none())), "token-2")
    assert.strictEqual(valueOf(yield* (yield* member(source, store)).acquire(Option.none())), "token-1")
  })
})
