import { createServer } from "node:http"
import { HttpApiBuilder, HttpServer } from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { AuthorizedHttpClient } from "@store-api/core"
import { Emulator } from "@store-api/emulator"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { DateTime, Effect, Layer, Redacted, Ref } from "effect"
import { Bearer, Order, plainStoreClient, StoreApi, storeClient, Unauthorized } from "../src/declaredApi.js"

/** A server of the declared API that lets in the tokens of the emulator while they live. */
const Server = (emulator: Emulator.Service, orders: Ref.Ref<ReadonlyArray<Order>>) =>
  HttpApiBuilder.serve().pipe(
    Layer.provide(HttpApiBuilder.api(StoreApi)),
    Layer.provide(HttpApiBuilder.group(StoreApi, "orders", (handlers) =>
      handlers
        .handle("list", () => Ref.get(orders))
        .handle("place", ({ payload }) =>
          Ref.modify(orders, (all) => {
            const order = new Order({ id: all.length + 1, item: payload.item })
            return [order, [...all, order]]
          })))),
    Layer.provide(Layer.succeed(Bearer, {
      bearer: (sent) =>
        Effect.gen(function*() {
          const now = yield* DateTime.now
          const tokens = yield* emulator.tokens
          const live = tokens.some(({ expiresAt, revoked, value }) =>
            !revoked && DateTime.lessThan(now, expiresAt) && Redacted.value(value) === Redacted.value(sent)
          )
          if (!live) yield* new Unauthorized()
        })
    })),
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" }))
  )

const setup = Effect.gen(function*() {
  const emulator = yield* Emulator.make()
  const orders = yield* Ref.make<ReadonlyArray<Order>>([])
  const context = yield* Layer.build(Server(emulator, orders))
  const { address } = yield* Effect.provide(HttpServer.HttpServer, context)
  if (address._tag !== "TcpAddress") return yield* Effect.dieMessage("no port")
  const apiUrl = `http://127.0.0.1:${address.port}`
  const auth = NodeStoreAuth.layer({
    authUrl: emulator.url,
    apiUrl,
    clientId: Emulator.demoClient.clientId,
    clientSecret: Emulator.demoClient.clientSecret,
    http: { proxy: "none" }
  })
  const tokenRequests = Effect.map(emulator.requests, (all) => all.filter(({ kind }) => kind === "token").length)
  return { apiUrl, auth, emulator, orders, tokenRequests }
})

describe("a declared API: its server and its derived client", () => {
  it.scopedLive("the client over AuthorizedHttpClient calls it, and outlives a revocation, a POST included", () =>
    Effect.gen(function*() {
      const { apiUrl, auth, emulator, orders, tokenRequests } = yield* setup
      yield* Effect.gen(function*() {
        const client = yield* storeClient(apiUrl)
        assert.strictEqual((yield* client.orders.list()).length, 0)
        yield* emulator.revoke()
        const placed = yield* client.orders.place({ payload: { item: "a chair" } })
        assert.strictEqual(placed.item, "a chair")
        assert.strictEqual((yield* client.orders.list()).length, 1)
        assert.strictEqual((yield* Ref.get(orders)).length, 1, "placed once")
        assert.strictEqual(yield* tokenRequests, 2)
      }).pipe(Effect.provide(auth))
    }))

  it.scopedLive("its errors are typed: another origin is UntrustedOriginError", () =>
    Effect.gen(function*() {
      const { auth } = yield* setup
      yield* Effect.gen(function*() {
        const client = yield* storeClient("http://127.0.0.1:9")
        const caught = yield* client.orders.list().pipe(
          Effect.as("sent"),
          Effect.catchTag("UntrustedOriginError", () => Effect.succeed("refused"))
        )
        assert.strictEqual(caught, "refused")
      }).pipe(Effect.provide(auth))
    }))

  it.scopedLive("layerHttpClient: a client made of the plain tag, by code that knows nothing of tokens", () =>
    Effect.gen(function*() {
      const { apiUrl, auth, emulator } = yield* setup
      const Plain = AuthorizedHttpClient.layerHttpClient({ apiUrl }).pipe(
        Layer.provide(auth),
        Layer.provide(NodeHttp.layer({ proxy: "none" }))
      )
      yield* Effect.gen(function*() {
        const client = yield* plainStoreClient(apiUrl)
        yield* client.orders.place({ payload: { item: "a table" } })
        yield* emulator.revoke()
        assert.strictEqual((yield* client.orders.list()).length, 1)
      }).pipe(Effect.provide(Plain))
    }))

  it.scopedLive("control: without the token the server says Unauthorized", () =>
    Effect.gen(function*() {
      const { apiUrl } = yield* setup
      const client = yield* Effect.provide(
        plainStoreClient(apiUrl),
        yield* Layer.build(NodeHttp.layer({ proxy: "none" }))
      )
      const error = yield* Effect.flip(client.orders.list())
      assert.strictEqual(error._tag, "Unauthorized")
    }))
})
