import { HttpClient, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessToken,
  AccessTokenProvider,
  AuthorizedHttpClient,
  SharedTokenSource,
  TokenRequest,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { allSeries } from "@store-api/testing/effectMajor"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import {
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
import {
  credentials,
  credentialsOf,
  drive,
  endpoint,
  fleet,
  fullToken,
  type MemberOptions,
  purpose,
  settled,
  timed
} from "../support/fleet.js"
import {
  type Acquisition,
  minute,
  outage,
  outcomeOf,
  valueOf
} from "../support/scriptedSource.js"

const hits = Effect.map(Metric.value(SharedTokenSource.storeHits), ({ count }) => count)

/** The token provider of one process, over its shared source. */
const providerOf = (started: { readonly shared: TokenSource.Service }) =>
  Effect.provideService(AccessTokenProvider.make(), TokenSource.TokenSource, started.shared)

describe("SharedTokenSource", () => {
  test("fifty members that acquire at once send one token request", function*() {
    const { requests, start } = yield* fleet({ takes: 200 })
    const members = yield* Effect.all(Effect.replicate(start(), 50))
    const before = yield* hits
    const [outcome] = yield* timed(...members.map(({ get }) => get()))
    deepStrictEqual([outcome, yield* requests, (yield* hits) - before], ["token-1", 1, 49])
  })

  test("two tokens that are revoked at once are replaced by one token request before any call fails", function*() {
    const { puts, requests, start, store } = yield* fleet({ takes: 200 })
    const revoked = new Set<unknown>()
    const api = HttpClient.make((request) =>
      Effect.sync(() => {
        const status = revoked.has(request.headers["authorization"]) ? 401 : 200
        return HttpClientResponse.fromWeb(request, new Response("{}", { status }))
      })
    )
    const members = yield* Effect.forEach(
      Array.from({ length: 6 }),
      () =>
        Effect.gen(function*() {
          const provider = yield* providerOf(yield* start())
          const client = AuthorizedHttpClient.withAccessToken(api, {
            apiUrl: "https://api.shop.example"
          })
          return yield* Effect.provideService(
            client,
            AccessTokenProvider.AccessTokenProvider,
            provider
          )
        })
    )
    /** The distinct statuses of five calls of each member, all at once. */
    const call = (members: ReadonlyArray<AuthorizedHttpClient.Service>) =>
      Effect.gen(function*() {
        const each = members.map((client) => client.get("/orders"))
        const calls = Effect.all(Array.from({ length: 5 }, () => each).flat(), {
          concurrency: "unbounded"
        })
        const { exit } = yield* drive(yield* Effect.fork(calls))
        return [...new Set((yield* exit).map(({ status }) => status))]
      })
    yield* call(members.slice(3))
    // The store loses the first token, as in a failover, so the other members acquire a second one.
    for (const [key, entry] of yield* puts) yield* store.remove(key, entry)
    yield* call(members.slice(0, 3))
    // A token that was acquired within a second before a 401 counts as new.
    yield* drive(yield* Effect.fork(Effect.sleep("2 seconds")))
    revoked.add("Bearer token-1").add("Bearer token-2")
    deepStrictEqual([yield* requests, yield* call(members), yield* requests], [2, [200], 3])
  })

  /** The token that an acquisition returns. */
  const tokenOf = (acquisition: Acquisition) =>
    Effect.gen(function*() {
      const { exit } = yield* drive(yield* Effect.fork(acquisition))
      return yield* exit
    })

  test("a token that is read again does not end later, though the store was set back", function*() {
    const { start, store } = yield* fleet()
    const written = yield* tokenOf((yield* start()).get())
    yield* drive(yield* Effect.fork(Effect.sleep("20 minutes")))
    let setBack = 0
    const reader = yield* start({
      store: {
        ...store,
        get: (key) =>
          Effect.map(
            store.get(key),
            Option.map(({ entry, remaining }) => ({
              entry,
              remaining: Duration.toMillis(remaining) + setBack
            }))
          )
      }
    })
    const first = yield* tokenOf(reader.get())
    setBack = 10 * minute
    const again = yield* tokenOf(reader.get())
    assert.strictEqual(valueOf(again), valueOf(written))
    assert.strictEqual(again.expiresAt.epochMillis, first.expiresAt.epochMillis)
  })

  test("a store that responds late does not prolong a token", function*() {
    const { start, store } = yield* fleet()
    const written = yield* tokenOf((yield* start()).get())
    const get: TokenStore.Service["get"] = (key) =>
      Effect.tap(store.get(key), Effect.sleep("20 seconds"))
    const reader = yield* start({ store: { ...store, get }, storeTimeout: "30 seconds" })
    const read = yield* tokenOf(reader.get())
    assert.strictEqual(valueOf(read), valueOf(written))
    assert.strictEqual(read.expiresAt.epochMillis, written.expiresAt.epochMillis)
  })

  test("an expired token is not replaced by itself, though the store has it for longer", function*() {
    const { requests, start } = yield* fleet()
    const expired = yield* tokenOf((yield* start()).get())
    const replaced = yield* tokenOf((yield* start()).replace(expired))
    deepStrictEqual([valueOf(replaced), yield* requests], ["token-2", 2])
  })

  test("the metrics of sharing are incremental counters with a documented description", function*() {
    yield* Metric.increment(SharedTokenSource.storeFailures)
    yield* Metric.increment(SharedTokenSource.storeHits)
    const described = (yield* allSeries)
      .filter(({ labels, name }) =>
        name.startsWith("store_api_token_store_") && Object.keys(labels).length === 0
      )
      .map(({ description, kind, name }) => [name, [kind === "counts up", description]])
    deepStrictEqual(Object.fromEntries(described), {
      store_api_token_store_failures: [true, "Failed operations of the shared token store"],
      store_api_token_store_hits: [true, "Tokens that were found in the shared token store"]
    })
  })

  test.each([{ token: fullToken("full"), fields: "all its fields" }, {
    token: Effect.map(
      fullToken("plain"),
      ({ acquiredAt, expiresAt, value }) =>
        new AccessToken.AccessToken({
          value: Redacted.make(Redacted.value(value)),
          acquiredAt,
          expiresAt
        })
    ),
    fields: "no optional fields"
  }])(
    "a stored token is returned as it was acquired, with $fields",
    function*({ token }) {
      const { requests, start } = yield* fleet({ answer: () => token })
      const before = yield* hits
      const acquired = yield* (yield* start()).get()
      assert.strictEqual(yield* hits, before)
      yield* TestClock.adjust("20 minutes")
      deepStrictEqual({ ...(yield* (yield* start()).get()) }, { ...acquired })
      deepStrictEqual([yield* requests, (yield* hits) - before], [1, 1])
    }
  )

  test("a member returns the token that another one stored before the lease was granted", function*() {
    const { puts, requests, start, store } = yield* fleet()
    const other = yield* start()
    const late = TokenStore.TokenStore.of({
      ...store,
      lease: (key, duration) =>
        Effect.zipRight(Effect.orDie(other.get()), store.lease(key, duration))
    })
    deepStrictEqual([valueOf(yield* (yield* start({ store: late })).get()), yield* requests], [
      "token-1",
      1
    ])
    const [[key] = [""]] = yield* puts
    assert.isTrue(Option.isSome(yield* store.lease(key, "1 second")))
  })

  test("a trailing slash of authUrl does not separate members", function*() {
    const { requests, start } = yield* fleet()
    for (
      const authUrl of [
        "https://auth.shop.example/base",
        new URL("https://AUTH.shop.example/base/")
      ]
    ) {
      yield* (yield* start({ authUrl })).get()
    }
    assert.strictEqual(yield* requests, 1)
  })

  test("a shared source cannot be built over a source without a purpose", function*() {
    const unshared = SharedTokenSource.make().pipe(
      Effect.provideService(
        TokenSource.TokenSource,
        TokenSource.make(() => fullToken("token"))
      ),
      Effect.provideServiceEffect(TokenStore.TokenStore, TokenStore.makeMemory)
    )
    assert.strictEqual((yield* Effect.flip(unshared)).option, "TokenSource.purpose")
  })

  test("SharedTokenSource.layer shares tokens through the store in its context", function*() {
    const { requests, source } = yield* endpoint()
    const layer = SharedTokenSource.layer().pipe(
      Layer.provide(
        Layer.merge(
          Layer.succeed(TokenSource.TokenSource, {
            ...source,
            purpose: Option.some(Effect.succeed(purpose))
          }),
          TokenStore.layerMemory
        )
      )
    )
    const acquire = Effect.flatMap(
      TokenSource.TokenSource,
      ({ acquire }) => acquire(TokenSource.missing)
    )
    yield* Effect.provide(Effect.zipRight(acquire, acquire), layer)
    assert.strictEqual(yield* requests, 1)
  })

  test("credentials are read at each acquisition", function*() {
    const { requests, start } = yield* fleet()
    const current = yield* Ref.make(credentials)
    const rotating = yield* start({ credentials: Ref.get(current) })
    yield* rotating.get()
    yield* Ref.set(
      current,
      yield* credentialsOf("invented-client-id", "another-invented-secret")
    )
    deepStrictEqual([valueOf(yield* rotating.get()), yield* requests], ["token-2", 2])
  })

  describe("the token to replace", () => {
    /** Two members, of which the first has acquired a token. */
    const setUp = (answer?: (number: number) => Acquisition) =>
      Effect.gen(function*() {
        const { requests, start } = yield* fleet(answer && { answer })
        const [first, second] = [yield* start(), yield* start()]
        return { first, second, cached: yield* first.get(), requests }
      })
    const secondFails = (number: number) =>
      number === 2 ? Effect.fail(outage) : fullToken(`token-${number}`)

    test("a token stays in the store when its renewal fails", function*() {
      const { cached, first, requests, second } = yield* setUp(secondFails)
      deepStrictEqual(yield* Effect.flip(first.renew(cached)), outage)
      deepStrictEqual([valueOf(yield* second.get()), yield* requests], ["token-1", 2])
    })

    test("a rejected token is removed from the store even if the next acquisition fails", function*() {
      const { cached, first, requests, second } = yield* setUp(secondFails)
      deepStrictEqual(yield* Effect.flip(first.get(cached)), outage)
      deepStrictEqual([valueOf(yield* second.get()), yield* requests], ["token-3", 3])
    })

    test("a rejected token is replaced by the token that another member has stored", function*() {
      const { cached, first, requests, second } = yield* setUp()
      yield* TestClock.adjust("1 minute")
      deepStrictEqual(
        [valueOf(yield* first.get(cached)), valueOf(yield* second.get(cached))],
        ["token-2", "token-2"]
      )
      deepStrictEqual([valueOf(yield* second.get()), yield* requests], ["token-2", 2])
    })

    test("a rejected token is not replaced by a stored one that is not newer", function*() {
      const { requests, second } = yield* setUp()
      for (const minutes of [60, 59]) {
        // The token of the second round expires a minute earlier than the stored one, which is therefore returned.
        assert.strictEqual(
          valueOf(yield* second.get(yield* fullToken("another", minutes))),
          "token-2"
        )
      }
      assert.strictEqual(yield* requests, 2)
    })

    test("an expired token is replaced by a stored one with its value that expires later", function*() {
      const { cached, first, requests, second } = yield* setUp(() => fullToken("extended"))
      yield* TestClock.adjust("56 minutes")
      const extended = yield* first.renew(cached)
      yield* TestClock.adjust("4 minutes")
      deepStrictEqual({ ...(yield* second.replace(cached)) }, { ...extended })
      assert.strictEqual(yield* requests, 2)
    })

    test("a rejected token is not shared when the endpoint returns it again", function*() {
      const { cached, first, requests, second } = yield* setUp(() => fullToken("the same", 60))
      assert.strictEqual(valueOf(yield* first.get(cached)), "the same")
      yield* second.get()
      assert.strictEqual(yield* requests, 3)
    })

    test.each([{ answer: "another token", lifetime: 60 }, {
      answer: "one with a shorter lifetime",
      lifetime: 10
    }])(
      "a token that a whole fleet of providers rejects is replaced with one token request: by $answer",
      function*({ lifetime }) {
        const answer = (number: number) =>
          fullToken(`token-${number}`, number === 1 ? 60 : lifetime)
        const { requests, start } = yield* fleet({ takes: 200, answer })
        const providers = yield* Effect.all(
          Effect.replicate(Effect.flatMap(start(), providerOf), 20)
        )
        const getAll = timed(...providers.map(({ get }) => get))
        assert.strictEqual((yield* getAll)[0], "token-1")
        yield* TestClock.adjust("10 seconds")
        yield* Effect.forEach(
          providers,
          ({ get, invalidate }) => Effect.flatMap(get, invalidate)
        )
        deepStrictEqual([(yield* getAll)[0], yield* requests], ["token-2", 2])
      }
    )
  })

  test.live.each(
    [
      ["no token", 0],
      ["a fresh token", 1000],
      ["a token to be renewed", 57 * minute],
      ["a token to wait for", 60 * minute - 20_000],
      ["an expired token", 60 * minute]
    ] as const
  )(
    "an acquireRelease that asks a provider with %s is completed whenever it is interrupted",
    function*([, age]) {
      let interrupted = 0
      for (let after = 0; after < 400; after += 20) {
        const virtual = VirtualClock.make(undefined, settled)
        const seen: Array<string> = []
        yield* Effect.gen(function*() {
          const provider = yield* Effect.flatMap(
            (yield* fleet({ takes: 200 })).start(),
            providerOf
          )
          if (age > 0) yield* Effect.fork(provider.get)
          yield* virtual.advance(age)
          const acquire = Effect.sync(() => seen.push("acquire")).pipe(
            Effect.zipRight(Effect.exit(provider.get)),
            Effect.tap((exit) => Effect.sync(() => seen.push(exit._tag)))
          )
          const release = Effect.sync(() => seen.push("release"))
          const caller = yield* Effect.fork(
            Effect.scoped(Effect.acquireRelease(acquire, () => release))
          )
          yield* virtual.advance(after)
          yield* Fiber.interruptFork(caller)
          yield* virtual.advance(minute)
          if (Exit.isInterrupted(yield* Fiber.await(caller))) interrupted++
        }).pipe(Effect.scoped, Effect.withClock(virtual.clock))
        deepStrictEqual(seen, ["acquire", "Success", "release"], `after ${after} ms`)
      }
      if (age === 0) assert.isAbove(interrupted, 0, "control: callers were interrupted")
    }
  )

  describe("a process that starts", () => {
    const slow = Effect.delay(fullToken("token-2"), "20 seconds")
    const down = Effect.delay(Effect.fail(outage), "3 seconds")

    it.live.each<[string, Acquisition]>([["hangs", Effect.never], ["is slow", slow], [
      "is down",
      down
    ]])(
      "a process that starts during a renewal has the valid token within 1 s: the endpoint %s",
      ([, renewal]) => {
        const virtual = VirtualClock.make(undefined, settled)
        return Effect.gen(function*() {
          const { requests, start } = yield* fleet({
            answer: (n) => n === 1 ? fullToken("token-1") : renewal
          })
          const provider = Effect.flatMap(start(), providerOf)
          const providers = yield* Effect.all(Effect.replicate(provider, 6))
          const getAll = Effect.fork(
            Effect.forEach(providers, ({ get }) => get, { concurrency: "unbounded" })
          )
          yield* getAll
          yield* virtual.advance(57 * minute)
          yield* getAll
          yield* virtual.advance("5 seconds")
          assert.isAbove(yield* requests, 1, "a renewal has begun")
          const started = yield* Effect.fork(outcomeOf((yield* provider).get))
          yield* virtual.advance("1 second")
          assert.isTrue(Option.isSome(yield* Fiber.poll(started)))
          assert.strictEqual(yield* Fiber.join(started), "token-1")
        }).pipe(
          Effect.scoped,
          Effect.withClock(virtual.clock),
          Logger.withMinimumLogLevel(LogLevel.None)
        )
      }
    )

    /** The outcome for a process that starts after `age`, in milliseconds, of a token that another one stored. */
    const startedAt = (
      age: number,
      { answer = fullToken("new"), lifetime = 60 * minute, ...options }: MemberOptions & {
        readonly lifetime?: number
        readonly answer?: Acquisition
      }
    ) =>
      Effect.gen(function*() {
        const { start } = yield* fleet({
          answer: (number) => number === 1 ? fullToken("old", lifetime / minute) : answer
        })
        yield* TestClock.adjust("1 day")
        yield* (yield* start()).get()
        yield* TestClock.adjust(age)
        return (yield* timed((yield* start(options)).get()))[0]
      })

    test.each(
      [
        { leeway: undefined, lifetime: 60 * minute, least: 30_000 },
        { leeway: undefined, lifetime: 2 * minute, least: 6000 },
        { leeway: "2 minutes", lifetime: 60 * minute, least: 2 * minute },
        { leeway: "1 hour", lifetime: 60 * minute, least: 3 * minute },
        { leeway: 0, lifetime: 60 * minute, least: 1 }
      ] as const
    )(
      "a process that starts accepts no less than $least ms of a token, for a lifetime of $lifetime ms with a leeway of $leeway",
      function*({ leeway, least, lifetime }) {
        assert.strictEqual(yield* startedAt(lifetime - least, { leeway, lifetime }), "old")
        assert.strictEqual(yield* startedAt(lifetime - least + 1, { leeway, lifetime }), "new")
      }
    )

    test.each<[failure: string, answer: Acquisition]>([
      ["an error", Effect.delay(Effect.fail(outage), 19_999)],
      ["a defect", Effect.die("an invented defect")]
    ])(
      "a process that starts gets a token with less left if the acquisition fails with %s",
      function*([, answer]) {
        assert.strictEqual(yield* startedAt(60 * minute - 20_000, { answer }), "old")
      }
    )

    test("a process that starts gets the error if its stored token has expired when the acquisition fails", function*() {
      const answer = Effect.delay(Effect.fail(outage), 20_000)
      assert.strictEqual(yield* startedAt(60 * minute - 20_000, { answer }), "Transport")
    })
  })

  describe("when the clocks of two machines differ", () => {
    /** Stores a token, then reads it on a machine whose clock differs from the first by `minutes`. */
    const readAt = (minutes: number, lifetime = 60) =>
      Effect.gen(function*() {
        const { requests, start } = yield* fleet({
          answer: (number) => fullToken(`token-${number}`, lifetime)
        })
        yield* TestClock.setTime(Date.UTC(2026, 0, 15))
        const acquired = yield* (yield* start()).get()
        yield* TestClock.setTime(Date.UTC(2026, 0, 15) + minutes * minute)
        const now = yield* DateTime.now
        return {
          acquired,
          now,
          read: yield* (yield* start()).get(),
          requests: yield* requests
        }
      })

    test("a reader whose clock is behind counts the lifetime from its own time", function*() {
      const { now, read, requests } = yield* readAt(-5, 50)
      deepStrictEqual([read.acquiredAt, read.expiresAt, requests], [
        now,
        DateTime.add(now, { minutes: 50 }),
        1
      ])
    })

    test("a reader whose clock is two hours behind limits the lifetime to 60 minutes from receipt", function*() {
      const { now, read, requests } = yield* readAt(-120)
      deepStrictEqual([read.acquiredAt, read.expiresAt, requests], [
        now,
        DateTime.add(now, { minutes: 60 }),
        1
      ])
    })

    test("a reader with a shorter maxLifetime uses the token no longer than that", function*() {
      const day = 24 * 60
      const { start } = yield* fleet({ answer: () => fullToken("a token", day) })
      const lifeOf = (options: MemberOptions) =>
        Effect.gen(function*() {
          const { acquiredAt, expiresAt } = yield* (yield* start(options)).get()
          return (expiresAt.epochMillis - acquiredAt.epochMillis) / minute
        })
      const request = TokenRequest.make({
        ...TokenRequest.specification,
        maxLifetime: "24 hours"
      })
      deepStrictEqual(
        [
          yield* lifeOf({ request }),
          yield* lifeOf({ request }),
          yield* lifeOf({}),
          yield* lifeOf({ maxLifetime: "1 minute" })
        ],
        [day, day, 60, 1]
      )
    })

    test("a reader whose clock is ahead treats the token as expired early", function*() {
      deepStrictEqual([(yield* readAt(59)).requests, (yield* readAt(60)).requests], [1, 2])
    })

    it.effect.each([{ behind: 0, lifetime: 40 }, { behind: 2 * 60, lifetime: 40 }])(
      "a token expires $lifetime minutes after receipt though the clock, $behind minutes behind, is set back",
      ({ behind, lifetime }) => {
        const virtual = VirtualClock.make()
        return Effect.gen(function*() {
          const { requests, start } = yield* fleet()
          yield* (yield* start()).get()
          yield* virtual.advance(20 * minute)
          virtual.jump(-behind * minute)
          const provider = yield* providerOf(yield* start())
          deepStrictEqual([valueOf(yield* provider.get), yield* requests], ["token-1", 1])
          yield* virtual.advance((lifetime - 10) * minute)
          // By the wall clock, 25 more minutes are left.
          virtual.jump(-25 * minute)
          yield* virtual.advance(10 * minute - 1)
          assert.notStrictEqual((yield* provider.status).state, "Expired")
          yield* virtual.advance(1)
          assert.strictEqual((yield* provider.status).state, "Expired")
        }).pipe(Effect.withClock(virtual.clock), Effect.scoped)
      }
    )
  })
})
