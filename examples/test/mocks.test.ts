/** The requests of each layer that mocks see, as docs/tutorial/2-testing.md says. */
import * as Http from "node:http"
import { FetchHttpClient, type HttpClient } from "@effect/platform"
import { NodeHttpClient, Undici } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { StoreAuth } from "@store-api/core"
import { NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { at, call, listen, onThisMachine, store } from "@store-api/testing/loopback"
import { Effect, Exit, Layer, type Scope } from "effect"
import { http, HttpResponse } from "msw"
import { setupServer } from "msw/node"
import nock from "nock"
import { afterAll, vi } from "vitest"

onThisMachine()

// It is active from its import on.
nock.restore()

const token = { access_token: "a-mocked-token", token_type: "Bearer", expires_in: 3600 }
const orders = ["a chair"]

/** A way to call the store: with the token request, and a request for orders. */
type Call = (url: string) => Effect.Effect<unknown, unknown, Scope.Scope>

const over = (client: Layer.Layer<HttpClient.HttpClient>): Call => (url) =>
  Effect.provide(call(), Layer.provide(StoreAuth.layer(at(url)), client))

const promised = (
  options: PromiseStoreAuth.FetchOptions & NodeStoreAuth.HttpOptions
): Call =>
(url) =>
  Effect.acquireUseRelease(
    Effect.sync(() => PromiseStoreAuth.make({ ...options, ...at(url) })),
    (store) =>
      Effect.tryPromise({
        try: async () => (await store.fetch("/orders")).json() as Promise<unknown>,
        catch: (error) => error
      }),
    (store) => Effect.promise(store.dispose)
  )

const calls = {
  "NodeStoreAuth": (url) => Effect.provide(call(), NodeStoreAuth.layer(at(url))),
  "PromiseStoreAuth without fetch": promised({}),
  "PromiseStoreAuth with the global fetch": promised({ fetch: globalThis.fetch }),
  "PromiseStoreAuth with a function that calls it": promised({
    fetch: (input, init) => fetch(input, init)
  }),
  "StoreAuth over FetchHttpClient": over(FetchHttpClient.layer),
  "StoreAuth over NodeHttpClient": over(NodeHttpClient.layer)
} as const satisfies Record<string, Call>

/** The real store, and the paths that it received. */
const realStore = Effect.gen(function*() {
  const received: Array<string | undefined> = []
  const { url } = yield* listen(Http.createServer((request, response) => {
    received.push(request.url)
    store(request, response)
  }))
  return { url, received }
})

const bypassed: Readonly<Record<keyof typeof calls, Array<string | undefined>>> = {
  "NodeStoreAuth": ["/v1/oauth/accesstoken", "/orders"],
  "PromiseStoreAuth without fetch": ["/v1/oauth/accesstoken"],
  "PromiseStoreAuth with the global fetch": [],
  "PromiseStoreAuth with a function that calls it": [],
  "StoreAuth over FetchHttpClient": [],
  "StoreAuth over NodeHttpClient": ["/v1/oauth/accesstoken", "/orders"]
}

const names = Object.keys(calls) as ReadonlyArray<keyof typeof calls>

/** MSW prints each request that it refuses, with its body. */
const beSilent = () => vi.spyOn(console, "error").mockReturnValue(undefined)

describe("MSW", () => {
  const server = setupServer()
  afterAll(() => server.close())

  /** Mocks requests while the scope is open. */
  const listening = (handlers: (url: string) => Parameters<typeof server.use>) =>
    Effect.gen(function*() {
      const real = yield* realStore
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          server.listen({ onUnhandledRequest: "error" })
          server.use(...handlers(real.url))
        }),
        () => Effect.sync(() => server.close())
      )
      return real
    })

  it.scopedLive.each(names)(
    "does not see the requests that reach the store: %s",
    (name) =>
      Effect.gen(function*() {
        const { received, url } = yield* listening((url) => [
          http.post(`${url}/v1/oauth/accesstoken`, () => HttpResponse.json(token)),
          http.get(`${url}/orders`, () => HttpResponse.json(orders))
        ])
        yield* calls[name](url)
        deepStrictEqual(received, bypassed[name])
      })
  )

  it.scopedLive.each(names.filter((name) => bypassed[name].length === 0))(
    "refuses what no handler expects, and nothing leaves the test: %s",
    (name) =>
      Effect.gen(function*() {
        const { received, url } = yield* listening(() => [])
        const printed = yield* Effect.acquireRelease(
          Effect.sync(beSilent),
          (spy) => Effect.sync(() => spy.mockRestore())
        )
        assert.isTrue(Exit.isFailure(yield* Effect.exit(calls[name](url))))
        assert.isEmpty(received)
        // So the page says that a test should use invented credentials.
        assert.include(String(printed.mock.calls), "client_secret=an-invented-secret")
      })
  )
})

describe("nock", () => {
  it.scopedLive.each(names)(
    "does not see the requests that reach the store: %s",
    (name) =>
      Effect.gen(function*() {
        const { received, url } = yield* realStore
        yield* Effect.acquireRelease(
          Effect.sync(() => {
            nock.activate()
            nock(url).post("/v1/oauth/accesstoken").reply(200, token).get("/orders").reply(
              200,
              orders
            )
          }),
          () =>
            Effect.sync(() => {
              nock.cleanAll()
              nock.restore()
            })
        )
        yield* calls[name](url)
        deepStrictEqual(received, bypassed[name])
      })
  )
})

describe("MockAgent", () => {
  const agent = (url: string) => {
    const agent = new Undici.MockAgent()
    agent.disableNetConnect()
    const pool = agent.get(url)
    const options = { headers: { "content-type": "application/json" } }
    pool.intercept({ method: "POST", path: "/v1/oauth/accesstoken" }).reply(
      200,
      token,
      options
    )
    pool.intercept({ path: "/orders" }).reply(200, orders, options)
    return agent
  }

  const ways = {
    NodeStoreAuth: (dispatcher) => (url) =>
      Effect.provide(call(), NodeStoreAuth.layer({ ...at(url), http: { dispatcher } })),
    PromiseStoreAuth: (dispatcher) => promised({ http: { dispatcher } })
  } as const satisfies Record<string, (dispatcher: Undici.MockAgent) => Call>

  it.scopedLive.each(["NodeStoreAuth", "PromiseStoreAuth"] as const)(
    "sees all requests as http.dispatcher of %s",
    (name) =>
      Effect.gen(function*() {
        const { received, url } = yield* realStore
        deepStrictEqual(yield* ways[name](agent(url))(url), orders)
        assert.isEmpty(received)
      })
  )

  it.scopedLive("sees all requests of undici's fetch as the option fetch", () =>
    Effect.gen(function*() {
      const { received, url } = yield* realStore
      const dispatcher = agent(url)
      const fetch = ((input: string, init: Undici.RequestInit) =>
        Undici.fetch(input, { ...init, dispatcher })) as unknown as typeof globalThis.fetch
      deepStrictEqual(yield* promised({ fetch })(url), orders)
      assert.isEmpty(received)
    }))
})
