/** A fleet while its Redis is unavailable. */
import { assert, describe } from "@effect/vitest"
import { RedisTokenStore } from "@store-api/redis"
import { all, connected, outage, providers, renewal, share, sharesOne, shop } from "@store-api/testing/fleet"
import { isLeftOut, type RedisServer, redisServer } from "@store-api/testing/redisServers"
import { test } from "@store-api/testing/test"
import { Effect, Redacted } from "effect"

const inProcess = providers((url) => RedisTokenStore.layer({ url: Redacted.make(url) }))

const size = 3

const limit = 60_000

interface Row {
  readonly name: string
  readonly reason: string
  readonly fault: (redis: RedisServer) => Effect.Effect<unknown>
  readonly end: (redis: RedisServer) => Effect.Effect<unknown>
  readonly when?: "from the start"
  /** The part of the URL before the host. */
  readonly user?: string
}

/** Redis already uses more than 1 byte, and by default it evicts nothing. */
const memory = (bytes: string) => ({ command }: RedisServer) => command("CONFIG", "SET", "maxmemory", bytes)

const replicas = (count: string) => ({ command }: RedisServer) =>
  command("CONFIG", "SET", "min-replicas-to-write", count)

const replicaOf = (...primary: ReadonlyArray<string>) => ({ command }: RedisServer) => command("REPLICAOF", ...primary)

const when = "from the start" as const

const faults: ReadonlyArray<Row> = [
  {
    name: "is unreachable from the start",
    reason: "ECONNREFUSED",
    fault: ({ stop }) => stop,
    end: ({ start }) => start,
    when
  },
  {
    name: "does not respond from the start",
    reason: "no connection",
    fault: ({ pause }) => pause,
    end: ({ resume }) => resume,
    when
  },
  {
    name: "does not respond for a while",
    reason: "no response in time",
    fault: ({ pause }) => pause,
    end: ({ resume }) => resume
  },
  {
    name: "refuses the password",
    reason: "WRONGPASS",
    user: "an-invented-user:an-invented-password@",
    fault: () => Effect.void,
    end: ({ command }) =>
      command("ACL", "SETUSER", "an-invented-user", "on", ">an-invented-password", "~*", "&*", "+@all"),
    when
  },
  { name: "is full", reason: "OOM", fault: memory("1"), end: memory("0") },
  { name: "lacks a replica", reason: "NOREPLICAS", fault: replicas("1"), end: replicas("0") },
  // No server listens on port 1.
  { name: "is a replica", reason: "READONLY", fault: replicaOf("127.0.0.1", "1"), end: replicaOf("NO", "ONE") }
]

describe.skipIf(isLeftOut).concurrent("a Redis that", { timeout: limit }, () => {
  test.live.each(faults)(
    "$name: each member acquires a token and warns once, without the password, until they can share one",
    function*({ end, fault, reason, user = "", when }) {
      const redis = yield* redisServer()
      const storeUrl = redis.url.replace("//", `//${user}`)
      const limited = reason === "no response in time" && { storeTimeout: "3 seconds" } as const
      yield* outage((settings) => inProcess(size, { ...settings, storeUrl, ...limited }), {
        reason,
        when,
        fault: fault(redis),
        end: end(redis)
      })
    }
  )

  test.live("closes the connections: the members get a token and connect again", function*() {
    const [redis, { tokenRequests, settings }] = yield* Effect.all([redisServer(), shop()])
    const members = yield* share(inProcess, size, redis, settings)
    assert.strictEqual(yield* redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"), size)
    yield* renewal(members, tokenRequests)
    yield* connected(members)
    // A member with its own token would accept the shared token of another member, so this deletes it.
    yield* redis.command("FLUSHALL")
    yield* sharesOne(members, tokenRequests)
    for (const { length } of yield* all(members, ({ warnings }) => warnings)) assert.isAtMost(length, 1)
  })
})
