import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import { test } from "../../core/test/support/test.js"
import {
  connected,
  inProcess,
  type Members,
  reasonsOf,
  renewal,
  share,
  shop,
  tokens,
  warningsOf
} from "./support/fleet.js"
import { isLeftOut, type RedisServer, redisServer } from "./support/redisServer.js"

const size = 3

const limit = 60_000

const renews = (members: Members, tokenRequests: Effect.Effect<number>, requests: number) =>
  Effect.map(renewal(members, tokenRequests), (renewed) => {
    deepStrictEqual([renewed.requests, renewed.tokens], [requests, requests])
  })

/** One warning each, for this reason. */
const warnedOnce = (members: Members, reason: string) =>
  Effect.map(reasonsOf(members), (reasons) => deepStrictEqual(reasons, members.map(() => [reason])))

/** The only entry of a store. */
const onlyKey = (redis: RedisServer) =>
  Effect.map(redis.command("KEYS", "*"), (keys) => {
    const [key, ...others] = keys as Array<string>
    assert.isEmpty(others)
    assert(key !== undefined)
    return key
  })

describe.skipIf(isLeftOut).concurrent("a Redis that", () => {
  test.live(
    "refuses the password: each member acquires a token and warns once, without the password",
    function*() {
      const [redis, { tokenRequests, settings }] = yield* Effect.all([
        redisServer([], "an-invented-password"),
        shop()
      ])
      const at = (password: string) => ({ ...settings, redisUrl: `redis://:${password}@127.0.0.1:${redis.port}` })
      const wrong = yield* inProcess(size, at("an-invented-other"))
      yield* renews(wrong, tokenRequests, size)
      yield* renews(wrong, tokenRequests, size)
      yield* warnedOnce(wrong, "WRONGPASS")
      assert.notInclude(JSON.stringify(yield* warningsOf(wrong)), "invented")

      const without = yield* inProcess(size, { ...settings, redisUrl: redis.url })
      yield* renews(without, tokenRequests, size)
      yield* warnedOnce(without, "NOAUTH")

      const right = yield* inProcess(size, at("an-invented-password"))
      yield* connected(right)
      yield* renews(right, tokenRequests, 1)
    },
    limit
  )

  test.live(
    "is full: each member acquires a token and warns once, until there is memory for a shared one",
    function*() {
      const [redis, { tokenRequests, settings }] = yield* Effect.all([redisServer(), shop()])
      const members = yield* share(inProcess, size, redis, settings)
      yield* renews(members, tokenRequests, 1)
      const key = yield* onlyKey(redis)
      // Redis already uses more. By default it evicts nothing.
      yield* redis.command("CONFIG", "SET", "maxmemory", "1")
      assert.isAbove(Number(yield* redis.command("STRLEN", key)), 0, "it can be read")
      yield* renews(members, tokenRequests, size)
      yield* renews(members, tokenRequests, size)
      yield* warnedOnce(members, "OOM")
      yield* redis.command("CONFIG", "SET", "maxmemory", "0")
      yield* renews(members, tokenRequests, 1)
      yield* warnedOnce(members, "OOM")
    },
    limit
  )

  test.live("is a read-only replica: each member acquires a token and warns once", function*() {
    const [redis, { tokenRequests, settings }] = yield* Effect.all([redisServer(), shop()])
    const members = yield* share(inProcess, size, redis, settings)
    yield* renews(members, tokenRequests, 1)
    // No server listens on port 1.
    yield* redis.command("REPLICAOF", "127.0.0.1", "1")
    yield* renews(members, tokenRequests, size)
    yield* renews(members, tokenRequests, size)
    yield* warnedOnce(members, "READONLY")
    yield* redis.command("REPLICAOF", "NO", "ONE")
    yield* renews(members, tokenRequests, 1)
  }, limit)

  test.live(
    "holds an unreadable entry: one token request replaces it",
    function*() {
      const [redis, { tokenRequests, settings }] = yield* Effect.all([redisServer(), shop()])
      const { command } = redis
      /**
       * Starts members without a token. Returns the number of different tokens, and the reasons of their warnings.
       */
      const started = Effect.flatMap(
        share(inProcess, size, redis, settings),
        (members) => Effect.zip(tokens(members), reasonsOf(members))
      ).pipe(Effect.scoped)
      const oneWithoutWarning: [number, Array<Array<string>>] = [1, Array.from({ length: size }, () => [])]
      deepStrictEqual(yield* started, oneWithoutWarning)
      const key = yield* onlyKey(redis)
      const entry = String(yield* command("GET", key))
      const last = entry.endsWith("A") ? "B" : "A"
      const broken = ["", "no entry", "AAAA", entry.slice(0, 40), entry.slice(0, -5) + last + entry.slice(-4)]

      deepStrictEqual(yield* started, oneWithoutWarning)
      assert.strictEqual(yield* tokenRequests, 1, "control: with a good entry there is no token request")
      for (const [index, text] of broken.entries()) {
        yield* command("SET", key, text)
        deepStrictEqual(yield* started, oneWithoutWarning)
        assert.strictEqual(yield* tokenRequests, 2 + index)
        assert.notStrictEqual(yield* command("GET", key), text)
        assert.isAbove(Number(yield* command("PTTL", key)), 0)
      }

      // A value of another type is not an entry either.
      yield* command("DEL", key)
      yield* command("RPUSH", key, "of a list")
      deepStrictEqual(yield* started, oneWithoutWarning)
      assert.strictEqual(yield* tokenRequests, 2 + broken.length)
      assert.strictEqual(yield* command("TYPE", key), "string")
    },
    limit
  )
})
