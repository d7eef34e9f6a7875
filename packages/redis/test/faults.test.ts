import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault } from "@store-api/emulator"
import { Effect, Fiber } from "effect"
import { test } from "../../core/test/support/test.js"
import {
  all,
  connected,
  heldShop,
  inProcess,
  type Members,
  reasonsOf,
  renewal,
  share,
  shop,
  tokens,
  until,
  warningsOf
} from "./support/fleet.js"
import { proxyTo } from "./support/proxy.js"
import { isLeftOut, type RedisServer, redisServer } from "./support/redisServer.js"

const size = 3

const limit = 60_000

/** With a working Redis, the members acquire one token together; without it, each acquires its own. */
const renews = (members: Members, tokenRequests: Effect.Effect<number>, requests: number) =>
  Effect.map(renewal(members, tokenRequests), (renewed) => deepStrictEqual(renewed, { requests, tokens: requests }))

type Change = (redis: RedisServer) => Effect.Effect<unknown>

const warned = (members: Members, times: number) =>
  Effect.map(
    warningsOf(members),
    (warnings) => deepStrictEqual(warnings.map(({ length }) => length), members.map(() => times))
  )

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

describe.skipIf(isLeftOut).concurrent("the provider that acquires the token for all", () => {
  test.live(
    "loses its connection while it holds the lease: the others wait until the lease ends, then one acquires",
    function*() {
      const [redis, { tokenRequests, fail, settings }] = yield* Effect.all([redisServer(), shop()])
      const leases = Effect.map(redis.command("KEYS", "*:lease"), (keys) => keys as Array<string>)
      const network = yield* proxyTo(redis.port)
      // From Redis, a provider whose packets are lost looks like one that crashed.
      const lost = { ...settings, storeTimeout: "3 seconds" } as const
      const [holder] = yield* share(inProcess, 1, { ...redis, url: `redis://127.0.0.1:${network.port}` }, lost)
      const others = yield* share(inProcess, size - 1, redis, settings)
      assert(holder !== undefined)
      yield* fail(Fault.hang())
      yield* Effect.fork(holder.get)
      yield* until("it sends a token request", Effect.map(tokenRequests, (count) => count === 1))
      const [lease = "", ...more] = yield* leases
      assert.isEmpty(more)
      yield* network.lose
      const getting = yield* Effect.fork(tokens(others))
      const takes = Effect.map(
        redis.command("INFO", "commandstats"),
        (stats) => Number(/cmdstat_set:calls=(\d+)/.exec(String(stats))?.[1] ?? 0)
      )
      yield* until(
        "all have tried to take the lease",
        Effect.map(takes, (count) => count >= size)
      )
      assert.strictEqual(yield* tokenRequests, 1)
      // For Redis, the lease has now expired.
      assert.strictEqual(yield* redis.command("PEXPIRE", lease, "0"), 1)
      assert.strictEqual(yield* Fiber.join(getting), 1)
      assert.strictEqual(yield* tokenRequests, 2)
      assert.isEmpty(yield* leases)
      yield* warned(others, 0)
    },
    limit
  )

  test.live(
    "is slow: it keeps the lease until the response arrives, and the others wait",
    function*() {
      const [redis, { tokenRequests, hold, release, settings }] = yield* Effect.all([redisServer(), heldShop])
      const patient = { ...settings, attemptTimeout: "1 minute", deadline: "1 minute", lease: "3 seconds" } as const
      const members = yield* share(inProcess, 3, redis, patient)
      yield* hold
      const getting = yield* Effect.fork(tokens(members))
      yield* until("one member sends a token request", Effect.map(tokenRequests, (count) => count === 1))
      // Longer than the lease.
      yield* Effect.sleep("3600 millis")
      yield* release
      assert.strictEqual(yield* Fiber.join(getting), 1)
      assert.strictEqual(yield* tokenRequests, 1)
    },
    limit
  )
})

