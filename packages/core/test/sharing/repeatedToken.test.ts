import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, AccessTokenProvider, TokenSource, TokenStore } from "@store-api/core"
import { Clock, DateTime, Effect, Exit, Option, Random, Redacted, TestClock } from "effect"
import { Renewal } from "../../src/internal/renewal.js"
import * as seal from "../../src/internal/sharing/seal.js"
import { authUrl, credentials, endpoint, fullToken, member, settled, watched } from "../support/fleet.js"
import { valueOf } from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

const life = 40_000
const minute = 60_000
const hour = 60 * minute
const start = VirtualClock.make().wall()

/** Milliseconds from the request to the endpoint, and from there to the response. */
const way = 100

/** Pauses between looks into the store grow by a quarter, so a token is found soon after it was stored. */
const lateness = 1.5

interface Setup {
  readonly processes: number
  /** Whether the endpoint returns its last token again, by the milliseconds left of it and its number. */
  readonly repeats: (left: number, number: number) => boolean
}

/** Lets the processes call four times a second, for three lifetimes of a token. */
const outcomeOf = ({ processes, repeats }: Setup) =>
  Effect.gen(function*() {
    const virtual = VirtualClock.make(undefined, settled)
    const expiry = new Map<string, number>()
    let last = { value: "", expiresAt: -Infinity }
    let [requests, repeated] = [0, 0]
    const source = TokenSource.make(() =>
      Effect.gen(function*() {
        const acquiredAt = yield* DateTime.now
        yield* Effect.sleep(way)
        const now = yield* Clock.currentTimeMillis
        const left = last.expiresAt - now
        requests++
        if (left > 0 && repeats(left, expiry.size)) repeated++
        else {
          last = { value: `token-${expiry.size + 1}`, expiresAt: now + life }
          expiry.set(last.value, last.expiresAt)
        }
        const { expiresAt, value } = last
        const expiresIn = Math.floor((expiresAt - now) / 1000)
        yield* Effect.sleep(way)
        return new AccessToken.AccessToken({
          value: Redacted.make(value),
          acquiredAt,
          expiresAt: DateTime.add(acquiredAt, { seconds: expiresIn })
        })
      })
    )
    const store = yield* TokenStore.makeMemory
    let [dead, early, failed, longestWait] = [0, 0, 0, 0]
    yield* Effect.gen(function*() {
      const fleet = yield* Effect.forEach(Array.from({ length: processes }), () =>
        Effect.flatMap(member(source, store), (shared) => {
          // A source that wraps the shared one, as in the documentation.
          const wrapped = TokenSource.make((replacing) =>
            shared.acquire(replacing)
          )
          return Effect.provideService(AccessTokenProvider.make(), TokenSource.TokenSource, wrapped)
        }))
      const call = (provider: AccessTokenProvider.Service) =>
        Effect.gen(function*() {
          const { state } = yield* provider.status
          const from = virtual.monotonic()
          const exit = yield* Effect.exit(provider.get)
          const wait = virtual.monotonic() - from
          longestWait = Math.max(longestWait, wait)
          if (wait > 0 && state !== "Empty" && state !== "Expired") early++
          if (Exit.isFailure(exit)) failed++
          else if ((expiry.get(valueOf(exit.value)) ?? 0) <= virtual.wall()) dead++
        })
      for (let passed = 0; passed < 3 * life; passed += 250) {
        for (const provider of fleet) yield* Effect.fork(call(provider))
        yield* virtual.advance(250)
      }
      yield* virtual.advance("10 seconds")
    }).pipe(Effect.scoped, Effect.withClock(virtual.clock), Effect.withRandom(Random.make(17)))
    return { requests, repeated, longestWait, bad: { dead, early, failed } }
  })

