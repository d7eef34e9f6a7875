/** Fleets of processes, and fleets over a cluster or sentinels: sharing, failover, a slot that moves, users, TLS. */
import { spawn } from "node:child_process"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { createCluster, createSentinel } from "@redis/client"
import { TokenStore } from "@store-api/core"
import { RedisTokenStore } from "@store-api/redis"
import { canMakeCertificates } from "@store-api/testing/certificates"
import { bundle } from "@store-api/testing/childProcess"
import * as Fleet from "@store-api/testing/fleet"
import type * as Member from "@store-api/testing/member"
import { inTime, onVirtualTime, until } from "@store-api/testing/network"
import {
  cluster,
  documented,
  isLeftOut,
  type RedisServer,
  redisServer,
  sentinel,
  single,
  type Topology,
  user
} from "@store-api/testing/redisServers"
import { test } from "@store-api/testing/test"
import { Effect, Layer, Redacted } from "effect"

const limit = 120_000

const inProcess = Fleet.providers((url) => RedisTokenStore.layer({ url: Redacted.make(url) }))

const program = new URL("./child/member.ts", import.meta.url)

describe.skipIf(isLeftOut)(
  "the process that acquires the token for all",
  { timeout: limit },
  () => {
    test.live("after the process with the lease is killed, the others wait for its end until one acquires a token", function*() {
      yield* Fleet.holderIsKilled(program, yield* redisServer())
    })

    test.live("six processes that want one scope send one token request", function*() {
      const { settings, tokenRequests } = yield* Fleet.shop({
        clientAuthentication: "client_secret_post"
      })
      const six = Fleet.inThese(yield* Fleet.processes(program, 6))
      const members = yield* Fleet.share(six, 6, yield* redisServer(), {
        ...settings,
        scope: "read"
      })
      deepStrictEqual([yield* Fleet.tokens(members), yield* tokenRequests], [1, 1])
    })
  }
)

/** All keys that match this pattern, each once. */
const keysOf = ({ servers }: Topology, pattern: string) =>
  Effect.map(
    Effect.forEach(servers, ({ command }) => command("KEYS", pattern)),
    (keys) => [...new Set(keys.flat() as Array<string>)]
  )

/** The hosts in the URL of a topology. */
const hostsOf = ({ url }: Topology) =>
  (/\/\/([^/]*)/.exec(url)?.[1] ?? "").split(",").map((host) => new URL(`redis://${host}`))
    .map(({ hostname, port }) => ({ host: hostname, port: Number(port) }))

const clusterClient = (topology: Topology) =>
  createCluster({
    rootNodes: hostsOf(topology).map((socket) => ({ socket })),
    defaults: { disableOfflineQueue: true },
    topologyRefreshOnReconnectionAttemptStrategy: 200
  })

const sentinelClient = (topology: Topology) =>
  createSentinel({ name: "tokens", sentinelRootNodes: hostsOf(topology) })

const topologies = [["a cluster", cluster, clusterClient], [
  "sentinels",
  sentinel,
  sentinelClient
]] as const

/** Each member shares through a client of the application. */
const over = (make: () => ReturnType<typeof clusterClient | typeof sentinelClient>) => {
  const client = Effect.acquireRelease(
    Effect.promise(async () => {
      const client = make()
      await client.on("error", () => undefined).connect()
      return client
    }),
    (client) => Effect.promise(async () => client.destroy())
  )
  return Fleet.providers(() =>
    Layer.scoped(
      TokenStore.TokenStore,
      Effect.map(client, (client) => RedisTokenStore.fromClient(client))
    )
  )
}

/** Members call while the primary with the lease fails. Returns the number of token requests until all have a token. */
const acquisition = (
  fleet: Fleet.Start,
  topology: Topology,
  fault: (lease: string, primary: RedisServer) => Effect.Effect<unknown>
) =>
  Effect.gen(function*() {
    const { tokenRequests, hold, release, settings } = yield* Fleet.heldShop
    // Longer than any failover, even on a busy machine.
    const minute = {
      lease: "1 minute",
      attemptTimeout: "1 minute",
      deadline: "1 minute"
    } as const
    const patient = { ...settings, ...minute, storeTimeout: "30 seconds" } as const
    const members = yield* Fleet.share(fleet, 4, topology, patient)
    yield* hold
    yield* Fleet.all(members, ({ begin }) => begin(100))
    yield* until(
      "a member sends a token request",
      Effect.map(tokenRequests, (count) => count === 1)
    )
    const [lease = "", ...others] = yield* keysOf(topology, "*:lease")
    assert.isEmpty(others)
    const holders = Effect.forEach(topology.servers, ({ command }) => command("KEYS", lease))
    yield* until(
      "a replica has the lease",
      Effect.map(holders, (keys) => keys.flat().length > 1)
    )
    const primary = yield* topology.primaryOf(lease)
    yield* topology.failOver(primary, fault(lease, primary))
    yield* release
    const count = yield* Fleet.tokens(members)
    const requests = yield* tokenRequests
    assert.isAtMost(count, requests)
    Fleet.allSucceed(yield* Fleet.all(members, ({ end }) => end))
    yield* Fleet.warnedOf(members)
    // A member with the older of two tokens accepts the other one instead of a new one.
    assert.strictEqual((yield* Fleet.renewal(members, tokenRequests)).requests, 1)
    return requests
  })

