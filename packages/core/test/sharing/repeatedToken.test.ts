import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, AccessTokenProvider, TokenSource, TokenStore } from "@store-api/core"
import type { LiveSteps } from "@store-api/testing/effectMajor"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Clock, DateTime, Effect, Exit, Random, Redacted, TestClock } from "effect"
import * as seal from "../../src/internal/sharing/seal.js"
import { fleet, fullToken, type Member, member, purpose, settled } from "../support/fleet.js"
import { type Acquisition, hour, minute, valueOf } from "../support/scriptedSource.js"

const life = 40_000
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
          return Effect.provideService(
            AccessTokenProvider.make(),
            TokenSource.TokenSource,
            wrapped
          )
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
    {
      endpoint: "repeats it only in its last minutes",
      repeats: (left: number) => left < 0.22 * life
    },
    {
      endpoint: "returns a new one when little is left",
      repeats: (left: number) => left > 0.1 * life
    },
    { endpoint: "starts to repeat it", repeats: (_: number, number: number) => number >= 2 }
  ])(
    "a fleet sends about as many requests as one process to an endpoint that repeats its token: it $endpoint",
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

  /** Two members of a fleet, by virtual time. */
  const twoMembers = (
    answer: (number: number) => Acquisition,
    steps: (tools: {
      readonly virtual: VirtualClock.VirtualClock
      readonly sent: (count: number) => Effect.Effect<void>
      readonly first: Member
      readonly second: Member
    }) => LiveSteps
  ) => {
    const virtual = VirtualClock.make(undefined, settled)
    return Effect.gen(function*() {
      const { requests, start } = yield* fleet({ answer })
      const sent = (count: number) =>
        Effect.map(requests, (requests) => assert.strictEqual(requests, count))
      const [first, second] = [yield* start(), yield* start()]
      yield* Effect.gen(() => steps({ virtual, sent, first, second }))
    }).pipe(Effect.scoped, Effect.withClock(virtual.clock))
  }

  /** Declares such a test. */
  const twoMembersTest = (title: string, ...test: Parameters<typeof twoMembers>) =>
    it.live(title, () => twoMembers(...test))

  /** The token that the endpoint returns until minute 60. */
  const repeated = Effect.flatMap(
    Clock.currentTimeMillis,
    (now) => fullToken("repeated", (start + hour - now) / minute)
  )

  twoMembersTest(
    "an endpoint that repeats its token is not asked again by another member until a quarter of what was left is left",
    () => repeated,
    function*({ first, second, sent, virtual }) {
      const cached = yield* first.get()
      const renew = ({ renew }: Member) =>
        Effect.map(renew(cached), (token) => assert.strictEqual(valueOf(token), "repeated"))
      yield* virtual.advance(56 * minute)
      yield* renew(first)
      yield* sent(2)
      yield* virtual.advance(3 * minute - 1)
      yield* renew(second)
      // For a new process, too.
      assert.strictEqual(valueOf(yield* second.get()), "repeated")
      yield* sent(2)
      yield* virtual.advance(1)
      yield* renew(second)
      yield* sent(3)
      yield* virtual.advance(minute - 7000)
      yield* renew(first)
      yield* sent(4)
      // With less than 8 seconds left.
      yield* virtual.advance(6999)
      yield* renew(second)
      yield* sent(4)
    }
  )

  twoMembersTest(
    "an endpoint that repeats its token is asked at once when the token is rejected, although another member has just renewed it",
    (n) => n < 3 ? repeated : fullToken("another"),
    function*({ first, second, sent, virtual }) {
      const providers = yield* Effect.forEach(
        [first, second],
        ({ shared }) =>
          Effect.provideService(AccessTokenProvider.make(), TokenSource.TokenSource, shared)
      )
      const getAll = Effect.forEach(providers, ({ get }) => get)
      yield* getAll
      yield* virtual.advance(56.5 * minute)
      yield* getAll
      yield* virtual.advance("1 second")
      yield* sent(2)
      yield* Effect.forEach(
        providers,
        ({ get, invalidate }) => Effect.flatMap(get, invalidate)
      )
      deepStrictEqual((yield* getAll).map(valueOf), ["another", "another"])
      yield* sent(3)
    }
  )

  it.live.each([[4000, 3500], [hour, 56 * minute]] as const)(
    "a renewal sends a request although the store still has that token, with a lifetime of %i ms",
    ([life, age]) =>
      twoMembers(
        (n) => fullToken(`token-${n}`, life / minute),
        function*({ first, sent, virtual }) {
          const cached = yield* first.get()
          yield* virtual.advance(age)
          assert.strictEqual(valueOf(yield* first.renew(cached)), "token-2")
          yield* sent(2)
        }
      )
  )

  twoMembersTest(
    "the second member sends no request when the renewal brought the token with a later expiry",
    (n) => fullToken("extended", n === 1 ? 60 : 59),
    function*({ first, second, sent, virtual }) {
      const cached = yield* first.get()
      yield* virtual.advance(56 * minute)
      deepStrictEqual(yield* first.renew(cached), yield* second.renew(cached))
      yield* sent(2)
    }
  )

  /** A member, and the number of entries that it has removed from the store. */
  const countRemovals = Effect.gen(function*() {
    const { start, store } = yield* fleet({
      answer: (n) => fullToken(`token-${n}`, n === 1 ? 30 : 60)
    })
    let removed = 0
    const counting = TokenStore.TokenStore.of({
      ...store,
      remove: (key, entry) =>
        Effect.tap(store.remove(key, entry), () => Effect.sync(() => removed++))
    })
    const { get } = yield* start({ store: counting })
    return { get, removals: () => removed }
  })

  test("a rejected token is removed from the store", function*() {
    const { get, removals } = yield* countRemovals
    deepStrictEqual([valueOf(yield* get(yield* get())), removals()], ["token-2", 1])
  })

  test("a stored token is not removed when another one is rejected that expires later", function*() {
    const { get, removals } = yield* countRemovals
    yield* get()
    deepStrictEqual([valueOf(yield* get(yield* fullToken("another"))), removals()], [
      "token-2",
      0
    ])
  })
})

