/** An endpoint where no server listens, and a pooled socket that has closed. */
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, StoreAuth } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { Context, Effect, Layer, Option } from "effect"
import * as CaptureServer from "../support/captureServer.js"
import { type ClientLayer, clients } from "../support/clients.js"
import { test } from "../support/test.js"

const provider = (url: string, client: ClientLayer) =>
  Layer.build(Layer.provide(StoreAuth.layer({ authUrl: url, apiUrl: url, ...Emulator.demoClient }), client)).pipe(
    Effect.map(Context.get(AccessTokenProvider.AccessTokenProvider))
  )

const all = clients.map(({ layer, name }) => ({ name, layer: layer(Option.none()) }))

describe.concurrent.each(all)("refused connections, $name", ({ layer }) => {
  test.live("when no server listens, get retries within the deadline and fails with ECONNREFUSED", function*() {
    const { get } = yield* provider(CaptureServer.nothing, layer)
    const error = yield* Effect.flip(get)
    assert(error._tag === "TokenRequestError")
    deepStrictEqual([error.reason, error.code], ["Transport", Option.some("ECONNREFUSED")])
    assert.isAtLeast(error.attempts, 2)
  })
})

/** The clients that pool sockets, and node:http with keep-alive. */
const pooling = all.filter(({ name }) => name !== "node:http").concat({
  name: "node:http with keep-alive",
  layer: Layer.provide(NodeHttpClient.layerWithoutAgent, NodeHttpClient.makeAgentLayer({ keepAlive: true }))
})

describe.each(pooling)("a pooled socket that the server closed, $name", ({ layer }) => {
  test.live("causes one more attempt, and the caller gets a token", function*() {
    const emulator = yield* Emulator.make()
    // The first response leaves a socket in the pool. The second request fails on it. The third succeeds.
    yield* emulator.fail([Fault.status(503), Fault.stale()])
    yield* (yield* provider(emulator.url, layer)).get
    const requests = yield* emulator.requests
    deepStrictEqual(requests.map(({ status }) => Option.getOrElse(status, () => "none")), [503, "none", 200])
    assert.strictEqual((yield* emulator.pendingFaults).length, 0)
  })
})
