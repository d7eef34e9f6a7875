import { connect } from "node:net"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { RedisTokenStore } from "@store-api/redis"
import { Clock, Effect, Redacted, type Scope } from "effect"
import { leaksIn } from "../../core/test/support/leaksIn.js"
import { test } from "../../core/test/support/test.js"
import { allSucceed, fleetTests, inProcess, renewal, share, shop, tokens, virtualTime } from "./support/fleet.js"
import { until } from "./support/network.js"
import { isLeftOut, type RedisServer, redisServer, sharedRedis } from "./support/servers.js"

const minute = 60_000

const limit = 60_000

fleetTests({
  name: "6 providers in one process and one Redis",
  size: 6,
  fleet: Effect.succeed(inProcess),
  pace: virtualTime(4 * minute),
  life: 30 * minute
})

describe.skipIf(isLeftOut)("an endpoint that repeats its token", { timeout: limit }, () => {
  const emptyRedis = sharedRedis()

  /** Members call every two minutes for two lifetimes of a token. Returns the number of token requests. */
  const requestsOf = (size: number) =>
    virtualTime(2 * minute)((calling) =>
      Effect.gen(function*() {
        const { settings, tokenRequests } = yield* shop({ repeatToken: true })
        const members = yield* share(inProcess, size, yield* emptyRedis, settings)
        const end = (yield* Clock.currentTimeMillis) + 120 * minute
        const outcomes = yield* calling(members, Effect.map(Clock.currentTimeMillis, (now) => now >= end))
        allSucceed(outcomes)
        return yield* tokenRequests
      })
    )

  test.live("gets at most 3 token requests more from six providers than from one, and no call fails", function*() {
    const one = yield* requestsOf(1)
    assert.isAbove(one, 3, "the endpoint repeats its token")
    assert.isAtMost(yield* requestsOf(6), one + 3)
  }, 60_000)
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