/** The entry of `fullToken("recorded")`, acquired at time 0, by the version that did not share repeated tokens. */
const recorded = {
  key: "store-api-token-v1:4e7276dcf2aacdfa5b5e21c50420ba09",
  entry: [
    "Cwts8D4DvQn6nEgRoVo3BJ2_6dd97PTg_Ilb1fX0pNdJjSdsQfyOP1ZACNJ2SAtD3u_VN32fL2_5tVAW3JWF_zUA8GIAHpcLegXs",
    "HJpzoVhIqVx5qBSbW98JHc1F8n02XEXE8SjbSEFPzHdkMQM1fx6AKuxqA1N18g4FvDW2zH5OvMJ98YRydB5FfZMrfD0Vb20YlrVF",
    "5keDNGhzfVRXAIb3zQ9DZNFSIPcnN7XZLT1TnOQ-SfY2QxpI381tDtM6USy-v0_uuP_Iwiji4lsoUO6TjCTGiDN1bIWMd9Fdl726",
    "tQAahU04UiBCzornTOve"
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

test("an entry of an earlier release is renewed with the same fields except for acquiredAt", function*() {
  const expected = yield* fullToken("recorded")
  // The endpoint rounds down what is left.
  const { puts, requests, start, store } = yield* fleet({
    answer: () =>
      Effect.map(
        fullToken("recorded", 4),
        (token) =>
          new AccessToken.AccessToken({
            ...token,
            expiresAt: DateTime.subtract(token.expiresAt, { seconds: 1 })
          })
      )
  })
  yield* store.put(recorded.key, recorded.entry, "60 minutes")
  const { get, renew } = yield* start()
  const read = yield* get()
  deepStrictEqual({ ...read }, { ...expected })
  yield* TestClock.adjust("56 minutes")
  for (let renewal = 0; renewal < 2; renewal++) {
    yield* renew(read)
    assert.strictEqual(yield* requests, 1, "the second finds the repeated token")
  }
  const [, [key, entry] = ["", ""]] = yield* puts
  const { open } = yield* seal.make(purpose)
  assert.strictEqual(key, recorded.key)
  assert.strictEqual(yield* open(recorded.entry), recorded.clearText, "control")
  const clearText = recorded.clearText.replace(`"acquiredAt":0`, `"acquiredAt":${56 * minute}`)
  assert.strictEqual(yield* open(entry), clearText)
})