const killed = (lease: string, { command, stop }: RedisServer) =>
  Effect.zipRight(command("DEL", lease), stop)

describe.skipIf(isLeftOut).concurrent("a primary that fails while members acquire a token", {
  timeout: limit
}, () => {
  test.live.each(topologies)(
    "a primary that is killed with its lease costs one token request: %s",
    function*(row) {
      assert.isAtMost(yield* acquisition(inProcess, yield* row[1](), killed), 2)
    }
  )

  test.live.each(topologies)(
    "a primary that does not respond costs no token request if its replica has the lease: %s",
    function*(row) {
      assert.strictEqual(
        yield* acquisition(inProcess, yield* row[1](), (_, { pause }) => pause),
        1
      )
    }
  )

  test.live.each(topologies)(
    "a failing primary costs a client of the application one token request at most: %s",
    function*(row) {
      const topology = yield* row[1]()
      assert.isAtMost(yield* acquisition(over(() => row[2](topology)), topology, killed), 2)
    }
  )
})

const users = [
  ["one server", single, { acl: documented("+pexpire") }],
  ["a cluster", cluster, { acl: documented("+asking") }],
  ["sentinels", sentinel, {
    acl: documented("+pexpire"),
    sentinelAcl: documented("+sentinel")
  }]
] as const

describe.skipIf(isLeftOut || !canMakeCertificates)("users and TLS", { timeout: limit }, () => {
  /** Processes that trust this authority. Node reads the variable when a process starts. */
  const trusting = ({ cert }: { readonly cert: string }) =>
    Fleet.processes(program, 2, { NODE_EXTRA_CA_CERTS: cert })

  test.live.each(users)(
    "processes that trust the authority share a token as a user: %s",
    function*([, start, acl]) {
      const [servers, { tokenRequests, settings }] = yield* Effect.all([
        start({ ...acl, tls: {}, user }),
        Fleet.shop()
      ])
      const fleet = Fleet.inThese(yield* trusting(servers))
      const members = yield* Fleet.share(fleet, 2, servers, settings)
      yield* Fleet.sharesOne(members, tokenRequests)
      yield* Fleet.warnedOf(members)
      const strangers = yield* fleet(1, {
        ...settings,
        storeUrl: servers.url.replace("password", "an-invented-other")
      })
      yield* Fleet.sharesOne(strangers, tokenRequests)
      yield* Fleet.warnedOf(strangers, "WRONGPASS")
      // This process does not trust the authority. No server listens on port 1.
      for (
        const [storeUrl, reason] of [
          [servers.url, "DEPTH_ZERO_SELF_SIGNED_CERT"],
          [servers.url.replaceAll(/:\d+/g, ":1"), "ECONNREFUSED"]
        ] as const
      ) {
        const excluded = inProcess(1, { ...settings, storeUrl, storeTimeout: "1 second" })
        const asked = Effect.tap(excluded, Fleet.tokens)
        yield* Fleet.warnedOf(
          yield* onVirtualTime((virtual) => inTime(virtual, asked)),
          reason
        )
      }
    }
  )

  test.live("a server with a trusted certificate for another host is not used", function*() {
    const [redis, { tokenRequests, settings }] = yield* Effect.all([
      single({ tls: { name: "redis.shop.example" } }),
      Fleet.shop()
    ])
    const members = yield* Fleet.inThese(yield* trusting(redis))(2, {
      ...settings,
      storeUrl: redis.url
    })
    deepStrictEqual(yield* Fleet.renewal(members, tokenRequests), { requests: 2, tokens: 2 })
    yield* Fleet.warnedOf(members, "ERR_TLS_CERT_ALTNAME_INVALID")
    const counts = Effect.forEach(redis.servers, ({ connected }) => connected)
    yield* until("no member is connected", Effect.map(counts, ([count]) => count === 0))
  })
})

