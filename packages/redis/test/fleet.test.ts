import { connect } from "node:net"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { RecordedRequest } from "@store-api/emulator"
import { RedisTokenStore } from "@store-api/redis"
import { all, allSucceed, lifetimes, providers, renewal, share, shop, tokens } from "@store-api/testing/fleet"
import { warnedOf } from "@store-api/testing/fleet"
import { leaksIn } from "@store-api/testing/leaksIn"
import { shown } from "@store-api/testing/member"
import { until } from "@store-api/testing/network"
import { isLeftOut, type RedisServer, redisServer, sharedRedis } from "@store-api/testing/redisServers"
import { test } from "@store-api/testing/test"
import { Effect, Option, Redacted, type Scope } from "effect"

const inProcess = providers((url) => RedisTokenStore.layer({ url: Redacted.make(url) }))

const limit = 60_000

const size = 6

const isRefused = ({ status }: RecordedRequest.RecordedRequest) => Option.contains(status, 401)

describe.skipIf(isLeftOut)("6 providers in one process and one Redis", { timeout: limit }, () => {
  const emptyRedis = sharedRedis()

  test.live("all members get a token at once: one token request, one token", function*() {
    const { tokenRequests, settings } = yield* shop()
    const members = yield* share(inProcess, size, yield* emptyRedis, settings)
    deepStrictEqual([yield* tokens(members), yield* tokenRequests], [1, 1])
    yield* warnedOf(members)
  })

  test.live("half of the members want another scope: one token request and one token for each scope", function*() {
    const made = yield* shop({ clientAuthentication: "client_secret_post" })
    const redis = yield* emptyRedis
    const wanting = (scope: string) => share(inProcess, size / 2, redis, { ...made.settings, scope })
    const members = yield* Effect.all([wanting("read"), wanting("write")])
    const held = yield* all(members.flat(), ({ get }) => get)
    assert.strictEqual(yield* made.tokenRequests, 2)
    const scopes = new Map((yield* made.tokens).map((token) => [shown(token), token.scope]))
    deepStrictEqual(held.map((token) => scopes.get(token)), ["read", "read", "read", "write", "write", "write"])
    yield* warnedOf(members.flat())
  })

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

  test.live("two tokens, of which Redis has one, are revoked at once: one token request, no call fails", function*() {
    const { requests, revoke, tokenRequests, settings } = yield* shop()
    const redis = yield* emptyRedis
    const half = share(inProcess, size / 2, redis, settings)
    const first = yield* half
    yield* tokens(first)
    // As a failover to a replica that has not received the token.
    yield* redis.command("FLUSHALL")
    const members = first.concat(yield* half)
    deepStrictEqual([yield* tokens(members), yield* tokenRequests, yield* revoke()], [2, 2, 2])
    // Several calls of each member at once.
    const statuses = yield* Effect.all(Effect.replicate(all(members, ({ call }) => call), 5), { concurrency: 5 })
    deepStrictEqual([new Set(statuses.flat()), yield* tokenRequests], [new Set([200]), 3])
    assert.isAbove((yield* requests).filter(isRefused).length, 5 * size, "some calls get a 401 for both tokens")
    yield* warnedOf(members)
  })

  test.live("calls continue for nine lifetimes, three of them without Redis: with it, one token request per lifetime", function*() {
    const { start: end, stop: fault, url } = yield* redisServer()
    yield* lifetimes((settings) => share(inProcess, size, { url }, settings), { fault, end, reason: "no connection" })
  })
})

/** Records all commands that Redis receives from now on. */
const monitor = ({ port }: RedisServer): Effect.Effect<() => string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<{ readonly end: () => void; readonly seen: () => string }>((resume) => {
        let seen = ""
        const socket = connect({ host: "127.0.0.1", port }, () => socket.write("MONITOR\r\n"))
        socket.on("data", (chunk: Buffer) => {
          if (seen === "") resume(Effect.succeed({ end: () => socket.destroy(), seen: () => seen }))
          seen += chunk.toString("latin1")
        })
      }),
      ({ end }) => Effect.sync(end)
    ),
    ({ seen }) => seen
  )

/** All keys and values in Redis. */
const contentOf = ({ command }: RedisServer) =>
  Effect.gen(function*() {
    const keys = yield* command("KEYS", "*") as Effect.Effect<Array<string>>
    const values = yield* Effect.forEach(keys, (key) => command("GET", key))
    return [...keys, ...values].join("\n")
  })

describe.skipIf(isLeftOut)("the content of Redis and the commands to it", { timeout: limit }, () => {
  test.live("show no token, no secret and no client id", function*() {
    const [redis, { tokenRequests, settings, tokens: allIssued }] = yield* Effect.all([redisServer(), shop()])
    const commands = yield* monitor(redis)
    const members = yield* share(inProcess, 3, redis, settings)
    yield* tokens(members)
    yield* renewal(members, tokenRequests)
    const issued = (yield* allIssued).map(({ value }) => Redacted.value(value))
    assert.lengthOf(issued, 2)
    const secrets = [settings.clientId, settings.clientSecret, ...issued]
    const seen = `${yield* contentOf(redis)}\n${commands()}`
    for (const word of ["GET", "SET", "EVAL", ":lease"]) assert.include(seen.toUpperCase(), word.toUpperCase())
    deepStrictEqual(leaksIn(seen, secrets), [])
    assert.notInclude(seen, new URL(settings.authUrl).host)
  })

  test.live("control: an unsealed secret is found in both", function*() {
    const redis = yield* redisServer()
    const secret = "an-invented~secret?of>31.letters"
    const store = yield* RedisTokenStore.make({ url: Redacted.make(redis.url) })
    const commands = yield* monitor(redis)
    yield* store.put("key", secret, "1 minute")
    deepStrictEqual(leaksIn(yield* contentOf(redis), [secret]), [secret])
    yield* until("the command is recorded", Effect.sync(() => leaksIn(commands(), [secret]).length === 1))
  })
})
