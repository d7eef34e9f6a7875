import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { RedisTokenStore } from "@store-api/redis"
import { all, allSucceed, lifetimes, providers, share, shop, tokens, warnedOf } from "@store-api/testing/fleet"
import { shown } from "@store-api/testing/member"
import { isLeftOut, redisServer, sharedRedis } from "@store-api/testing/redisServers"
import { test } from "@store-api/testing/test"
import { Effect, Option, Redacted } from "effect"

const inProcess = providers((url) => RedisTokenStore.layer({ url: Redacted.make(url) }))

describe.skipIf(isLeftOut)("6 providers in one process and one Redis", { timeout: 60_000 }, () => {
  const emptyRedis = sharedRedis()

  test.live("half of the members want another scope: one token request and one token for each scope", function*() {
    const made = yield* shop({ clientAuthentication: "client_secret_post" })
    const redis = yield* emptyRedis
    const wanting = (scope: string) => share(inProcess, 3, redis, { ...made.settings, scope })
    const members = yield* Effect.all([wanting("read"), wanting("write")])
    const held = yield* all(members.flat(), ({ get }) => get)
    assert.strictEqual(yield* made.tokenRequests, 2)
    const scopes = new Map((yield* made.tokens).map((token) => [shown(token), token.scope]))
    deepStrictEqual(held.map((token) => scopes.get(token)), ["read", "read", "read", "write", "write", "write"])
    yield* warnedOf(members.flat())
  })

  test.live("the token is revoked while all members call: one token request, no call fails", function*() {
    const { tokenRequests, requests, revoke, settings } = yield* shop()
    const members = yield* share(inProcess, 6, yield* emptyRedis, settings)
    yield* all(members, ({ begin }) => begin(500))
    yield* all(members, ({ call }) => call)
    deepStrictEqual([yield* tokenRequests, yield* revoke()], [1, 1])
    // Each member now has a response to a call that it started after the revocation.
    yield* all(members, ({ call }) => call)
    allSucceed(yield* all(members, ({ end }) => end))
    deepStrictEqual([yield* tokenRequests, yield* tokens(members)], [2, 1])
    const refused = (yield* requests).filter(({ status }) => Option.contains(status, 401))
    assert.isAtLeast(refused.length, 6, "the API rejects each member's token once")
    yield* warnedOf(members)
  })

  test.live("calls continue for nine lifetimes, three of them without Redis: with it, one token request per lifetime", function*() {
    const { start: end, stop: fault, url } = yield* redisServer()
    yield* lifetimes((settings) => share(inProcess, 6, { url }, settings), { fault, end, reason: "no connection" })
  })
})
