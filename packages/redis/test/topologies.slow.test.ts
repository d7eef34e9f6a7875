/** A cluster, and a primary behind sentinels: sharing, failover, a slot that moves, users, TLS. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { createCluster, createSentinel } from "@redis/client"
import { TokenStore } from "@store-api/core"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Fiber, Layer } from "effect"
import { test } from "../../core/test/support/test.js"
import { canMakeCertificates } from "../../platform-node/test/support/certificates.js"
import { shared } from "../../platform-node/test/utils.js"
import {
  all,
  connected,
  fleetOfProcesses,
  heldShop,
  inProcess,
  open,
  processes,
  renewal,
  share,
  shop,
  type Start,
  tokens,
  until,
  warningsOf
} from "./support/fleet.js"
import { fleetTests, othersIn, virtualTime } from "./support/fleetTests.js"
import * as Member from "./support/member.js"
import { isLeftOut, type RedisServer } from "./support/redisServer.js"
import { documented, storeTests, user } from "./support/storeTests.js"
import { cluster, sentinel, type Topology } from "./support/topologies.js"

const limit = 120_000

const failover = { patience: 500 }

const topologies = [["a cluster", cluster], ["sentinels", sentinel]] as const

for (const [name, start] of topologies) {
  fleetTests({
    name: `6 providers in one process and ${name}`,
    size: 6,
    fleet: Effect.succeed(inProcess),
    redis: () => shared(start()),
    pace: virtualTime(4 * 60_000),
    life: 30 * 60_000
  })
}

/** All keys that match this pattern, each once. */
const keysOf = ({ servers }: Topology, pattern: string) =>
  Effect.map(
    Effect.forEach(servers, ({ command }) => command("KEYS", pattern)),
    (keys) => [...new Set(keys.flat() as Array<string>)]
  )

/** Members call while the primary with the lease fails. Returns the number of token requests until all have a token. */
const acquisition = (
  fleet: Start,
  topology: Topology,
  fault: (lease: string, primary: RedisServer) => Effect.Effect<unknown>
) =>
  Effect.gen(function*() {
    const { tokenRequests, hold, release, settings } = yield* heldShop
    // Longer than any failover, even on a busy machine.
    const minute = { lease: "1 minute", attemptTimeout: "1 minute", deadline: "1 minute" } as const
    const patient = { ...settings, ...minute, storeTimeout: "30 seconds" } as const
    const members = yield* share(fleet, 4, topology, patient)
    yield* hold
    yield* all(members, ({ begin }) => begin(100))
    yield* until("a member sends a token request", Effect.map(tokenRequests, (count) => count === 1))
    const [lease = "", ...others] = yield* keysOf(topology, "*:lease")
    assert.isEmpty(others)
    const holders = Effect.forEach(topology.servers, ({ command }) => command("KEYS", lease))
    yield* until("a replica has the lease", Effect.map(holders, (keys) => keys.flat().length > 1))
    const primary = yield* topology.primaryOf(lease)
    yield* topology.failOver(primary, fault(lease, primary))
    yield* release
    const count = yield* tokens(members)
    const requests = yield* tokenRequests
    assert.isAtMost(count, requests)
    deepStrictEqual(othersIn(yield* all(members, ({ end }) => end)), [])
    deepStrictEqual((yield* warningsOf(members)).flat(), [])
    // A member with the older of two tokens accepts the other one in place of a new one.
    assert.strictEqual((yield* renewal(members, tokenRequests)).requests, 1)
    return requests
  })

describe.skipIf(isLeftOut)("a primary that fails while processes acquire a token", () => {
  const fleet = shared(fleetOfProcesses(4))

  it.scopedLive.each(topologies)(
    "%s: is killed, and the lease with it: one token request more",
    ([, start]) =>
      Effect.gen(function*() {
        const requests = yield* acquisition(
          yield* fleet,
          yield* start(failover),
          (lease, primary) => Effect.zipRight(primary.command("DEL", lease), primary.stop)
        )
        assert.isAtMost(requests, 2)
      }),
    limit
  )
})

describe.skipIf(isLeftOut).concurrent("a primary that fails while providers acquire a token", () => {
  it.scopedLive.each(topologies)(
    "%s: does not respond, and its replica has the lease: no token request more",
    ([, start]) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* acquisition(inProcess, yield* start(failover), (_, primary) => primary.pause), 1)
      }),
    limit
  )
})

const users = [
  ["a cluster", cluster, { acl: documented("+asking") }],
  ["sentinels", sentinel, { acl: documented("+pexpire"), sentinelAcl: documented("+sentinel") }]
] as const

describe.skipIf(isLeftOut || !canMakeCertificates)("users and TLS", () => {
  it.scopedLive.each(users)(
    "%s: processes that trust the authority share a token as a user",
    ([, start, acl]) =>
      Effect.gen(function*() {
        const topology = yield* start({ ...acl, overTls: true, user })
        const { tokenRequests, settings } = yield* shop()
        const [first, second] = yield* processes(2, { NODE_EXTRA_CA_CERTS: topology.cert })
        assert(first !== undefined && second !== undefined)
        const members = yield* Effect.forEach(
          [first, second],
          (process) => open(process, { ...settings, redisUrl: topology.url }),
          { concurrency: 2 }
        )
        yield* connected(members)
        deepStrictEqual(yield* renewal(members, tokenRequests), { requests: 1, tokens: 1 })
        deepStrictEqual((yield* warningsOf(members)).flat(), [])
        const stranger = yield* open(first, { ...settings, redisUrl: topology.url.replace("password", "another") })
        deepStrictEqual(yield* renewal([stranger], tokenRequests), { requests: 1, tokens: 1 })
        deepStrictEqual((yield* warningsOf([stranger])).flat().map(({ annotations }) => annotations["reason"]), [
          "WRONGPASS"
        ])
      }),
    limit
  )
})

