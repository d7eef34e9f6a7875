/** Tests the clients that pool sockets, and node:http with keep-alive: a pooled socket closes when it is used again. */
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, StoreAuth } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { Context, Layer, Option } from "effect"
import { clients } from "../support/clients.js"
import { test } from "../support/test.js"

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

describe.each(pooling)("a pooled socket that the server closed, $name", ({ layer }) => {
  test.live("causes one more attempt, and the caller gets a token", function*() {
    const emulator = yield* Emulator.make()
    // The first response leaves a socket in the pool. The second request fails on it. The third succeeds.
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
  })
})
