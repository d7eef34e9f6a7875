import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { RecordedRequest } from "@store-api/emulator"
import { RedisTokenStore } from "@store-api/redis"
import { all, allSucceed, lifetimes, providers, share, shop, tokens, warnedOf } from "@store-api/testing/fleet"
import { isLeftOut, sharedRedis } from "@store-api/testing/redisServers"
import { test } from "@store-api/testing/test"
import { Option, Redacted } from "effect"

const inProcess = providers((url) => RedisTokenStore.layer({ url: Redacted.make(url) }))

const limit = 60_000

const size = 6

const isRefused = ({ status }: RecordedRequest.RecordedRequest) => Option.contains(status, 401)

describe.skipIf(isLeftOut)("6 providers in one process and one Redis", { timeout: limit }, () => {
  const emptyRedis = sharedRedis()

  test.live("the token is revoked while all members call: one token request, no call fails", function*() {
    const { tokenRequests, requests, revoke, settings } = yield* shop()
    const members = yield* share(inProcess, size, yield* emptyRedis, settings)
    yield* all(members, ({ begin }) => begin(500))
    yield* all(members, ({ call }) => call)
    deepStrictEqual([yield* tokenRequests, yield* revoke()], [1, 1])
    // Each member now has a response to a call that it started after the revocation.
    yield* all(members, ({ call }) => call)
    allSucceed(yield* all(members, ({ end }) => end))
    deepStrictEqual([yield* tokenRequests, yield* tokens(members)], [2, 1])
    assert.isAtLeast((yield* requests).filter(isRefused).length, size, "the API rejects each member's token once")
    yield* warnedOf(members)
  })

  // A member renews when at most a quarter of the token's lifetime remains. Members that acquire a token each do so
  // at almost the same time.
  test.live("calls continue for several lifetimes: one token request per lifetime, no call fails", function*() {
    const redis = yield* emptyRedis
    const held = yield* lifetimes((settings) => share(inProcess, size, redis, settings), 4)
    allSucceed(held.outcomes)
    deepStrictEqual([held.early, held.rejected], [0, 0])
    yield* warnedOf(held.members)
  })

  test.live("control: without a store, each of five members sends a token request per lifetime", function*() {
    assert.isAbove((yield* lifetimes((settings) => inProcess(5, settings), 10)).early, 4)
  })
})