describe("an endpoint that repeats its token", () => {
  it.live.each([
    { endpoint: "repeats it until it expires", repeats: () => true },
    { endpoint: "repeats it only in its last minutes", repeats: (left: number) => left < 0.22 * life },
    { endpoint: "returns a new one when little is left", repeats: (left: number) => left > 0.1 * life },
    { endpoint: "starts to repeat it", repeats: (_: number, number: number) => number >= 2 }
  ])(
    "gets at most 3 more requests from six processes than from one, and 6 more from fifty, and no call waits early or fails: it $endpoint",
    ({ repeats }) =>
      Effect.gen(function*() {
        const one = yield* outcomeOf({ processes: 1, repeats })
        assert.isAbove(one.repeated, 0, "the endpoint repeats")
        // In each of three lifetimes, the first one and at most two renewals.
        assert.isAtMost(one.requests, 9)
        for (const [processes, more] of [[6, 3], [50, 6]] as const) {
          const fleet = yield* outcomeOf({ processes, repeats })
          assert.isAtMost(fleet.requests, one.requests + more, `${processes} processes`)
          assert.isAtMost(fleet.longestWait, lateness * one.longestWait)
          deepStrictEqual(fleet.bad, { dead: 0, early: 0, failed: 0 })
        }
        deepStrictEqual(one.bad, { dead: 0, early: 0, failed: 0 })
      }),
    120_000
  )

  /** Two members of a fleet with one token that is about to be renewed. The endpoint repeats its first token. */
  const twoMembers = (answer: (number: number) => ReturnType<typeof fullToken>) =>
    Effect.gen(function*() {
      const virtual = VirtualClock.make(undefined, settled)
      const { requests, source } = yield* endpoint({ answer })
      const store = yield* TokenStore.makeMemory
      const [first, second] = yield* Effect.all([member(source, store), member(source, store)])
      return { virtual, requests, store, first, second }
    })

  /** The token that the endpoint returns until minute 60. */
  const repeated = Effect.flatMap(
    Clock.currentTimeMillis,
    (now) => fullToken("repeated", (start + hour - now) / minute)
  )

  test.live("is not asked again by another member that renews the token, until a quarter of what was left is left", function*() {
    const { first, requests, second, virtual } = yield* twoMembers(() => repeated)
    yield* Effect.gen(function*() {
      const renew = ({ acquire }: TokenSource.Service) =>
        Effect.provideService(acquire(Option.some(cached)), Renewal, true)
      const cached = yield* first.acquire(Option.none())
      yield* virtual.advance(56 * minute)
      yield* renew(first)
      assert.strictEqual(yield* requests, 2)
      yield* virtual.advance(3 * minute - 1)
      assert.strictEqual(valueOf(yield* renew(second)), "repeated")
      assert.strictEqual(valueOf(yield* second.acquire(Option.none())), "repeated", "for a new process, too")
      assert.strictEqual(yield* requests, 2)
      yield* virtual.advance(1)
      assert.strictEqual(valueOf(yield* renew(second)), "repeated")
      assert.strictEqual(yield* requests, 3)
      yield* virtual.advance(minute - 7000)
      yield* renew(first)
      assert.strictEqual(yield* requests, 4)
      yield* virtual.advance(6999)
      assert.strictEqual(valueOf(yield* renew(second)), "repeated", "with less than 8 seconds left")
      assert.strictEqual(yield* requests, 4)
    }).pipe(Effect.withClock(virtual.clock))
  })

  test.live("is asked at once when the token is rejected, although another member has just renewed it", function*() {
    const { first, requests, second, virtual } = yield* twoMembers((n) => n < 3 ? repeated : fullToken("another"))
    yield* Effect.gen(function*() {
      const providers = yield* Effect.forEach(
        [first, second],
        (source) => Effect.provideService(AccessTokenProvider.make(), TokenSource.TokenSource, source)
      )
      const getAll = Effect.forEach(providers, ({ get }) => get)
      yield* getAll
      yield* virtual.advance(56.5 * minute)
      const tokens = yield* getAll
      yield* virtual.advance("1 second")
      assert.strictEqual(yield* requests, 2)
      yield* Effect.forEach(
        providers,
        ({ invalidate }, index) => invalidate(tokens[index] as AccessToken.AccessToken)
      )
      deepStrictEqual((yield* getAll).map(valueOf), ["another", "another"])
      assert.strictEqual(yield* requests, 3)
    }).pipe(Effect.scoped, Effect.withClock(virtual.clock))
  })

  it.live.each([[4000, 3500], [hour, 56 * minute]] as const)(
    "is asked by a renewal although the store still has that token, with a lifetime of %i ms",
    ([life, age]) =>
      Effect.gen(function*() {
        const { first, requests, virtual } = yield* twoMembers((n) => fullToken(`token-${n}`, life / minute))
        yield* Effect.gen(function*() {
          const cached = yield* first.acquire(Option.none())
          yield* virtual.advance(age)
          const renewed = yield* Effect.provideService(first.acquire(Option.some(cached)), Renewal, true)
          assert.strictEqual(valueOf(renewed), "token-2")
          assert.strictEqual(yield* requests, 2)
        }).pipe(Effect.withClock(virtual.clock))
      })
  )

  test("a rejected token is removed from the store, and another one that expires sooner is not", function*() {
    const { source } = yield* endpoint({ answer: (n) => fullToken(`token-${n}`, n === 1 ? 30 : 60) })
    const store = yield* TokenStore.makeMemory
    let removed = 0
    const counting = TokenStore.TokenStore.of({
      ...store,
      remove: (key, entry) => Effect.tap(store.remove(key, entry), () => Effect.sync(() => removed++))
    })
    const { acquire } = yield* member(source, counting)
    yield* acquire(Option.none())
    const second = yield* acquire(Option.some(yield* fullToken("another")))
    deepStrictEqual([valueOf(second), removed], ["token-2", 0])
    deepStrictEqual([valueOf(yield* acquire(Option.some(second))), removed], ["token-3", 1])
  })

  test.live("is not asked by the second member when the renewal brought the same token with a later expiry", function*() {
    const { first, requests, second, virtual } = yield* twoMembers((n) => fullToken("extended", n === 1 ? 60 : 59))
    yield* Effect.gen(function*() {
      const cached = yield* first.acquire(Option.none())
      yield* virtual.advance(56 * minute)
      const extended = yield* Effect.provideService(first.acquire(Option.some(cached)), Renewal, true)
      deepStrictEqual(yield* Effect.provideService(second.acquire(Option.some(cached)), Renewal, true), extended)
      assert.strictEqual(yield* requests, 2)
    }).pipe(Effect.withClock(virtual.clock))
  })
})

