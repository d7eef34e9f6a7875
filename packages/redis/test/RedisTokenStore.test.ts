import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import * as redis from "@redis/client"
import { TokenStore } from "@store-api/core"
import { rules } from "@store-api/core/TokenStoreContract"
import { RedisTokenStore } from "@store-api/redis"
import { entryOf } from "@store-api/testing/entryOf"
import { isLeftOut, sharedRedis, works } from "@store-api/testing/redisServers"
import { renderings } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Config, ConfigProvider, Effect, Layer, Option, Redacted, type Scope } from "effect"

describe.skipIf(isLeftOut)("RedisTokenStore fulfils the contract", () => {
  const redis = sharedRedis()
  for (const { check, rule } of rules) {
    test.live(rule, function*() {
      yield* Effect.provide(
        check,
        RedisTokenStore.layer({ url: Redacted.make((yield* redis).url) })
      )
    })
  }
})

const made = (url: string, prefix?: string) =>
  RedisTokenStore.make({ url: Redacted.make(url), prefix })

/** A store whose client fails with this error. */
const failing = (error: Error, script?: RedisTokenStore.Commands["eval"]) => {
  const fail = () => Promise.reject(error)
  return RedisTokenStore.fromClient({ set: fail, eval: script ?? fail })
}

/** Errors of the client, whose classes a bundler has renamed. */
const renamed = ([
  "AbortError",
  "ClientClosedError",
  "ClientOfflineError",
  "ConnectionTimeoutError",
  "DisconnectsClientError",
  "MaxCommandRedirectionsError",
  "RootNodesUnavailableError",
  "SocketClosedUnexpectedlyError",
  "SocketTimeoutError",
  "TimeoutError"
] as const).map((name): [string, unknown] => {
  class a extends (redis[name] as unknown as new(text: string) => Error) {}
  return [name, new a("an-invented-password")]
})

test("a failed command names its operation in the error", function*() {
  const error = new Error("ERR refused")
  const store = failing(error)
  let count = 0
  const first = () => count++ === 0 ? Promise.resolve(1) : Promise.reject(error)
  const lease = Option.getOrThrow(yield* failing(error, first).lease("key", "1 minute"))
  const operations = {
    get: store.get("key"),
    put: store.put("key", "entry", "1 minute"),
    remove: store.remove("key", "entry"),
    lease: store.lease("key", "1 minute"),
    extend: lease.extend,
    release: lease.release
  }
  for (const [operation, effect] of Object.entries(operations)) {
    const failure = yield* Effect.flip<unknown, TokenStore.TokenStoreError, never>(effect)
    deepStrictEqual([failure.operation, failure.reason], [operation, "ERR"])
  }
})

test.each<readonly [reason: string, error: unknown]>([
  [
    "ECONNRESET",
    Object.assign(new Error("WRONGPASS an-invented-password"), { code: "ECONNRESET" })
  ],
  ["EPIPE", { code: "EPIPE", message: "an-invented-password" }],
  ["OOM", Object.assign(new Error("OOM an-invented-password"), { code: 7 })],
  ["ERR", new Error("ERR an-invented-password")],
  ["Error", new Error("A an-invented-password")],
  ["Error", new Error("NOAUTH: an-invented-password")],
  ["TypeError", new TypeError("an-invented-password NOT known")],
  ["unknown", "WRONGPASS an-invented-password"],
  ["unknown", null],
  ...renamed
])(
  "a failed command has the reason %s without any other part of the client's error",
  function*([reason, error]) {
    const failure = yield* Effect.flip(failing(error as Error).get("key")) // libraries reject with other values too
    assert.strictEqual(failure.reason, reason)
    assert.notInclude(renderings(failure), "invented")
  }
)

const config = (variables: Record<string, string>, layer = RedisTokenStore.layerConfig()) =>
  Layer.build(layer).pipe(
    Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables)))),
    Effect.map((context) => Layer.succeedContext(context))
  )

/** Connects a client, and closes it with the scope. */
const client = <A extends { connect(): Promise<unknown>; destroy(): void }>(
  make: () => A
): Effect.Effect<A, never, Scope.Scope> =>
  Effect.tap(
    Effect.acquireRelease(Effect.sync(make), (client) => Effect.sync(() => client.destroy())),
    (client) => Effect.promise(() => client.connect())
  )

