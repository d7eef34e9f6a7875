/** A pooled socket that dies as the next request arrives: of the three clients, those that pool, node:http told to. */
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, StoreAuth } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { Context, Effect, Layer, Option } from "effect"
import { clients } from "./clients.js"

const pooling = [
  ...clients.filter(({ name }) => name !== "node:http").map(({ layer, name }) => ({
    name,
    layer: layer(Option.none())
  })),
  {
    name: "node:http with keep-alive",
    layer: Layer.provide(NodeHttpClient.layerWithoutAgent, NodeHttpClient.makeAgentLayer({ keepAlive: true }))
  }
]

describe.each(pooling)("a pooled socket that died, $name", ({ layer }) => {
  it.scopedLive("costs one more attempt, and the caller has a token", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      // The first answer leaves a socket in the pool; the second request finds it dead; the third is served.
      yield* emulator.fail([Fault.status(503), Fault.stale()])
      const context = yield* Layer.build(Layer.provide(
        StoreAuth.layer({
          authUrl: emulator.url,
          apiUrl: emulator.url,
          clientId: Emulator.demoClient.clientId,
          clientSecret: Emulator.demoClient.clientSecret
        }),
        layer
      ))
      yield* Context.get(context, AccessTokenProvider.AccessTokenProvider).get
      const requests = yield* emulator.requests
      deepStrictEqual(requests.map(({ status }) => Option.getOrElse(status, () => "none")), [503, "none", 200])
      assert.strictEqual((yield* emulator.pendingFaults).length, 0)
    }))
})
