import { connect } from "node:net"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { RecordedRequest } from "@store-api/emulator"
import { RedisTokenStore } from "@store-api/redis"
import { all, allSucceed, lifetimes, providers, renewal, share, shop, tokens } from "@store-api/testing/fleet"
import { warnedOf } from "@store-api/testing/fleet"
import { leaksIn } from "@store-api/testing/leaksIn"
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
