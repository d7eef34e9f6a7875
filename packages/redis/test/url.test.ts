/** The clients that the URL of a store creates, without a server of Redis. */
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { assert, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  onVirtualTime,
  type Played,
  playedServer,
  type Reply,
  silentServer,
  until
} from "@store-api/testing/network"
import { renderings } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Effect, Exit, Fiber, Option, Random } from "effect"
import { destroy, fromUrl } from "../src/internal/servers.js"

/** The options of each client. */
const shared = {
  disableOfflineQueue: true,
  commandsQueueMaxLength: 1000,
  maintNotifications: "disabled"
}

const overTls = { tls: true, rejectUnauthorized: true }

/** Another server takes over from one that does not accept a connection in time. */
const failover = { connectTimeout: 500, reconnectStrategy: false }

/** On a clock that stands still: a busy machine reaches no time limit. */
const created = (url: string) =>
  onVirtualTime(() => Effect.flatMap(fromUrl(url), ({ newClient }) => newClient))

/** The options without those that the client library adds. */
const optionsOf = (client: Effect.Effect.Success<ReturnType<typeof created>>) => {
  assert("options" in client)
  const { commandOptions: _, credentialsProvider: _1, himportRegistry: _2, ...options } =
    client.options
  return options
}

test.each<readonly [url: string, expected: object]>([
  ["redis://127.0.0.1", { socket: { host: "127.0.0.1", port: 6379 } }],
  [" redis://Cache.Store.Example:7000 ", {
    socket: { host: "Cache.Store.Example", port: 7000 }
  }],
  ["redis://cache/", { socket: { host: "cache", port: 6379 } }],
  ["redis://cache/15", { database: 15, socket: { host: "cache", port: 6379 } }],
  ["rediss://cache/0", {
    database: 0,
    socket: { ...overTls, host: "cache", port: 6379, servername: "cache" }
  }],
  ["rediss://[::1]", { socket: { ...overTls, host: "::1", port: 6379 } }],
  ["redis://[::1]", { socket: { host: "::1", port: 6379 } }],
  ["redis://[2001:db8::2]:7000/1", {
    database: 1,
    socket: { host: "2001:db8::2", port: 7000 }
  }],
  ["redis://:pass%40%2F@cache", {
    password: "pass@/",
    socket: { host: "cache", port: 6379 }
  }],
  ["redis://a%3Auser@cache", { username: "a:user", socket: { host: "cache", port: 6379 } }],
  ["rediss://user:a@b@cache:1/2", {
    username: "user",
    password: "a@b",
    database: 2,
    socket: { ...overTls, host: "cache", port: 1, servername: "cache" }
  }]
])("%s", function*([url, expected]) {
  const { canFailOver, newClient } = yield* fromUrl(url)
  assert.isFalse(canFailOver)
  deepStrictEqual<unknown>(optionsOf(yield* newClient), { ...shared, ...expected })
})

const rootNode = (host: string, port: number, name = {}) => ({
  socket: { host, port, ...name, socketTimeout: 500 }
})

test.each<readonly [url: string, expected: object]>([
  ["redis+cluster://one", {
    rootNodes: [rootNode("one", 6379)],
    defaults: { ...shared, socket: failover }
  }],
  ["rediss+cluster://user:pass%3F@one:1,[::1],two", {
    rootNodes: [
      rootNode("one", 1, { servername: "one" }),
      rootNode("::1", 6379),
      rootNode("two", 6379, { servername: "two" })
    ],
    defaults: {
      ...shared,
      username: "user",
      password: "pass?",
      socket: { ...overTls, ...failover }
    }
  }],
  ["redis+cluster://one,two/", {
    rootNodes: [rootNode("one", 6379), rootNode("two", 6379)],
    defaults: { ...shared, socket: failover }
  }]
])("%s", function*([url, expected]) {
  const { canFailOver, newClient } = yield* fromUrl(url)
  const client = yield* newClient
  assert("_options" in client)
  assert.isTrue(canFailOver)
  const { nodeAddressMap, ...options } = client._options
  deepStrictEqual<unknown>(options, { ...expected, minimizeConnections: true })
  assert(typeof nodeAddressMap === "function")
  const name = url.startsWith("rediss") ? { servername: "node.cache" } : {}
  deepStrictEqual<unknown>(nodeAddressMap("node.cache:7000"), {
    host: "node.cache",
    port: 7000,
    ...name
  })
  deepStrictEqual(nodeAddressMap("2001:db8::2:7000"), { host: "2001:db8::2", port: 7000 })
})

/** A sentinel with these replies, by the number of the connection and the first word of the command. */
const sentinel = (...replies: ReadonlyArray<Readonly<Record<string, Reply>>>) =>
  playedServer(([word = ""], connection) => replies[connection - 1]?.[word])

