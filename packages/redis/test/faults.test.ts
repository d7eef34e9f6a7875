/** A fleet while its Redis is unavailable. */
import { readFileSync } from "node:fs"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { createClient } from "@redis/client"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Fiber, Option } from "effect"
import { test } from "../../core/test/support/test.js"
import { canMakeCertificates } from "../../platform-node/test/support/certificates.js"
import { withVariables } from "../../platform-node/test/utils.js"
import { all, connected, heldShop, inProcess, type Members, renewal, share, sharesOne, shop } from "./support/fleet.js"
import { warnedOf } from "./support/fleet.js"
import { until } from "./support/network.js"
import { isLeftOut, type RedisServer, redisServer, single } from "./support/servers.js"

const size = 3

const limit = 60_000

/** Each member acquires a token. */
const isNotShared = (members: Members, tokenRequests: Effect.Effect<number>) =>
  Effect.map(renewal(members, tokenRequests), (renewed) => deepStrictEqual(renewed, { requests: size, tokens: size }))

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
  // No server listens on port 1.
  { name: "is a replica", reason: "READONLY", fault: replicaOf("127.0.0.1", "1"), end: replicaOf("NO", "ONE") }
]

describe.skipIf(isLeftOut).concurrent("a Redis that", { timeout: limit }, () => {
  test.live.each(faults)(
    "$name: each member acquires a token and warns once, without the password, until they can share one",
    function*({ end, fault, reason, user = "", when }) {
      const [redis, { tokenRequests, settings }] = yield* Effect.all([redisServer(), shop()])
      if (when !== undefined) yield* fault(redis)
      const members = yield* inProcess(size, {
        ...settings,
        redisUrl: redis.url.replace("//", `//${user}`),
        ...(reason === "no response in time" && { storeTimeout: "3 seconds" })
      })
      if (when === undefined) {
        yield* connected(members)
        yield* sharesOne(members, tokenRequests)
        yield* fault(redis)
      }
      yield* isNotShared(members, tokenRequests)
      yield* isNotShared(members, tokenRequests)
      yield* warnedOf(members, reason)
      yield* end(redis)
      yield* connected(members)
      yield* sharesOne(members, tokenRequests)
      yield* warnedOf(members, reason)
    }
  )

  test.live("stops while members wait for a shared token, starts and stops again: one warning per outage", function*() {
    const [redis, { tokenRequests, hold, release, settings }] = yield* Effect.all([redisServer(), heldShop])
    const members = yield* share(inProcess, size, redis, settings)
    yield* sharesOne(members, tokenRequests)
    yield* hold
    const renewing = yield* Effect.fork(isNotShared(members, tokenRequests))
    yield* until("one member sends a token request", Effect.map(tokenRequests, (count) => count === 2))
    yield* redis.stop
    yield* until("the others send token requests too", Effect.map(tokenRequests, (count) => count === 1 + size))
    yield* release
    yield* Fiber.join(renewing)
    const warned = (times: number) =>
      Effect.map(all(members, ({ warnings }) => warnings), (all) => all.map((of) => assert.lengthOf(of, times)))
    yield* warned(1)

    yield* redis.start
    yield* connected(members)
    yield* sharesOne(members, tokenRequests)
    yield* sharesOne(members, tokenRequests)
    yield* warned(1)

    yield* redis.stop
    yield* isNotShared(members, tokenRequests)
    yield* isNotShared(members, tokenRequests)
    yield* warned(2)
  })

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

/** The entry of a store over a client with these TLS options. Returns `None` if the client cannot connect. */
const reaches = (url: string, options: Readonly<Record<string, unknown>>) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      createClient({ url, socket: { tls: true, reconnectStrategy: false, ...options } }).on("error", () => undefined)
    ),
    (client) => Effect.sync(() => client.destroy())
  ).pipe(
    Effect.tap((client) => Effect.tryPromise(() => client.connect())),
    Effect.flatMap((client) => {
      const store = RedisTokenStore.fromClient(client)
      return Effect.zipRight(store.put("key", "entry", "1 minute"), store.get("key"))
    }),
    Effect.option
  )

const entry = Option.some(Option.some("entry"))

describe.skipIf(isLeftOut || !canMakeCertificates)("over TLS", { timeout: limit }, () => {
  test.live("a server that Node does not trust is not used, even with NODE_TLS_REJECT_UNAUTHORIZED=0", function*() {
    const [{ servers, url }, { tokenRequests, settings }] = yield* Effect.all([single({ tls: {} }), shop()])
    const ownTokens = Effect.gen(function*() {
      const members = yield* inProcess(1, { ...settings, redisUrl: url })
      yield* sharesOne(members, tokenRequests)
      yield* warnedOf(members, "DEPTH_ZERO_SELF_SIGNED_CERT")
    })
    yield* ownTokens
    yield* Effect.gen(function*() {
      yield* ownTokens
      for (const { connected } of servers) {
        yield* until("no member is connected", Effect.map(connected, (count) => count === 0))
      }
      deepStrictEqual(yield* reaches(url, {}), entry, "control: the variable affects other clients")
    }).pipe(withVariables({ NODE_TLS_REJECT_UNAUTHORIZED: "0" }))
  })

  test.live("a client of the application can authenticate with a certificate", function*() {
    const { url, ...files } = yield* single({ tls: { clients: "yes" } })
    const [ca, key] = [files.cert, files.key].map((path) => readFileSync(path, "utf8"))
    deepStrictEqual(yield* reaches(url, { ca, cert: ca, key }), entry)
    deepStrictEqual(yield* reaches(url, { ca }), Option.none())
  })
})
