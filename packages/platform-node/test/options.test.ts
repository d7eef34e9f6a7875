/**
 * Every option refuses wrong values when it is built, by layer or by promise: with a `ConfigurationError` that names
 * the option and shows no value, and never with a defect.
 */
import { NodeContext } from "@effect/platform-node"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import {
  FileTokenStore,
  NodeHttp,
  NodeStoreAuth,
  PromiseStoreAuth
} from "@store-api/platform-node"
import { onThisMachine, withVariables } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { isRefused, notA, untyped, type Wrong } from "@store-api/testing/wrongOptions"
import { Duration, Effect, Layer, Predicate, Redacted } from "effect"

onThisMachine()

const valid = {
  authUrl: "https://auth.store.example",
  apiUrl: "https://api.store.example",
  clientId: "demo-client",
  clientSecret: Redacted.make("an invented secret"),
  http: { proxy: "none" }
} as const

type Build = Effect.Effect<unknown, unknown>

const built = <A, E>(layer: Layer.Layer<A, E>): Build => Effect.scoped(Layer.build(layer))

/** A promise of each function that rejects. */
const calls = (options: unknown): ReadonlyArray<Build> => {
  const store = PromiseStoreAuth.make(untyped(options))
  const functions: ReadonlyArray<() => Promise<unknown>> = [
    store.getToken,
    store.status,
    () => store.fetch("/orders")
  ]
  return functions.map((call) => Effect.tryPromise({ try: call, catch: (error) => error }))
}

/** Ways to pass the same options. */
const ways: Readonly<Record<string, (options: never) => ReadonlyArray<Build>>> = {
  "NodeStoreAuth.layer": (options) => [built(NodeStoreAuth.layer(options))],
  "NodeStoreAuth.layerShared": (options) => [
    built(Layer.provide(NodeStoreAuth.layerShared(options), TokenStore.layerMemory))
  ],
  "NodeStoreAuth.make": (options) => [Effect.scoped(NodeStoreAuth.make(options))],
  "PromiseStoreAuth.make": calls
}

const isRefusedBy = (way: keyof typeof ways, options: unknown, option: string) =>
  Effect.forEach(
    ways[way]?.(untyped(options)) ?? [],
    (build) => isRefused(build, option, options)
  )

const certificate = { cert: "a canary", key: Redacted.make("a canary") }

const ofHttp: Wrong<NodeHttp.Options> = {
  connections: [...notA.number, 0, -1, 1.5, Infinity],
  proxy: [
    ...notA.object,
    {},
    "canary",
    "ftp://canary.example",
    new URL("socks5://canary@proxy.example")
  ],
  ca: [...notA.list, [null], ["a canary"], [5]],
  cert: [...notA.text, "", "a canary"],
  key: notA.secret.filter(Predicate.not(Redacted.isRedacted)),
  dispatcher: [...notA.object, {}, { dispatch: () => "canary" }, { dispatch: 5, request: 5 }]
}

test.live.each(Object.entries(ofHttp))(
  "a layer fails with a wrong value of the option http.%s",
  function*([name, values]) {
    for (const value of values) {
      const http = { ...name === "cert" || name === "key" ? certificate : {}, [name]: value }
      yield* isRefused(built(NodeHttp.layer(untyped(http))), `http.${name}`, value)
    }
  }
)

test.live("a layer fails with a wrong value of http, however it is passed", function*() {
  for (const way of Object.keys(ways)) {
    for (const http of notA.object) yield* isRefusedBy(way, { ...valid, http }, "http")
    yield* isRefusedBy(way, { ...valid, http: { connections: 0 } }, "http.connections")
  }
})

test.live("a layer fails with a wrong value of an option of StoreAuth, however it is passed", function*() {
  for (const way of Object.keys(ways)) {
    for (const options of notA.object) yield* isRefusedBy(way, options, "options")
    yield* isRefusedBy(way, { ...valid, provider: { leeway: -1 } }, "provider.leeway")
    yield* isRefusedBy(way, { ...valid, clientSecret: "a plain canary" }, "clientSecret")
    yield* isRefusedBy(way, { ...valid, credentials: Effect.void }, "credentials")
    yield* isRefusedBy(way, { ...valid, apiUrl: undefined }, "apiUrl")
  }
})

const ofStore: Wrong<FileTokenStore.Options> = { folder: [...notA.text, ""] }

test.live.each(Object.entries(ofStore))(
  "a layer fails with a wrong value of FileTokenStore.%s",
  function*([name, values]) {
    for (const value of values) {
      const options = untyped({ [name]: value })
      yield* isRefused(built(FileTokenStore.layer(options)), `FileTokenStore.${name}`, value)
      const made = Effect.provide(FileTokenStore.make(options), NodeContext.layer)
      yield* isRefused(made, `FileTokenStore.${name}`, value)
    }
    for (const options of notA.object) {
      yield* isRefused(
        built(FileTokenStore.layer(untyped(options))),
        "FileTokenStore",
        options
      )
    }
  }
)

const environment = {
  STORE_API_AUTH_URL: "https://auth.environment.example",
  STORE_API_URL: "https://api.environment.example",
  STORE_API_CLIENT_ID: "environment",
  STORE_API_CLIENT_SECRET: "an invented secret of the environment"
}
const names = ["authUrl", "apiUrl", "clientId", "clientSecret"] as const

test.live("what is missing beside given URLs or credentials is not read from variables", function*() {
  for (let some = 1; some < 2 ** names.length - 1; some++) {
    const given = names.filter((_, index) => (some & 2 ** index) > 0)
    const options = Object.fromEntries(given.map((name) => [name, valid[name]]))
    for (const call of calls({ ...options, http: valid.http })) {
      const error = yield* Effect.flip(withVariables(environment)(call))
      assert.strictEqual(Reflect.get(error as object, "reason"), "is missing", given.join())
      assert.notInclude<unknown>(given, Reflect.get(error as object, "option"))
    }
  }
})

test.live("PromiseStoreAuth.make needs both URLs with credentials", function*() {
  const credentials = Effect.never
  yield* withVariables(environment)(
    isRefusedBy("PromiseStoreAuth.make", { credentials }, "authUrl")
  )
  const { authUrl } = valid
  yield* withVariables(environment)(
    isRefusedBy("PromiseStoreAuth.make", { authUrl, credentials }, "apiUrl")
  )
})

test.live("PromiseStoreAuth.make fails if store is not a layer", function*() {
  for (const store of [...notA.object, {}]) {
    yield* isRefusedBy("PromiseStoreAuth.make", { ...valid, store }, "store")
  }
})

test.live("PromiseStoreAuth.make needs store with shared", function*() {
  yield* isRefusedBy("PromiseStoreAuth.make", { ...valid, shared: {} }, "store")
})

test.live("PromiseStoreAuth.make fails with a wrong value of shared", function*() {
  const shared = { lease: Duration.zero, maxWait: -1 }
  const store = TokenStore.layerMemory
  yield* isRefusedBy("PromiseStoreAuth.make", { ...valid, store, shared }, "shared.maxWait")
})

test.live("the options that these tests make wrong are otherwise valid", function*() {
  for (const options of [valid, { ...valid, store: TokenStore.layerMemory, shared: {} }]) {
    const { dispose, status } = PromiseStoreAuth.make(options)
    deepStrictEqual((yield* Effect.promise(status)).state, "Empty")
    yield* Effect.promise(dispose)
  }
})