const primary = { SENTINEL: ["primary", "7000"] }

/** The commands of each connection, without those that name the client library. */
const received = ({ commands, opened }: Played) =>
  Array.from(
    { length: opened() },
    (_, index) =>
      commands.flatMap(({ connection, words }) =>
        connection === index + 1 && words[0] !== "CLIENT" ? [words.join(" ")] : []
      )
  )

const question = "SENTINEL GET-MASTER-ADDR-BY-NAME"

test.live.each<readonly [user: string, path: string, name: string, expected: object]>([
  ["", "/tokens", "tokens", {}],
  ["", "/my%20name/", "my name", {}],
  ["user:pass%40@", "/tokens/3", "tokens", {
    username: "user",
    password: "pass@",
    database: 3
  }]
])(
  "the client of %s(hosts)%s is for the server that the sentinels name",
  function*([user, path, name, expected]) {
    const played = yield* sentinel(primary)
    const url = `redis+sentinel://${user}127.0.0.1:${played.port}${path}`
    assert.isTrue((yield* fromUrl(url)).canFailOver)
    const socket = { ...failover, host: "primary", port: 7000 }
    deepStrictEqual<unknown>(optionsOf(yield* created(url)), {
      ...shared,
      ...expected,
      socket
    })
    deepStrictEqual(received(played), [["HELLO 3", `${question} ${name}`]])
    yield* played.closed
  }
)

test("the URL of a sentinel without a port means 26379", function*() {
  const asked: Array<unknown> = []
  const note = (message: unknown) => void asked.push(message)
  const channel = "tracing:node-redis:connect:start"
  yield* Effect.acquireUseRelease(
    Effect.sync(() => subscribe(channel, note)),
    () => Effect.exit(created("redis+sentinel://127.0.0.1/name")),
    () => Effect.sync(() => unsubscribe(channel, note))
  )
  // The messages of a channel have no type.
  deepStrictEqual(
    asked.map((message) => (message as { readonly serverPort: number }).serverPort),
    [26_379]
  )
})

test.live("sentinels that need a password are asked again with it", function*() {
  const noauth = new Error("NOAUTH Authentication required.")
  const noperm = new Error("NOPERM User default has no permissions")
  for (const refusal of [{ HELLO: noauth }, { SENTINEL: noauth }, { SENTINEL: noperm }]) {
    const played = yield* sentinel(refusal, primary)
    const client = yield* created(
      `redis+sentinel://user:password@127.0.0.1:${played.port}/name`
    )
    deepStrictEqual<unknown>(optionsOf(client).socket, {
      ...failover,
      host: "primary",
      port: 7000
    })
    const [first, ...others] = received(played)
    assert.notInclude(String(first), "password")
    deepStrictEqual(others, [["HELLO 3 AUTH user password", `${question} name`]])
    yield* played.closed
  }
})

test.live.each<readonly [how: string, reply: Reply, reason: string]>([
  ["refuse the password", new Error("WRONGPASS invalid"), "WRONGPASS"],
  ["fail", new Error("ERR any"), "ERR"],
  ["do not know the name", null, "unknown name"],
  ["close the connection", "closes", "SocketClosedUnexpectedlyError"]
])(
  "of sentinels that %s, the last one gives the reason",
  function*([, reply, reason]) {
    const played = yield* playedServer(([word], _, close) => {
      if (word !== "SENTINEL") return undefined
      if (reply !== "closes") return reply
      close()
      return undefined
    })
    const host = `127.0.0.1:${played.port}`
    assert.strictEqual(
      yield* Effect.flip(created(`redis+sentinel://user:a@${host},${host}/name`)),
      reason
    )
    assert.strictEqual(played.opened(), 2)
    yield* played.closed
  }
)

test.live("sentinels that do not accept a connection give its error as the reason", function*() {
  // No server listens on port 1.
  assert.strictEqual(
    yield* Effect.flip(created("redis+sentinel://127.0.0.1:1/name")),
    "ECONNREFUSED"
  )
})

test.live.each(
  [["to a connection", silentServer], ["to the question", sentinel({})]] as const
)(
  "that do not respond %s are given up after half a second",
  function*([, server]) {
    const silent = yield* server
    yield* onVirtualTime((virtual) =>
      Effect.gen(function*() {
        const { newClient } = yield* fromUrl(
          `redis+sentinel://127.0.0.1:${silent.port}/name`
        )
        const asking = yield* Effect.fork(Effect.flip(newClient))
        yield* until("it is asked", Effect.sync(() => silent.opened() === 1))
        yield* virtual.advance(499)
        assert.isTrue(Option.isNone(yield* Fiber.poll(asking)))
        yield* virtual.advance(1)
        assert.strictEqual(yield* Fiber.join(asking), "no response in time")
        yield* silent.closed
      })
    )
  }
)

