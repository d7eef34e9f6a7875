import { assert, describe, layer } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import {
  all,
  connected,
  Fleet,
  layer as fleetLayer,
  type Members,
  renewal,
  share,
  shop,
  tokensOf,
  warningsOf
} from "./support/fleet.js"
import { isLeftOut, type RedisServer, redisServer } from "./support/redisServer.js"

const size = 4

const limit = 120_000

const renews = (members: Members, asked: Effect.Effect<number>, requests: number) =>
  Effect.map(renewal(members, asked), (renewed) => {
    deepStrictEqual([renewed.requests, renewed.tokens], [requests, requests])
  })

/** One warning each, and this reason for it. */
const warnedOnce = (members: Members, reason: string) =>
  Effect.map(warningsOf(members), (warnings) =>
    deepStrictEqual(
      warnings.map((of) => of.map(({ annotations }) => annotations["reason"])),
      members.map(() => [reason])
    ))

/** The only entry of a store. */
const onlyKey = (redis: RedisServer) =>
  Effect.map(redis.command("KEYS", "*"), (keys) => {
    const [key, ...others] = keys as Array<string>
    assert.isEmpty(others)
    assert(key !== undefined)
    return key
  })

describe.skipIf(isLeftOut)("a Redis that", () => {
  layer(fleetLayer(size), { timeout: limit, excludeTestServices: true })((it) => {
    it.scoped(
      "refuses the password: a token each, one warning each, without the password",
      () =>
        Effect.gen(function*() {
          const members = yield* Fleet
          const [redis, { asked, settings }] = yield* Effect.all([redisServer([], "an-invented-password"), shop()])
          const at = (password: string) => ({
            ...settings,
            redisUrl: `redis://:${password}@127.0.0.1:${redis.port}`
          })
          yield* all(members, "open", at("an-invented-other"))
          yield* renews(members, asked, size)
          yield* renews(members, asked, size)
          yield* warnedOnce(members, "WRONGPASS")
          assert.notInclude(JSON.stringify(yield* warningsOf(members)), "invented")

          // And none at all.
          yield* all(members, "open", { ...settings, redisUrl: redis.url })
          yield* renews(members, asked, size)
          yield* warnedOnce(members, "NOAUTH")

          yield* all(members, "open", at("an-invented-password"))
          yield* connected(members)
          yield* renews(members, asked, 1)
        }),
      limit
    )

    it.scoped(
      "is full: a token each, one warning each; together as soon as it has",
      () =>
        Effect.gen(function*() {
          const members = yield* Fleet
          const [redis, { asked, settings }] = yield* Effect.all([
            redisServer(["--maxmemory-policy", "noeviction"]),
            shop()
          ])
          yield* share(members, redis, settings)
          yield* renews(members, asked, 1)
          const key = yield* onlyKey(redis)
          // Less than it needs already.
          yield* redis.command("CONFIG", "SET", "maxmemory", "1")
          assert.isAbove(Number(yield* redis.command("STRLEN", key)), 0, "it can be read")
          yield* renews(members, asked, size)
          yield* renews(members, asked, size)
          yield* warnedOnce(members, "OOM")
          yield* redis.command("CONFIG", "SET", "maxmemory", "0")
          yield* renews(members, asked, 1)
          yield* warnedOnce(members, "OOM")
        }),
      limit
    )

    it.scoped("can only be read, as a replica: a token each, one warning each", () =>
      Effect.gen(function*() {
        const members = yield* Fleet
        const [redis, { asked, settings }] = yield* Effect.all([redisServer(), shop()])
        yield* share(members, redis, settings)
        yield* renews(members, asked, 1)
        // Of a server that is not there: port 1.
        yield* redis.command("REPLICAOF", "127.0.0.1", "1")
        yield* renews(members, asked, size)
        yield* renews(members, asked, size)
        yield* warnedOnce(members, "READONLY")
        yield* redis.command("REPLICAOF", "NO", "ONE")
        yield* renews(members, asked, 1)
      }), limit)

    it.scoped("holds what is no entry: one token request, and there is a good one again", () =>
      Effect.gen(function*() {
        const members = yield* Fleet
        const [redis, { asked, settings }] = yield* Effect.all([redisServer(), shop()])
        const { command } = redis
        yield* share(members, redis, settings)
        yield* renews(members, asked, 1)
        const key = yield* onlyKey(redis)
        const entry = String(yield* command("GET", key))
        const last = entry.endsWith("A") ? "B" : "A"
        const broken = ["", "no entry", "AAAA", entry.slice(0, 40), entry.slice(0, -5) + last + entry.slice(-4)]

        // The control: with the good entry nobody asks.
        yield* share(members, redis, settings)
        assert.lengthOf(tokensOf(yield* all(members, "get")), 1)
        assert.strictEqual(yield* asked, 1)
        for (const [index, text] of broken.entries()) {
          yield* command("SET", key, text)
          yield* share(members, redis, settings)
          assert.lengthOf(tokensOf(yield* all(members, "get")), 1)
          assert.strictEqual(yield* asked, 2 + index)
          assert.notStrictEqual(yield* command("GET", key), text)
          assert.isAbove(Number(yield* command("PTTL", key)), 0)
          deepStrictEqual((yield* warningsOf(members)).flat(), [])
        }
      }), limit)

    it.scoped(
      "holds something of another type under that name: that is no entry either",
      () =>
        Effect.gen(function*() {
          const members = yield* Fleet
          const [redis, { asked, settings }] = yield* Effect.all([redisServer(), shop()])
          yield* share(members, redis, settings)
          yield* renews(members, asked, 1)
          const key = yield* onlyKey(redis)
          yield* redis.command("DEL", key)
          yield* redis.command("RPUSH", key, "of a list")
          yield* share(members, redis, settings)
          assert.lengthOf(tokensOf(yield* all(members, "get")), 1)
          assert.strictEqual(yield* asked, 2)
          assert.strictEqual(yield* redis.command("TYPE", key), "string")
          deepStrictEqual((yield* warningsOf(members)).flat(), [])
        }),
      limit
    )
  })
})