describe.skipIf(isLeftOut)("RedisTokenStore", () => {
  const emptyRedis = sharedRedis()

  test.live("RedisTokenStore puts the prefix before the name of each key", function*() {
    const { command, url } = yield* emptyRedis
    const [mine, theirs, plain] = yield* Effect.all([
      made(url, "mine:"),
      made(url, "theirs:"),
      made(url)
    ])
    yield* Effect.forEach([mine, theirs, plain], (store) => works(store))
    yield* mine.put("key", "entry", "1 minute")
    yield* mine.lease("key", "1 minute")
    deepStrictEqual((yield* command("KEYS", "*") as Effect.Effect<Array<string>>).sort(), [
      "mine:key",
      "mine:key:lease"
    ])
    for (const store of [theirs, plain]) {
      deepStrictEqual(yield* store.get("key"), Option.none())
      assert.isTrue(Option.isSome(yield* store.lease("key", "1 minute")))
    }
    assert.isTrue(yield* mine.remove("key", "entry"))
  })

  test.live("a value of another type is a miss that the next put replaces", function*() {
    const { command, url } = yield* emptyRedis
    const store = yield* made(url)
    yield* command("RPUSH", "key", "of a list")
    deepStrictEqual(yield* store.get("key"), Option.none())
    yield* store.put("key", "entry", "1 minute")
    deepStrictEqual(yield* entryOf(store, "key"), Option.some("entry"))
  })

  test.live("a value without an expiry is a miss that the next put replaces", function*() {
    const { command, url } = yield* emptyRedis
    const store = yield* made(url)
    yield* command("SET", "key", "entry")
    deepStrictEqual(yield* store.get("key"), Option.none())
    yield* store.put("key", "entry", "1 minute")
    deepStrictEqual(yield* entryOf(store, "key"), Option.some("entry"))
  })

  test.live("RedisTokenStore rounds a lifetime with a fraction of a millisecond up", function*() {
    const { command, url } = yield* emptyRedis
    const store = yield* made(url)
    yield* store.put("key", "entry", "50 minutes")
    yield* store.lease("key", "40 minutes")
    const minutes = (key: string) =>
      Effect.map(command("PTTL", key), (millis) => Math.ceil(Number(millis) / 60_000))
    deepStrictEqual(yield* Effect.all([minutes("key"), minutes("key:lease")]), [50, 40])
    yield* store.put("key", "entry", 0.25)
    yield* store.put("key", "entry", 0)
    yield* store.lease("another key", 0)
  })

  test.live("RedisTokenStore gives a lease again to the attempt that already has it, because the response was lost", function*() {
    const { command, url } = yield* emptyRedis
    const own = yield* client(() => redis.createClient({ url }))
    let attempts = 0
    const cluster = {
      set: (key: string, value: string, options: { readonly PX: number }) =>
        own.set(key, value, options),
      eval: async (
        script: string,
        options: { keys: Array<string>; arguments: Array<string> }
      ) => {
        const result = await own.eval(script, options)
        attempts += 1
        return attempts === 1 ? Promise.reject(new Error("the connection is lost")) : result
      },
      masters: []
    }
    const store = RedisTokenStore.fromClient(cluster)
    const lease = Option.getOrThrow(yield* store.lease("key", "1 minute"))
    deepStrictEqual([attempts, yield* store.lease("key", "1 minute")], [2, Option.none()])
    yield* lease.release
    deepStrictEqual(yield* command("KEYS", "*"), [])
  })

  test.live("RedisTokenStore is configured by STORE_API_REDIS_URL, or by other variables", function*() {
    const { url } = yield* emptyRedis
    const store = Effect.flatMap(TokenStore.TokenStore, (store) => works(store))
    yield* Effect.provide(store, yield* config({ STORE_API_REDIS_URL: url }))
    const named = RedisTokenStore.layerConfig({
      url: Config.redacted("MY_URL"),
      prefix: Config.string("MY_PREFIX")
    })
    yield* Effect.provide(store, yield* config({ MY_URL: url, MY_PREFIX: "mine:" }, named))
  })

  test.live("the error names STORE_API_REDIS_URL if it is missing or empty", function*() {
    const missing = yield* Effect.flip(config({}))
    assert.include(renderings(missing), "STORE_API_REDIS_URL")
    assert.notStrictEqual((missing as { readonly _tag?: string })._tag, "ConfigurationError")
    const empty = yield* Effect.flip(config({ STORE_API_REDIS_URL: "" }))
    assert.strictEqual((empty as { readonly _tag?: string })._tag, "ConfigurationError")
  })

  test.live("fromClient works over a client of the application", function*() {
    const { connected, url } = yield* emptyRedis
    const own = yield* client(() => redis.createClient({ url }))
    yield* works(RedisTokenStore.fromClient(own))
    assert.strictEqual(yield* connected, 1)
  })

  test.live("fromClient leaves the client of the application open", function*() {
    const { url } = yield* emptyRedis
    const own = yield* client(() => redis.createClient({ url }))
    yield* works(RedisTokenStore.fromClient(own))
    yield* works(RedisTokenStore.fromClient(own, "mine:"))
  })

  test.live("fromClient works over a pool", function*() {
    const { command, connected, url } = yield* emptyRedis
    const pool = yield* client(() => redis.createClientPool({ url }, { minimum: 3 }))
    yield* works(RedisTokenStore.fromClient(pool))
    assert.isAtLeast(yield* connected, 3)
    yield* RedisTokenStore.fromClient(pool, "pool:").put("key", "entry", "1 minute")
    deepStrictEqual(yield* command("KEYS", "*"), ["pool:key"])
  })
})