describe.skipIf(isLeftOut)("a store on a cluster with users", () => {
  storeTests(cluster, { acl: documented("+asking") })
})

describe.skipIf(isLeftOut)("a slot of a cluster that moves", () => {
  test.live(
    "while members call: one token request for each renewal, no call fails, no warning",
    function*() {
      const topology = yield* cluster({ acl: documented("+asking"), user })
      const { tokenRequests, settings } = yield* shop()
      const members = yield* share(inProcess, 3, topology, settings)
      yield* all(members, ({ begin }) => begin(20))
      const renews = Effect.map(
        renewal(members, tokenRequests),
        (renewed) => deepStrictEqual(renewed, { requests: 1, tokens: 1 })
      )
      yield* renews
      const [entry = "", ...others] = yield* keysOf(topology, "*")
      assert.isEmpty(others)
      for (const key of [entry, `${entry}:lease`]) {
        const source = yield* topology.primaryOf(key)
        const slot = String(yield* source.command("CLUSTER", "KEYSLOT", key))
        const ids = yield* Effect.forEach(
          topology.servers,
          (server) => Effect.map(server.command("CLUSTER", "MYID"), (id) => ({ server, id: String(id) }))
        )
        const nodes = yield* Effect.filter(
          ids,
          ({ server }) => Effect.map(server.command("ROLE"), (role) => (role as Array<unknown>)[0] === "master")
        )
        const from = nodes.find(({ server }) => server === source)
        const to = nodes.find(({ server }) => server !== source)
        assert(from !== undefined && to !== undefined)
        yield* to.server.command("CLUSTER", "SETSLOT", slot, "IMPORTING", from.id)
        yield* source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)
        yield* renews
        yield* source.command("MIGRATE", "127.0.0.1", String(to.server.port), key, "0", "1000")
        yield* renews
        for (const { server } of nodes) yield* server.command("CLUSTER", "SETSLOT", slot, "NODE", to.id)
        yield* renews
        assert.strictEqual((yield* topology.primaryOf(key)).port, to.server.port)
      }
      deepStrictEqual(othersIn(yield* all(members, ({ end }) => end)), [])
      deepStrictEqual((yield* warningsOf(members)).flat(), [])
    },
    limit
  )
})

/** The hosts in the URL of a topology. */
const hostsOf = ({ url }: Topology) =>
  (/\/\/([^/]*)/.exec(url)?.[1] ?? "").split(",").map((host) => new URL(`redis://${host}`))
    .map(({ hostname, port }) => ({ host: hostname, port: Number(port) }))

const ownClients = [
  ["a cluster", cluster, (topology: Topology) =>
    createCluster({
      rootNodes: hostsOf(topology).map((socket) => ({ socket })),
      defaults: { disableOfflineQueue: true },
      topologyRefreshOnReconnectionAttemptStrategy: 200
    })],
  [
    "sentinels",
    sentinel,
    (topology: Topology) => createSentinel({ name: "tokens", sentinelRootNodes: hostsOf(topology) })
  ]
] as const

describe.skipIf(isLeftOut).concurrent("a client of the application", () => {
  it.scopedLive.each(ownClients)(
    "%s: members share a token; a failover costs at most one token request, and no call fails",
    ([, start, clientOf]) =>
      Effect.gen(function*() {
        const topology = yield* start(failover)
        const { tokenRequests, hold, release, settings } = yield* heldShop
        const store = Layer.scoped(
          TokenStore.TokenStore,
          Effect.acquireRelease(
            Effect.promise(async () => {
              const client = clientOf(topology)
              await client.on("error", () => undefined).connect()
              return client
            }),
            (client) => Effect.promise(async () => client.destroy())
          ).pipe(Effect.map((client) => RedisTokenStore.fromClient(client)))
        )
        const members = yield* Effect.orDie(Effect.all(
          Effect.replicate(
            Member.make({ ...settings, storeTimeout: "10 seconds", lease: "3 seconds" }, store),
            3
          ),
          { concurrency: 3 }
        ))
        deepStrictEqual(yield* renewal(members, tokenRequests), { requests: 1, tokens: 1 })
        yield* all(members, ({ begin }) => begin(50))
        yield* hold
        const renewing = yield* Effect.fork(all(members, ({ refresh }) => refresh))
        yield* until("a member sends a token request", Effect.map(tokenRequests, (count) => count === 2))
        const [lease = ""] = yield* keysOf(topology, "*:lease")
        const primary = yield* topology.primaryOf(lease)
        yield* topology.failOver(primary, primary.stop)
        yield* release
        yield* Fiber.join(renewing)
        assert.isAtMost(yield* tokenRequests, 3)
        assert.strictEqual((yield* renewal(members, tokenRequests)).requests, 1)
        deepStrictEqual(othersIn(yield* all(members, ({ end }) => end)), [])
        deepStrictEqual((yield* warningsOf(members)).flat(), [])
      }),
    limit
  )
})