describe.skipIf(isLeftOut)("a slot of a cluster that moves", { timeout: limit }, () => {
  test.live("a slot of a cluster that moves costs no token request", function*() {
    const topology = yield* cluster({ acl: documented("+asking"), user })
    const { tokenRequests, settings } = yield* Fleet.shop()
    const members = yield* Fleet.share(inProcess, 3, topology, settings)
    yield* Fleet.all(members, ({ begin }) => begin(20))
    yield* Fleet.tokens(members)
    const renews = Fleet.sharesOne(members, tokenRequests)
    yield* renews
    const [entry = "", ...others] = yield* keysOf(topology, "*")
    assert.isEmpty(others)
    for (const key of [entry, `${entry}:lease`]) {
      const source = yield* topology.primaryOf(key)
      const slot = String(yield* source.command("CLUSTER", "KEYSLOT", key))
      const nodes = yield* Effect.forEach(
        topology.servers,
        (server) =>
          Effect.map(server.command("CLUSTER", "MYID"), (id) => ({ server, id: String(id) }))
      ).pipe(
        Effect.flatMap(
          Effect.filter(({ server }) =>
            Effect.map(
              server.command("ROLE"),
              (role) => (role as Array<unknown>)[0] === "master"
            )
          )
        )
      )
      const from = nodes.find(({ server }) => server === source)
      const to = nodes.find(({ server }) => server !== source)
      assert(from !== undefined && to !== undefined)
      yield* to.server.command("CLUSTER", "SETSLOT", slot, "IMPORTING", from.id)
      yield* source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)
      yield* renews
      yield* source.command("MIGRATE", "127.0.0.1", String(to.server.port), key, "0", "1000")
      yield* renews
      for (const { server } of nodes) {
        yield* server.command("CLUSTER", "SETSLOT", slot, "NODE", to.id)
      }
      yield* renews
      assert.strictEqual((yield* topology.primaryOf(key)).port, to.server.port)
    }
    Fleet.allSucceed(yield* Fleet.all(members, ({ end }) => end))
    yield* Fleet.warnedOf(members)
  })
})

/**
 * How long a process may take to exit once it is done, in milliseconds. A client that reconnects pauses for two
 * seconds.
 */
const exitLimit = { whenClosed: 20_000, whenLeaked: 4000 }

/** Lets a process get one token. Returns its output, and its exit code if it exited. */
const run = (
  file: string,
  settings: Member.Settings,
  limit: number,
  ...end: ReadonlyArray<string>
) =>
  Effect.async<{ readonly output: string; readonly code: number | null }>((resume) => {
    const child = spawn(process.execPath, [file, JSON.stringify(settings), ...end], {
      env: { ...process.env, NODE_OPTIONS: "" },
      stdio: ["ignore", "pipe", "inherit"]
    })
    let output = ""
    let timer: NodeJS.Timeout | undefined
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      timer ??= setTimeout(() => child.kill("SIGKILL"), limit)
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      resume(Effect.succeed({ output, code }))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const ended = { output: "done\n", code: 0 }

describe.skipIf(isLeftOut)("closing the scope", { timeout: limit }, () => {
  test.live("closing the scope lets the process exit, even if Redis hangs or is stopped", function*() {
    const [redis, { tokenRequests, settings }] = yield* Effect.all([
      redisServer(),
      Fleet.shop()
    ])
    const file = yield* bundle(program)
    const at = { ...settings, storeUrl: redis.url }
    deepStrictEqual(yield* run(file, at, exitLimit.whenClosed), ended)
    deepStrictEqual(yield* run(file, at, exitLimit.whenLeaked, "leaked"), {
      output: "done\n",
      code: null
    })
    assert.strictEqual(yield* tokenRequests, 1)
    yield* redis.pause
    deepStrictEqual(yield* run(file, at, exitLimit.whenClosed), ended)
    yield* redis.stop
    deepStrictEqual(yield* run(file, at, exitLimit.whenClosed), ended)
    assert.strictEqual(yield* tokenRequests, 3)
    // No server listens on port 1.
    for (
      const storeUrl of ["redis+cluster://127.0.0.1:1", "redis+sentinel://127.0.0.1:1/tokens"]
    ) {
      const bounded = { ...settings, storeUrl, storeTimeout: "1 second" } as const
      deepStrictEqual(yield* run(file, bounded, exitLimit.whenClosed), ended)
    }
    assert.strictEqual(yield* tokenRequests, 5)
  })
})
