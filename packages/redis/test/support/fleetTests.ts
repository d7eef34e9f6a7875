import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault, type RecordedRequest } from "@store-api/emulator"
import { Effect, Fiber, Option, type Scope } from "effect"
import { shared } from "../../../platform-node/test/support/shared.js"
import { all, type Members, onVirtualTime, share, shop, type Start, tokens, until, warningsOf } from "./fleet.js"
import { isLeftOut, sharedRedis } from "./redisServer.js"

const limit = 120_000

/** Lets all members call the API again and again until it is over; the outcomes of each member's calls. */
type Calling = (
  members: Members,
  isOver: Effect.Effect<boolean>
) => Effect.Effect<ReadonlyArray<ReadonlyArray<string>>>

/** The clock of a test, and how its members call. */
type Pace = <A, E, R>(use: (calling: Calling) => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** A call of each member every so many milliseconds. */
export const realTime = (every: number): Pace => (use) =>
  use((members, isOver) =>
    all(members, ({ begin }) => begin(every)).pipe(
      Effect.zipRight(until("it is over", isOver)),
      Effect.zipRight(all(members, ({ end }) => end))
    )
  )

/**
 * A call of each member at once, every so many milliseconds of virtual time. A round ends when no acquisition is in
 * flight.
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
          yield* until("none acquires", Effect.map(isIdle, (each) => each.every((isAcquiring) => !isAcquiring)))
          yield* advance(every)
        }
        return outcomes
      })
    )
  )

/** Every outcome but 200. */
const othersIn = (outcomes: ReadonlyArray<ReadonlyArray<string>>) => {
  for (const { length } of outcomes) assert.isAbove(length, 0)
  return outcomes.flat().filter((outcome) => outcome !== "200")
}

/** When tokens were acquired, by all members in one order, once each token request has its response. */
const acquisitions = <E>(members: Members, asked: Effect.Effect<number, E>) => {
  const acquired = Effect.map(all(members, ({ acquired }) => acquired), (times) => times.flat())
  const isAll = Effect.zipWith(asked, acquired, (asked, times) => asked === times.length)
  return Effect.zipRight(
    until("each token request has its response", isAll),
    Effect.map(acquired, (times) => times.sort((one, other) => one - other))
  )
}

const isRefused = ({ status }: RecordedRequest.RecordedRequest) => Option.contains(status, 401)

/** What every fleet over one Redis does, whatever its members are. */
export const fleetTests = (
  { fleet, life, name, pace, size }: {
    readonly name: string
    readonly size: number
    /** Acquired once for all tests. */
    readonly fleet: Effect.Effect<Start, never, Scope.Scope>
    /** Of the calls that go on for several lifetimes of a token. */
    readonly pace: Pace
    /** The lifetime of a token, in milliseconds. A renewal begins when at most a quarter of it remains. */
    readonly life: number
  }
) => {
  // The API accepts a token for longer than `life`: on a busy machine a call can be on its way for a while.
  const shortLived = Effect.tap(
    shop({ tokenLife: 1.5 * life }),
    ({ fail }) => fail(Fault.fields({ expires_in: life / 1000 }, { times: Infinity }))
  )

  /** The times between acquisitions that are shorter than the time before a renewal. */
  const early = (times: ReadonlyArray<number>) =>
    times.slice(1).map((time, index) => time - (times[index] ?? 0)).filter((gap) => gap < 0.75 * life)

  describe.skipIf(isLeftOut)(`${name} and one Redis`, () => {
    const [start, emptyRedis] = [shared(fleet), sharedRedis()]

    it.scopedLive("all ask at once: one token request, one token", () =>
      Effect.gen(function*() {
        const { asked, settings } = yield* shop()
        const members = yield* share(yield* start, size, yield* emptyRedis, settings)
        assert.strictEqual(yield* tokens(members), 1)
        assert.strictEqual(yield* asked, 1)
        deepStrictEqual((yield* warningsOf(members)).flat(), [])
      }), limit)

    it.scopedLive(
      "the token is revoked under the calls of all: one token request, no call fails",
      () =>
        Effect.gen(function*() {
          const { asked, requests, revoke, settings } = yield* shop()
          const members = yield* share(yield* start, size, yield* emptyRedis, settings)
          yield* all(members, ({ begin }) => begin(500))
          yield* all(members, ({ call }) => call)
          assert.strictEqual(yield* asked, 1)
          assert.strictEqual(yield* revoke(), 1)
          // Each has a response to a call that it began after the revocation.
          yield* all(members, ({ call }) => call)
          deepStrictEqual(othersIn(yield* all(members, ({ end }) => end)), [])
          assert.strictEqual(yield* asked, 2)
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
    // is acquired later still. In a fleet that asks once per lifetime, three quarters of a lifetime pass between any
    // two acquisitions, however slow the machine is. Members that acquire a token each do so at almost the same time.
    it.scopedLive(
      "calls go on for several lifetimes: one token request per lifetime, no call fails",
      () =>
        pace((calling) =>
          Effect.gen(function*() {
            const { asked, requests, settings } = yield* shortLived
            const members = yield* share(yield* start, size, yield* emptyRedis, settings)
            const outcomes = yield* calling(members, Effect.map(asked, (count) => count >= 4))
            deepStrictEqual(othersIn(outcomes), [])
            deepStrictEqual(early(yield* acquisitions(members, asked)), [])
            assert.lengthOf((yield* requests).filter(isRefused), 0)
            deepStrictEqual((yield* warningsOf(members)).flat(), [])
          })
        ),
      limit
    )

    it.scopedLive(
      "control: without a store, each of five sends a token request per lifetime",
      () =>
        pace((calling) =>
          Effect.gen(function*() {
            const { asked, revoke, settings } = yield* shortLived
            const members = yield* (yield* start)(5, settings)
            assert.strictEqual(yield* tokens(members), 5)
            assert.strictEqual(yield* asked, 5)
            yield* calling(members, Effect.map(asked, (count) => count >= 10))
            assert.isNotEmpty(early(yield* acquisitions(members, asked)))
            const before = yield* asked
            yield* revoke()
            yield* all(members, ({ call }) => call)
            assert.isAtLeast((yield* asked) - before, 5)
          })
        ),
      limit
    )
  })
}
