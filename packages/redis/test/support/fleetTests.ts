import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault, type RecordedRequest } from "@store-api/emulator"
import { Effect, Fiber, Option, type Scope } from "effect"
import { shared } from "../../../platform-node/test/utils.js"
import { all, type Members, onVirtualTime, share, shop, type Start, tokens, until, warningsOf } from "./fleet.js"
import { isLeftOut, sharedRedis } from "./redisServer.js"

const limit = 120_000

/** Makes all members call the API repeatedly until `isOver`. Returns the outcomes of each member's calls. */
type Calling = (
  members: Members,
  isOver: Effect.Effect<boolean>
) => Effect.Effect<ReadonlyArray<ReadonlyArray<string>>>

/** Runs a test with a clock and a way to call the API. */
type Pace = <A, E, R>(use: (calling: Calling) => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Each member calls at this interval in milliseconds. */
export const realTime = (every: number): Pace => (use) =>
  use((members, isOver) =>
    all(members, ({ begin }) => begin(every)).pipe(
      Effect.zipRight(until("it is over", isOver)),
      Effect.zipRight(all(members, ({ end }) => end))
    )
  )

/**
 * All members call at once, at this interval in milliseconds of virtual time. A round ends when no member acquires a
 * token.
 */
export const virtualTime = (every: number): Pace => (use) =>
  onVirtualTime(({ advance }) =>
    use((members, isOver) =>
      Effect.gen(function*() {
        const outcomes: Array<ReadonlyArray<string>> = []
        while (!(yield* isOver)) {
          const calling = yield* Effect.fork(
            all(
              members,
              ({ call }) => Effect.match(call, { onFailure: ({ _tag }) => _tag as string, onSuccess: String })
            )
          )
          const isDone = Effect.zipRight(advance("10 millis"), Effect.map(Fiber.poll(calling), Option.isSome))
          yield* until("all have called", isDone)
          outcomes.push(yield* Fiber.join(calling))
          const isIdle = Effect.zipRight(advance("10 millis"), all(members, ({ isAcquiring }) => isAcquiring))
          yield* until(
            "no acquisition is in flight",
            Effect.map(isIdle, (each) => each.every((isAcquiring) => !isAcquiring))
          )
          yield* advance(every)
        }
        return outcomes
      })
    )
  )

/** Every outcome but 200. */
export const othersIn = (outcomes: ReadonlyArray<ReadonlyArray<string>>) => {
  for (const { length } of outcomes) assert.isAbove(length, 0)
  return outcomes.flat().filter((outcome) => outcome !== "200")
}

/** The times at which members acquired tokens, in order, once each token request has its response. */
const acquisitions = <E>(members: Members, tokenRequests: Effect.Effect<number, E>) => {
  const acquired = Effect.map(all(members, ({ acquired }) => acquired), (times) => times.flat())
  const isAll = Effect.zipWith(tokenRequests, acquired, (tokenRequests, times) => tokenRequests === times.length)
  return Effect.zipRight(
    until("each token request has its response", isAll),
    Effect.map(acquired, (times) => times.sort((one, other) => one - other))
  )
}

const isRefused = ({ status }: RecordedRequest.RecordedRequest) => Option.contains(status, 401)

/** Tests of a fleet that shares a token. Its members are providers in one process, or processes. */
export const fleetTests = (
  { fleet, life, name, pace, redis = sharedRedis, size }: {
    readonly name: string
    readonly size: number
    /** Acquired once for all tests. */
    readonly fleet: Effect.Effect<Start, never, Scope.Scope>
    /** Called once for all tests. */
    readonly redis?: () => Effect.Effect<{ readonly url: string }>
    /** For the calls during several token lifetimes. */
    readonly pace: Pace
    /** The lifetime of a token, in milliseconds. A renewal begins when at most a quarter of it remains. */
    readonly life: number
  }
) => {
  // The API accepts a token for longer than `life`, because a call can take long on a busy machine.
  const shortLived = Effect.tap(
    shop({ tokenLife: 1.5 * life }),
    ({ fail }) => fail(Fault.fields({ expires_in: life / 1000 }, { times: Infinity }))
  )

  /** The times between acquisitions that are shorter than the time before a renewal. */
  const early = (times: ReadonlyArray<number>) =>
    times.slice(1).map((time, index) => time - (times[index] ?? 0)).filter((gap) => gap < 0.75 * life)

  describe.skipIf(isLeftOut)(name, () => {
    const [start, emptyRedis] = [shared(fleet), redis()]

    it.scopedLive("all members get a token at once: one token request, one token", () =>
      Effect.gen(function*() {
        const { tokenRequests, settings } = yield* shop()
        const members = yield* share(yield* start, size, yield* emptyRedis, settings)
        assert.strictEqual(yield* tokens(members), 1)
        assert.strictEqual(yield* tokenRequests, 1)
        deepStrictEqual((yield* warningsOf(members)).flat(), [])
      }), limit)

    it.scopedLive(
      "the token is revoked while all members call: one token request, no call fails",
      () =>
        Effect.gen(function*() {
          const { tokenRequests, requests, revoke, settings } = yield* shop()
          const members = yield* share(yield* start, size, yield* emptyRedis, settings)
          yield* all(members, ({ begin }) => begin(500))
          yield* all(members, ({ call }) => call)
          assert.strictEqual(yield* tokenRequests, 1)
          assert.strictEqual(yield* revoke(), 1)
          // Each member now has a response to a call that it started after the revocation.
          yield* all(members, ({ call }) => call)
          deepStrictEqual(othersIn(yield* all(members, ({ end }) => end)), [])
          assert.strictEqual(yield* tokenRequests, 2)
          assert.strictEqual(yield* tokens(members), 1)
          assert.isAtLeast(
            (yield* requests).filter(isRefused).length,
            size,
            "the API rejects each member's token once"
          )
          deepStrictEqual((yield* warningsOf(members)).flat(), [])
        }),
      limit
    )

    // A member renews when at most a quarter of the token's lifetime remains, counted from `acquiredAt`. The next token
    // is acquired even later. With one request per lifetime, three quarters of a lifetime pass between any
    // two acquisitions, however slow the machine is. Members that acquire a token each do so at almost the same time.
    it.scopedLive(
      "calls continue for several lifetimes: one token request per lifetime, no call fails",
      () =>
        pace((calling) =>
          Effect.gen(function*() {
            const { tokenRequests, requests, settings } = yield* shortLived
            const members = yield* share(yield* start, size, yield* emptyRedis, settings)
            const outcomes = yield* calling(members, Effect.map(tokenRequests, (count) => count >= 4))
            deepStrictEqual(othersIn(outcomes), [])
            deepStrictEqual(early(yield* acquisitions(members, tokenRequests)), [])
            assert.lengthOf((yield* requests).filter(isRefused), 0)
            deepStrictEqual((yield* warningsOf(members)).flat(), [])
          })
        ),
      limit
    )

    it.scopedLive(
      "control: without a store, each of five members sends a token request per lifetime",
      () =>
        pace((calling) =>
          Effect.gen(function*() {
            const { tokenRequests, revoke, settings } = yield* shortLived
            const members = yield* (yield* start)(5, settings)
            assert.strictEqual(yield* tokens(members), 5)
            assert.strictEqual(yield* tokenRequests, 5)
            yield* calling(members, Effect.map(tokenRequests, (count) => count >= 10))
            assert.isNotEmpty(early(yield* acquisitions(members, tokenRequests)))
            const before = yield* tokenRequests
            yield* revoke()
            yield* all(members, ({ call }) => call)
            assert.isAtLeast((yield* tokenRequests) - before, 5)
          })
        ),
      limit
    )
  })
}
