import * as Http from "node:http"
import { HttpClient } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, AuthorizedHttpClient, TokenStore } from "@store-api/core"
import { NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { at, listen, store, until } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Context, Effect, Layer, Stream } from "effect"

/** The store, with a download that never ends at `/export`, and the number of its token requests. */
const startDownloads = Effect.suspend(() => {
  const counts = { tokens: 0 }
  const server = Http.createServer((request, response) => {
    if (request.url === "/export") {
      response.writeHead(200).write("the first line\n")
      return
    }
    if (request.url === "/v1/oauth/accesstoken") counts.tokens++
    store(request, response)
  })
  return Effect.map(listen(server), (server) => ({ ...server, tokens: () => counts.tokens }))
})

/** One connection, and a time limit that a token request without a connection exceeds. */
const options = (url: string) => ({
  ...at(url),
  http: { proxy: "none", connections: 1 } as const,
  endpoint: { attemptTimeout: "2 seconds", deadline: "2 seconds" } as const
})

interface Services {
  readonly client: AuthorizedHttpClient.Service
  readonly provider: AccessTokenProvider.Service
}

const built = <E, R>(
  layer: Layer.Layer<
    | AuthorizedHttpClient.AuthorizedHttpClient
    | AccessTokenProvider.AccessTokenProvider,
    E,
    R
  >
) =>
  Effect.map(Layer.build(layer), (context): Services => ({
    client: Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient),
    provider: Context.get(context, AccessTokenProvider.AccessTokenProvider)
  }))

const ways = {
  "NodeStoreAuth.make": (url: string) => NodeStoreAuth.make(options(url)),
  "NodeStoreAuth.layer": (url: string) => built(NodeStoreAuth.layer(options(url))),
  "NodeStoreAuth.layerShared": (url: string) =>
    built(NodeStoreAuth.layerShared(options(url)).pipe(Layer.provide(TokenStore.layerMemory)))
}

describe("with one connection, which a long download occupies", () => {
  for (const [name, make] of Object.entries(ways)) {
    test.live(`a token request gets through: ${name}`, function*() {
      const server = yield* startDownloads
      const { client, provider } = yield* make(server.url)
      const { stream } = yield* client.get("/export")
      yield* Effect.forkScoped(Stream.runDrain(stream))
      yield* provider.refresh
      assert.strictEqual(server.tokens(), 2)
      assert.strictEqual(server.most(), 2, "one connection for each kind of requests")
    })
  }

  test.live("a token request gets through: PromiseStoreAuth", function*() {
    const server = yield* startDownloads
    const { dispose, fetch, getToken, reject } = PromiseStoreAuth.make(options(server.url))
    const token = yield* Effect.promise(getToken)
    yield* Effect.promise(() => fetch("/export"))
    yield* Effect.promise(() => reject(token))
    yield* Effect.promise(getToken)
    assert.strictEqual(server.tokens(), 2)
    assert.strictEqual(server.most(), 2, "one connection for each kind of requests")
    yield* Effect.promise(dispose)
    yield* until(() => server.open() === 0)
  })
})

test.live("closing the layer closes the connections of both kinds of requests", function*() {
  const server = yield* startDownloads
  yield* Effect.scoped(Effect.gen(function*() {
    const { client } = yield* NodeStoreAuth.make(options(server.url))
    yield* Effect.flatMap(client.get("/orders"), ({ text }) => text)
    assert.strictEqual(server.open(), 2)
  }))
  yield* until(() => server.open() === 0)
})

test.live("transformClient is called once for each kind of requests", function*() {
  const server = yield* startDownloads
  const seen: Array<string> = []
  const { client } = yield* NodeStoreAuth.make({
    ...options(server.url),
    transformClient: HttpClient.mapRequest((request) => {
      seen.push(request.url.replace(server.url, ""))
      return request
    })
  })
  yield* Effect.flatMap(client.get("/orders"), ({ text }) => text)
  deepStrictEqual(seen, ["/orders", "/v1/oauth/accesstoken"])
})
