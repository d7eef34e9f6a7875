import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Clock, Effect } from "effect"
import { test } from "../../core/test/support/test.js"
import { inProcess, share, shop } from "./support/fleet.js"
import { fleetTests, othersIn, virtualTime } from "./support/fleetTests.js"
import { isLeftOut, sharedRedis } from "./support/redisServer.js"

const minute = 60_000

fleetTests({
  name: "6 providers in one process and one Redis",
  size: 6,
  fleet: Effect.succeed(inProcess),
  pace: virtualTime(4 * minute),
  life: 30 * minute
})

describe.skipIf(isLeftOut)("an endpoint that repeats its token", () => {
  const emptyRedis = sharedRedis()

  /** Members call every two minutes for two lifetimes of a token. Returns the number of token requests. */
  const requestsOf = (size: number) =>
    virtualTime(2 * minute)((calling) =>
      Effect.gen(function*() {
        const { settings, tokenRequests } = yield* shop({ repeatToken: true })
        const members = yield* share(inProcess, size, yield* emptyRedis, settings)
        const end = (yield* Clock.currentTimeMillis) + 120 * minute
        const outcomes = yield* calling(members, Effect.map(Clock.currentTimeMillis, (now) => now >= end))
        deepStrictEqual(othersIn(outcomes), [])
        return yield* tokenRequests
      })
    )

  test.live(
    "gets at most 3 token requests more from six providers than from one, and no call fails",
    function*() {
      const one = yield* requestsOf(1)
      assert.isAbove(one, 3, "the endpoint repeats its token")
      assert.isAtMost(yield* requestsOf(6), one + 3)
    },
    60_000
  )
})