describe.skipIf(isLeftOut).concurrent("a Redis that is unavailable", () => {
  /** Redis already uses more than 1 byte, and by default it evicts nothing. */
  const memory = (bytes: string) => ({ command }: RedisServer) => command("CONFIG", "SET", "maxmemory", bytes)

  // No server listens on port 1.
  it.scopedLive.each<[name: string, fault: Change, end: Change, reason: string, moment?: "at the start"]>([
    ["is unreachable at the start", ({ stop }) => stop, ({ start }) => start, "ECONNREFUSED", "at the start"],
    ["does not respond at the start", ({ pause }) => pause, ({ resume }) => resume, "no connection", "at the start"],
    ["does not respond for a while", ({ pause }) => pause, ({ resume }) => resume, "no response in time"],
    ["is full", memory("1"), memory("0"), "OOM"],
    [
      "is a read-only replica",
      ({ command }) => command("REPLICAOF", "127.0.0.1", "1"),
      ({ command }) => command("REPLICAOF", "NO", "ONE"),
      "READONLY"
    ]
  ])(
    "%s: each member acquires a token and warns once, until they can share one",
    ([, fault, end, reason, moment]) =>
      Effect.gen(function*() {
        const [redis, { tokenRequests, settings }] = yield* Effect.all([redisServer(), shop()])
        if (moment !== undefined) yield* fault(redis)
        const bounded = reason === "no response in time"
          ? { ...settings, storeTimeout: "3 seconds" } as const
          : settings
        const members = yield* inProcess(size, { ...bounded, redisUrl: redis.url })
        if (moment === undefined) {
          yield* connected(members)
          yield* renews(members, tokenRequests, 1)
          yield* fault(redis)
        }
        yield* renews(members, tokenRequests, size)
        yield* renews(members, tokenRequests, size)
        yield* warnedOnce(members, reason)
        yield* end(redis)
        yield* connected(members)
        yield* renews(members, tokenRequests, 1)
        yield* warnedOnce(members, reason)
      }),
    limit
  )

  test.live(
    "stops while members wait for a shared token, starts and stops again: one warning per outage",
    function*() {
      const [redis, { tokenRequests, hold, release, settings }] = yield* Effect.all([redisServer(), heldShop])
      const members = yield* share(inProcess, size, redis, settings)
      yield* renews(members, tokenRequests, 1)
      yield* hold
      const renewing = yield* Effect.fork(renews(members, tokenRequests, size))
      yield* until("one member sends a token request", Effect.map(tokenRequests, (count) => count === 2))
      yield* redis.stop
      yield* until("the others send token requests too", Effect.map(tokenRequests, (count) => count === 1 + size))
      yield* release
      yield* Fiber.join(renewing)
      yield* warned(members, 1)

      yield* redis.start
      yield* connected(members)
      yield* renews(members, tokenRequests, 1)
      yield* renews(members, tokenRequests, 1)
      yield* warned(members, 1)

      yield* redis.stop
      yield* renews(members, tokenRequests, size)
      yield* renews(members, tokenRequests, size)
      yield* warned(members, 2)
    },
    limit
  )

  test.live("closes the connections: the members get a token and connect again", function*() {
    const [redis, { tokenRequests, settings }] = yield* Effect.all([redisServer(), shop()])
    const members = yield* share(inProcess, size, redis, settings)
    assert.strictEqual(yield* redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"), size)
    yield* renewal(members, tokenRequests)
    yield* connected(members)
    // A member with its own token would accept the shared token of another member, so this deletes it.
    yield* redis.command("FLUSHALL")
    yield* renews(members, tokenRequests, 1)
    for (const { length } of yield* warningsOf(members)) assert.isAtMost(length, 1)
  }, limit)

  test.live(
    "is stopped during an outage of the endpoint: members without a token fail with a typed error, those with one work",
    function*() {
      const [redis, { tokenRequests, clearFaults, fail, settings }] = yield* Effect.all([redisServer(), shop()])
      const members = yield* share(inProcess, size, redis, settings)
      const [withToken, ...without] = members
      assert(withToken !== undefined)
      yield* withToken.get
      yield* redis.command("FLUSHALL")
      yield* redis.stop
      yield* fail(Fault.status(503, { times: Infinity }))
      const errors = yield* all(without, ({ get }) => Effect.flip(get))
      deepStrictEqual(errors.map(({ _tag }) => _tag), without.map(() => "TokenRefusedError"))
      assert.strictEqual(yield* withToken.call, 200)
      yield* clearFaults
      yield* renews(members, tokenRequests, size)
    },
    limit
  )
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