test.live("sentinels are asked in another order each time", function*() {
  const all = yield* Effect.all(
    [0, 1].map(() => playedServer(([word]) => word === "SENTINEL" ? ["a", "1"] : undefined))
  )
  const url = `redis+sentinel://${all.map(({ port }) => `127.0.0.1:${port}`).join()}/name`
  yield* Effect.replicateEffect(created(url), 8).pipe(
    Effect.withRandom(Random.make("any seed"))
  )
  for (const { opened } of all) assert.isAbove(opened(), 0)
  assert.strictEqual(all.reduce((sum, { opened }) => sum + opened(), 0), 8)
})

it("a client may be destroyed before it exists", () => {
  destroy(undefined)
})

test.live("destroying a client closes the connection that it was opening", function*() {
  const silent = yield* silentServer
  const client = yield* created(`redis://127.0.0.1:${silent.port}`)
  const connecting = yield* Effect.fork(
    Effect.exit(Effect.tryPromise((): Promise<unknown> => client.connect()))
  )
  yield* Effect.yieldNow()
  destroy(client)
  yield* Fiber.join(connecting)
  yield* until(
    "it is closed",
    Effect.sync(() => silent.opened() === 1 && silent.open() === 0)
  )
})

test.live("destroying a client closes the connection that it was opening to a node of a cluster", function*() {
  const silent = yield* silentServer
  // The key belongs to the second half. The client has no connection to the first.
  const slots = [[0, 8191, ["127.0.0.1", 1, "first"]], [8192, 16_383, [
    "127.0.0.1",
    silent.port,
    "second"
  ]]]
  const root = yield* playedServer(([word]) => word === "CLUSTER" ? slots : undefined)
  const client = yield* created(`redis+cluster://127.0.0.1:${root.port}`)
  yield* Effect.promise((): Promise<unknown> => client.connect())
  const getting = yield* Effect.fork(Effect.exit(Effect.tryPromise(() => client.get("key"))))
  yield* Effect.yieldNow()
  destroy(client)
  yield* until(
    "it is closed",
    Effect.sync(() => silent.opened() === 1 && silent.open() === 0)
  )
  assert.isTrue(Exit.isFailure(yield* Fiber.join(getting)))
})

test.each([
  "",
  "an-invented-password",
  "127.0.0.1:6379/an-invented-password",
  "http://:an-invented-password@127.0.0.1",
  "redis://",
  "redis://:an-invented-password@",
  "redis://:an-invented-password@127.0.0.1:65536",
  "redis://:an-invented-password@127.0.0.1/database",
  "redis://:an-invented-password%zz@127.0.0.1",
  "unix:///tmp/an-invented-password",
  "redis://:an-invented-password@127.0.0.1,127.0.0.2",
  "redis+cluster://",
  "redis+cluster://127.0.0.1,",
  "redis+cluster://127.0.0.1?b,127.0.0.2",
  "redis+sentinel://127.0.0.1,/name",
  "redis+sentinel://127.0.0.1/name/0/1",
  "redis://127.0.0.1/1?x",
  "redis+cluster://:an-invented-password@127.0.0.1,,127.0.0.2",
  "redis+cluster://:an-invented-password@127.0.0.1/0",
  "redis+sentinel://:an-invented-password@127.0.0.1",
  "redis+sentinel://:an-invented-password@127.0.0.1/",
  "redis+sentinel://:an-invented-password@127.0.0.1/name/database",
  "redis+sentinel://:an-invented-password@127.0.0.1/name%zz",
  "redis+pool://:an-invented-password@127.0.0.1",
  "an-invented-redis://127.0.0.1",
  "redis://an/invented-user@127.0.0.1",
  "redis://an?invented-user@127.0.0.1",
  "redis://an#invented-user@127.0.0.1"
])("an unusable URL is refused by an error that shows no part of it: %s", function*(url) {
  const error = yield* Effect.flip(fromUrl(url))
  deepStrictEqual([error._tag, error.option], ["ConfigurationError", "RedisTokenStore.url"])
  const grammar =
    "must be redis://host, redis+cluster://host,host or redis+sentinel://host,host/name, " +
    "with rediss instead of redis over TLS, user:password@ before the hosts, a port after each, " +
    "and a /database at the end where needed, all percent-encoded"
  const query =
    "must not have a query or a fragment, and ? and # in a user name or password must be percent-encoded"
  assert.strictEqual(error.reason, /[?#]/.test(url) ? query : grammar)
  assert.notInclude(renderings(error), "invented")
  assert.include(renderings(url), url, "control")
})
