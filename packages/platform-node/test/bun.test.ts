import { Undici } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { NodeHttp, NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import {
  at,
  authorized,
  onThisMachine,
  startStore,
  withVariables
} from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect, Layer, Redacted } from "effect"

onThisMachine()

/** The runtimes suite runs on Bun itself. Here, only the global that tells it apart is defined. */
const pretendBun = Effect.acquireRelease(
  Effect.sync(() => Reflect.set(globalThis, "Bun", {})),
  () => Effect.sync(() => Reflect.deleteProperty(globalThis, "Bun"))
)

/** The URLs that the global `fetch` requests. */
const recordFetch = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const original = globalThis.fetch
      const urls: Array<string> = []
      globalThis.fetch = (input, init) => {
        urls.push(input instanceof Request ? input.url : String(input))
        return original(input, init)
      }
      return { original, urls }
    }),
    ({ original }) =>
      Effect.sync(() => {
        globalThis.fetch = original
      })
  ),
  ({ urls }) => urls
)

/** Calls the API with a client of Effect and with the promise API, each with a token of its own. */
const callWithBoth = (url: string) =>
  Effect.gen(function*() {
    const { client } = yield* NodeStoreAuth.make(at(url))
    const response = yield* client.get("/orders")
    deepStrictEqual(yield* response.json, authorized)
    const { dispose, fetch } = PromiseStoreAuth.make(at(url))
    deepStrictEqual(
      yield* Effect.promise(() => fetch("/orders").then((response) => response.json())),
      authorized
    )
    yield* Effect.promise(dispose)
  })

describe("on Bun, which replaces undici by a stub", () => {
  test.live("NodeStoreAuth and PromiseStoreAuth use fetch", function*() {
    yield* pretendBun
    const { url } = yield* startStore
    const requested = yield* recordFetch
    yield* callWithBoth(url)
    const paths = ["/v1/oauth/accesstoken", "/orders"]
    deepStrictEqual(requested, [...paths, ...paths].map((path) => `${url}${path}`))
  })

  test.live("a fetch that is replaced after the first requests sends the next ones", function*() {
    yield* pretendBun
    const { url } = yield* startStore
    yield* callWithBoth(url)
    const requested = yield* recordFetch
    yield* callWithBoth(url)
    assert.lengthOf(requested, 4)
  })

  test.live.each<readonly [name: string, http: NodeHttp.Options]>([
    ["connections", { connections: 1 }],
    ["ca", { ca: "a text" }],
    ["cert", { cert: "a text" }],
    ["key", { key: Redacted.make("a text") }],
    ["dispatcher", { dispatcher: new Undici.Agent() }],
    ["proxy", { proxy: new URL("http://127.0.0.1:9") }]
  ])("the option http.%s is refused", function*([name, http]) {
    yield* pretendBun
    const options = { ...at("http://127.0.0.1:9"), http }
    const { dispose, getToken } = PromiseStoreAuth.make(options)
    const rejection = yield* Effect.flip(Effect.tryPromise({
      try: getToken,
      catch: (error) => error
    }))
    for (const error of [rejection, yield* Effect.flip(NodeStoreAuth.make(options))]) {
      assert(error instanceof Error)
      assert.include(error.message, `http.${name}`)
      assert.include(error.message, "Bun")
    }
    yield* Effect.promise(dispose)
  })

  test.live("the proxy none is refused if the environment has a proxy", function*() {
    yield* pretendBun
    const layer = NodeHttp.layer({ proxy: "none" })
    yield* Effect.scoped(Layer.build(layer))
    const error = yield* Effect.flip(Layer.launch(layer)).pipe(
      withVariables({ HTTP_PROXY: "http://127.0.0.1:9" })
    )
    assert.strictEqual(error.option, "http.proxy")
  })
})
