import { HttpApiClient } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { AuthorizedHttpClient } from "@store-api/core"
import { Emulator } from "@store-api/emulator"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { Effect, Layer, Ref } from "effect"
import { plainStoreClient, StoreApi, storeClient } from "../src/declared/api.js"
import * as DeclaredServer from "../src/declared/server.js"
import { tokenRequests } from "./support/program.js"

const setup = Effect.gen(function*() {
  const emulator = yield* Emulator.make()
  const { apiUrl, orders } = yield* DeclaredServer.make(emulator)
  const auth = NodeStoreAuth.layer({
    authUrl: emulator.url,
    apiUrl,
    clientId: Emulator.demoClient.clientId,
    clientSecret: Emulator.demoClient.clientSecret,
    http: { proxy: "none" }
  })
  return { apiUrl, auth, emulator, orders }
})

describe("a declared API: its server and its derived client", () => {
  it.scopedLive("the client over AuthorizedHttpClient calls it, and outlives a revocation, a POST included", () =>
    Effect.gen(function*() {
      const { auth, emulator, orders } = yield* setup
      yield* Effect.gen(function*() {
        const client = yield* storeClient
        assert.strictEqual((yield* client.orders.list()).length, 0)
        yield* emulator.revoke()
        const placed = yield* client.orders.place({ payload: { item: "a chair" } })
        assert.strictEqual(placed.item, "a chair")
        assert.strictEqual((yield* client.orders.list()).length, 1)
        assert.strictEqual((yield* Ref.get(orders)).length, 1, "placed once")
        assert.strictEqual(yield* tokenRequests(emulator), 2)
      }).pipe(Effect.provide(auth))
    }))

  it.scopedLive("its errors are typed: another origin is UntrustedOriginError", () =>
    Effect.gen(function*() {
      const { auth } = yield* setup
      yield* Effect.gen(function*() {
        const httpClient = yield* AuthorizedHttpClient.AuthorizedHttpClient
        const client = yield* HttpApiClient.makeWith(StoreApi, { httpClient, baseUrl: "http://127.0.0.1:9" })
        const caught = yield* client.orders.list().pipe(
          Effect.as("sent"),
          Effect.catchTag("UntrustedOriginError", () => Effect.succeed("refused"))
        )
        assert.strictEqual(caught, "refused")
      }).pipe(Effect.provide(auth))
    }))

  it.scopedLive("layerHttpClient: code that knows no tokens derives its client from the plain tag", () =>
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
