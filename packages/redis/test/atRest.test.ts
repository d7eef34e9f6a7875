import { connect } from "node:net"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Redacted, type Scope } from "effect"
import { leaksIn } from "../../core/test/support/leaksIn.js"
import { test } from "../../core/test/support/test.js"
import { inProcess, renewal, share, shop, tokens, until } from "./support/fleet.js"
import { isLeftOut, type RedisServer, redisServer } from "./support/redisServer.js"

const limit = 60_000

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

describe.skipIf(isLeftOut)("the content of Redis and the commands to it", () => {
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
  }, limit)

  test.live("control: an unsealed secret is found in both", function*() {
    const redis = yield* redisServer()
    const secret = "an-invented~secret?of>31.letters"
    const store = yield* RedisTokenStore.make({ url: Redacted.make(redis.url) })
    const commands = yield* monitor(redis)
    yield* store.put("key", secret, "1 minute")
    deepStrictEqual(leaksIn(yield* contentOf(redis), [secret]), [secret])
    yield* until("the command is recorded", Effect.sync(() => leaksIn(commands(), [secret]).length === 1))
  }, limit)
})
