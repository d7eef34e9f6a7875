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
import { shared } from "@store-api/testing/loopback"
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
    // Longer than any failover, which is why the topologies do not fail over side by side.
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

describe.skipIf(isLeftOut)("a primary that fails while members acquire a token", {
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

  /** Such servers and such processes, which start once for each row. */
  const started = users.map(([title, start, acl]) => {
    const servers = shared(start({ ...acl, tls: {}, user }))
    const fleet = shared(Effect.flatMap(servers, trusting))
    return { title, servers, fleet: Effect.map(fleet, Fleet.inThese) }
  })

  test.live.each(started)(
    "processes that trust the authority share a token as a user of $title",
    function*({ fleet, servers }) {
      const { settings, tokenRequests } = yield* Fleet.shop()
      const members = yield* Fleet.share(yield* fleet, 2, yield* servers, settings)
      yield* Fleet.expectOneRenewal(members, tokenRequests)
      yield* Fleet.warnedOf(members)
    }
  )

  test.live.each(started)(
    "a process with a wrong password warns that the user of $title is refused",
    function*({ fleet, servers }) {
      const { settings, tokenRequests } = yield* Fleet.shop()
      const storeUrl = (yield* servers).url.replace("password", "an-invented-other")
      const members = yield* (yield* fleet)(1, { ...settings, storeUrl })
      yield* Fleet.expectOneRenewal(members, tokenRequests)
      yield* Fleet.warnedOf(members, "WRONGPASS")
    }
  )

  /** A member of this process, which does not trust the authority, warns for this reason. */
  const expectWarning = (storeUrl: string, reason: string) =>
    Effect.gen(function*() {
      const { settings } = yield* Fleet.shop()
      const start = inProcess(1, { ...settings, storeUrl, storeTimeout: "1 second" })
      const members = yield* onVirtualTime((virtual) =>
        inTime(virtual, Effect.tap(start, Fleet.tokens))
      )
      yield* Fleet.warnedOf(members, reason)
    })

  test.live.each(started)(
    "a process that does not trust the authority of $title warns of the certificate",
    function*({ servers }) {
      yield* expectWarning((yield* servers).url, "DEPTH_ZERO_SELF_SIGNED_CERT")
    }
  )

  test.live.each(started)(
    "a process warns that nothing listens at the address of $title",
    function*({ servers }) {
      yield* expectWarning((yield* servers).url.replaceAll(/:\d+/g, ":1"), "ECONNREFUSED")
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
    const renews = Fleet.expectOneRenewal(members, tokenRequests)
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

describe.skipIf(isLeftOut)("the end of a process", { timeout: limit }, () => {
  const file = shared(bundle(program))

  /** Lets a process get a token with the store at this URL. Its scope closes unless the process leaks it. */
  const runAt = (storeUrl: string, ...end: ReadonlyArray<string>) =>
    Effect.gen(function*() {
      const { settings, tokenRequests } = yield* Fleet.shop()
      const limit = end.length === 0 ? exitLimit.whenClosed : exitLimit.whenLeaked
      const at = { ...settings, storeUrl, storeTimeout: "1 second" } as const
      const outcome = yield* run(yield* file, at, limit, ...end)
      assert.strictEqual(yield* tokenRequests, 1)
      return outcome
    })

  test.live("closing the scope lets the process exit", function*() {
    deepStrictEqual(yield* runAt((yield* redisServer()).url), ended)
  })

  test.live("a scope that stays open keeps the process running", function*() {
    deepStrictEqual(yield* runAt((yield* redisServer()).url, "leaked"), {
      output: "done\n",
      code: null
    })
  })

  test.live("closing the scope lets the process exit while Redis hangs", function*() {
    const redis = yield* redisServer()
    yield* redis.pause
    deepStrictEqual(yield* runAt(redis.url), ended)
  })

  // No server listens on port 1.
  test.live.each([
    "redis://127.0.0.1:1",
    "redis+cluster://127.0.0.1:1",
    "redis+sentinel://127.0.0.1:1/tokens"
  ])("closing the scope lets the process exit if nothing listens at %s", function*(url) {
    deepStrictEqual(yield* runAt(url), ended)
  })
})
