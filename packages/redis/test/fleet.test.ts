import { assert, describe, layer } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault, type RecordedRequest } from "@store-api/emulator"
import { Effect, Option } from "effect"
import {
  all,
  Fleet,
  layer as fleetLayer,
  type Members,
  type Settings,
  share,
  shop,
  tokensOf,
  until,
  warningsOf
} from "./support/fleet.js"
import { isLeftOut, redisServer } from "./support/redisServer.js"

const size = 50

/** In milliseconds, as the endpoint tells it. A renewal begins when a quarter of it is left. */
const life = 8000

/** The API takes a token for longer than that: where the machine is busy, a call may be under way for a while. */
const shortLived = Effect.tap(
  shop({ tokenLife: 1.5 * life }),
  ({ fail }) => fail(Fault.fields({ expires_in: life / 1000 }, { times: Infinity }))
)

/** Each has a call every so often, in milliseconds: all together, fifty a second. */
const every = 1000

const limit = 180_000

const sharing = (members: Members, settings: Settings) =>
  Effect.flatMap(redisServer(), (redis) => share(members, redis, settings))

/** The end of the calls: how many the laziest process had, and what came of them besides 200. */
const end = (members: Members) =>
  Effect.map(all(members, "end"), (answers) => ({
    fewest: Math.min(...answers.map(({ value }) => value.calls)),
    others: answers.flatMap(({ value }) => value.others)
  }))

/** When tokens were acquired, those of all processes in one order, as soon as each request has had its answer. */
const acquisitions = <E>(members: Members, asked: Effect.Effect<number, E>) => {
  const bought = Effect.map(all(members, "bought"), (answers) => answers.flatMap(({ value }) => value))
  const isAll = Effect.zipWith(asked, bought, (asked, bought) => asked === bought.length)
  return Effect.zipRight(
    until("each request has had its answer", isAll),
    Effect.map(bought, (times) => times.sort((one, other) => one - other))
  )
}

const isRefused = ({ status }: RecordedRequest.RecordedRequest) => Option.contains(status, 401)

/** The times between acquisitions that are shorter than a token is kept before it is renewed. */
const early = (times: ReadonlyArray<number>) =>
  times.slice(1).map((time, index) => time - (times[index] ?? 0)).filter((gap) => gap < 0.75 * life)

describe.skipIf(isLeftOut)(`${size} processes and one Redis`, () => {
  layer(fleetLayer(size), { timeout: limit, excludeTestServices: true })((it) => {
    it.scoped("all ask at once: one token request, one and the same token", () =>
      Effect.gen(function*() {
        const members = yield* Fleet
        const { asked, settings } = yield* shop()
        yield* sharing(members, settings)
        assert.lengthOf(tokensOf(yield* all(members, "get")), 1)
        assert.strictEqual(yield* asked, 1)
        deepStrictEqual((yield* warningsOf(members)).flat(), [])
      }), limit)

    it.scoped(
      "the token is revoked under the calls of all: one token request, no call fails",
      () =>
        Effect.gen(function*() {
          const members = yield* Fleet
          const { asked, requests, revoke, settings } = yield* shop()
          yield* sharing(members, settings)
          yield* all(members, "begin", { every })
          yield* all(members, "call")
          assert.strictEqual(yield* asked, 1)
          assert.strictEqual(yield* revoke(), 1)
          // Each has an answer to a call that it began after the revocation.
          yield* all(members, "call")
          const { fewest, others } = yield* end(members)
          assert.isAbove(fewest, 0)
          deepStrictEqual(others, [])
          assert.strictEqual(yield* asked, 2)
          assert.lengthOf(tokensOf(yield* all(members, "get")), 1)
          assert.isAtLeast((yield* requests).filter(isRefused).length, size, "each had to learn of it")
          deepStrictEqual((yield* warningsOf(members)).flat(), [])
        }),
      limit
    )

    // A process renews a token when a quarter of its life is left, counted from `acquiredAt`, and `acquiredAt` of the next
    // is later still. So where a fleet asks once a life no two tokens are acquired within three quarters of one, however
    // slow the machine is; processes that buy a token each acquire theirs at almost the same time.
    it.scoped(
      "calls go on for several lives of a token: one request a life, no call fails",
      () =>
        Effect.gen(function*() {
          const members = yield* Fleet
          const { asked, requests, settings } = yield* shortLived
          yield* sharing(members, settings)
          yield* all(members, "begin", { every })
          yield* until("the token was renewed three times", Effect.map(asked, (count) => count >= 4))
          const { fewest, others } = yield* end(members)
          assert.isAbove(fewest, 0)
          deepStrictEqual(others, [])
          deepStrictEqual(early(yield* acquisitions(members, asked)), [])
          assert.lengthOf((yield* requests).filter(isRefused), 0)
          deepStrictEqual((yield* warningsOf(members)).flat(), [])
        }),
      limit
    )

    it.scoped(
      "control: without a store, a token request and a token for each of five, in each life",
      () =>
        Effect.gen(function*() {
          const members = (yield* Fleet).slice(0, 5)
          const { asked, revoke, settings } = yield* shortLived
          yield* all(members, "open", settings)
          assert.lengthOf(tokensOf(yield* all(members, "get")), 5)
          assert.strictEqual(yield* asked, 5)
          yield* all(members, "begin", { every })
          yield* until("each has renewed its token", Effect.map(asked, (count) => count >= 10))
          yield* end(members)
          assert.isNotEmpty(early(yield* acquisitions(members, asked)))
          const before = yield* asked
          yield* revoke()
          yield* all(members, "call")
          assert.isAtLeast((yield* asked) - before, 5)
        }),
      limit
    )
  })
})