/** The entry of `fullToken("recorded")`, acquired at time 0, by the version that did not share repeated tokens. */
const recorded = {
  key: "store-api-token-v1:c2faa3f827d0990d5908421328b210d6",
  entry: [
    "oSVxhEWBNDIz-uj1h_8HY8wsSh8cFAzfys5v1YSzxLoa0N_AzBUX6WpoqGCTe4ApBugMp-mHSxLlGxoYAngSG7Wt_FiH7bIHULGH",
    "Pw0otduP37qDXM-4dnvDr39EpWxXytibW65mEHupT0j3umNKeYALs7Yd-96jf4piJe51p0_gilasZPpMxmkK2oiVqBlb7bs8No_b",
    "xTKg44fLxzp2u7_4XE7767oki8erJI5XpUF3eEG-0Uprql0ntd32Wle_FbAeyQA3JepG0EAWWzghXvyTkFB0VgTb2Za1_QNRvbOQ",
    "eg-xVCGxPtFJmWMya2W5"
  ].join(""),
  clearText: JSON.stringify({
    value: "recorded",
    scope: "read write",
    acquiredAt: 0,
    expiresAt: 3_600_000,
    applicationName: "an application",
    developerEmail: "developer@shop.example",
    issuedAt: "1767225600000",
    clientId: "invented-client-id"
  })
}

describe("an entry of the former version", () => {
  const renewed = Effect.gen(function*() {
    const { puts, store } = yield* watched
    yield* store.put(recorded.key, recorded.entry, "60 minutes")
    // The endpoint rounds down what is left.
    const { requests, source } = yield* endpoint({
      answer: () =>
        Effect.map(
          fullToken("recorded", 4),
          (token) =>
            new AccessToken.AccessToken({ ...token, expiresAt: DateTime.subtract(token.expiresAt, { seconds: 1 }) })
        )
    })
    const { acquire } = yield* member(source, store)
    const read = yield* acquire(Option.none())
    yield* TestClock.adjust("56 minutes")
    yield* Effect.provideService(acquire(Option.some(read)), Renewal, true)
    return { acquire, puts: yield* puts, read, requests }
  })

  test("is read, and renewed with one token request", function*() {
    const expected = yield* fullToken("recorded")
    const { acquire, read, requests } = yield* renewed
    deepStrictEqual({ ...read }, { ...expected })
    assert.strictEqual(yield* requests, 1)
    yield* Effect.provideService(acquire(Option.some(read)), Renewal, true)
    assert.strictEqual(yield* requests, 1)
  })

  test("has the same fields as one that is stored after a renewal without progress, of which only acquiredAt is later", function*() {
    const { open } = yield* seal.make(credentials, authUrl)
    assert.strictEqual(yield* open(recorded.entry), recorded.clearText, "control")
    const { puts: [, [key, entry] = ["", ""]] } = yield* renewed
    assert.strictEqual(key, recorded.key)
    const clearText = recorded.clearText.replace(`"acquiredAt":0`, `"acquiredAt":${56 * 60_000}`)
    assert.strictEqual(yield* open(entry), clearText)
  })
})
