/** Fleets over one Redis, also while it is unavailable. */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { RedisTokenStore } from "@store-api/redis"
import {
  all,
  allSucceed,
  connected,
  expectOneRenewal,
  outage,
  providers,
  renewal,
  share,
  shop,
  testLifetimes,
  tokens,
  warnedOf
} from "@store-api/testing/fleet"
import { type Settings, shown } from "@store-api/testing/member"
import {
  isLeftOut,
  type RedisServer,
  redisServer,
  sharedRedis
} from "@store-api/testing/redisServers"
import { test } from "@store-api/testing/test"
import { Effect, Option, Redacted } from "effect"

const inProcess = providers((url) => RedisTokenStore.layer({ url: Redacted.make(url) }))

describe.skipIf(isLeftOut)(
  "6 providers in one process and one Redis",
  () => {
    const emptyRedis = sharedRedis()

    test.live("members that want two scopes send one token request for each", function*() {
      const made = yield* shop({ clientAuthentication: "client_secret_post" })
      const redis = yield* emptyRedis
      const wanting = (scope: string) =>
        share(inProcess, 3, redis, { ...made.settings, scope })
      const members = yield* Effect.all([wanting("read"), wanting("write")])
      const held = yield* all(members.flat(), ({ get }) => get)
      assert.strictEqual(yield* made.tokenRequests, 2)
      const scopes = new Map((yield* made.tokens).map((token) => [shown(token), token.scope]))
      deepStrictEqual(held.map((token) => scopes.get(token)), [
        "read",
        "read",
        "read",
        "write",
        "write",
        "write"
      ])
      yield* warnedOf(members.flat())
    })

    test.live("a token that is revoked under load costs one token request", function*() {
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

    testLifetimes(
      Effect.map(redisServer(), ({ start: end, stop: fault, url }) => ({
        start: (settings) => share(inProcess, 6, { url }, settings),
        outage: { fault, end, reason: "no connection" }
      }))
    )
  }
)

const size = 3

type Step = (redis: RedisServer) => Effect.Effect<unknown>

type Row = readonly [
  name: string,
  reason: string,
  fault: Step,
  end: Step,
  when?: "from the start"
]

const pause: Step = ({ pause }) => pause
const resume: Step = ({ resume }) => resume

/** Sends this command. */
const sendCommand = (...words: ReadonlyArray<string>): Step => ({ command }) =>
  command(...words)

/** The part of a URL before the host, and the command that makes it right. */
const user = "an-invented-user:an-invented-password@"
const createsUser = sendCommand(
  "ACL",
  "SETUSER",
  "an-invented-user",
  "on",
  ">an-invented-password",
  "~*",
  "&*",
  "+@all"
)

const maxMemory = (bytes: string) => sendCommand("CONFIG", "SET", "maxmemory", bytes)
const minReplicas = (count: string) =>
  sendCommand("CONFIG", "SET", "min-replicas-to-write", count)

const faults: ReadonlyArray<Row> = [
  [
    "is unreachable from the start",
    "ECONNREFUSED",
    ({ stop }) => stop,
    ({ start }) => start,
    "from the start"
  ],
  ["does not respond from the start", "no connection", pause, resume, "from the start"],
  ["does not respond for a while", "no response in time", pause, resume],
  ["refuses the password", "WRONGPASS", () => Effect.void, createsUser, "from the start"],
  // Redis already uses more than 1 byte, and by default it evicts nothing.
  ["is full", "OOM", maxMemory("1"), maxMemory("0")],
  ["lacks a replica", "NOREPLICAS", minReplicas("1"), minReplicas("0")],
  // No server listens on port 1.
  [
    "is a replica",
    "READONLY",
    sendCommand("REPLICAOF", "127.0.0.1", "1"),
    sendCommand("REPLICAOF", "NO", "ONE")
  ]
]

describe.skipIf(isLeftOut).concurrent("a Redis that", () => {
  test.live.each(faults)(
    "each member acquires its own token with one warning until Redis can be used: %s",
    function*([, reason, fault, end, when]) {
      const redis = yield* redisServer()
      const storeUrl = reason === "WRONGPASS"
        ? redis.url.replace("//", `//${user}`)
        : redis.url
      const start = (settings: Settings) => inProcess(size, { ...settings, storeUrl })
      yield* outage(start, { reason, when, fault: fault(redis), end: end(redis) })
    }
  )

  test.live("members connect again to a Redis that closes their connections", function*() {
    const [redis, { tokenRequests, settings }] = yield* Effect.all([redisServer(), shop()])
    const members = yield* share(inProcess, size, redis, settings)
    assert.strictEqual(
      yield* redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"),
      size
    )
    yield* renewal(members, tokenRequests)
    yield* connected(members)
    // A member with its own token would accept the shared token of another member, so this deletes it.
    yield* redis.command("FLUSHALL")
    yield* expectOneRenewal(members, tokenRequests)
    for (const { length } of yield* all(members, ({ warnings }) => warnings)) {
      assert.isAtMost(length, 1)
    }
  })
})
