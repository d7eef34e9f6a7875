/** A fleet while its Redis is unavailable. */
import { assert, describe } from "@effect/vitest"
import { RedisTokenStore } from "@store-api/redis"
import { all, connected, outage, providers, renewal, share, sharesOne, shop } from "@store-api/testing/fleet"
import type { Settings } from "@store-api/testing/member"
import { isLeftOut, type RedisServer, redisServer } from "@store-api/testing/redisServers"
import { test } from "@store-api/testing/test"
import { Effect, Redacted } from "effect"

const inProcess = providers((url) => RedisTokenStore.layer({ url: Redacted.make(url) }))

const size = 3

type Step = (redis: RedisServer) => Effect.Effect<unknown>

type Row = readonly [name: string, reason: string, fault: Step, end: Step, when?: "from the start"]

const pause: Step = ({ pause }) => pause
const resume: Step = ({ resume }) => resume

/** Sends this command. */
const sends = (...words: ReadonlyArray<string>): Step => ({ command }) => command(...words)

/** The part of a URL before the host, and the command that makes it right. */
const user = "an-invented-user:an-invented-password@"
const createsUser = sends("ACL", "SETUSER", "an-invented-user", "on", ">an-invented-password", "~*", "&*", "+@all")

const maxMemory = (bytes: string) => sends("CONFIG", "SET", "maxmemory", bytes)
const minReplicas = (count: string) => sends("CONFIG", "SET", "min-replicas-to-write", count)

const faults: ReadonlyArray<Row> = [
  ["is unreachable from the start", "ECONNREFUSED", ({ stop }) => stop, ({ start }) => start, "from the start"],
  ["does not respond from the start", "no connection", pause, resume, "from the start"],
  ["does not respond for a while", "no response in time", pause, resume],
  ["refuses the password", "WRONGPASS", () => Effect.void, createsUser, "from the start"],
  // Redis already uses more than 1 byte, and by default it evicts nothing.
  ["is full", "OOM", maxMemory("1"), maxMemory("0")],
  ["lacks a replica", "NOREPLICAS", minReplicas("1"), minReplicas("0")],
  // No server listens on port 1.
  ["is a replica", "READONLY", sends("REPLICAOF", "127.0.0.1", "1"), sends("REPLICAOF", "NO", "ONE")]
]

describe.skipIf(isLeftOut).concurrent("a Redis that", () => {
  test.live.each(faults)(
    "%s: each member acquires a token and warns once, without the password, until they can share one",
    function*([, reason, fault, end, when]) {
      const redis = yield* redisServer()
      const storeUrl = reason === "WRONGPASS" ? redis.url.replace("//", `//${user}`) : redis.url
      const start = (settings: Settings) => inProcess(size, { ...settings, storeUrl })
      yield* outage(start, { reason, when, fault: fault(redis), end: end(redis) })
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
