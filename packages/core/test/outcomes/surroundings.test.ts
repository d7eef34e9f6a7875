/** An endpoint where no server listens. */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, StoreAuth } from "@store-api/core"
import { Emulator } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Context, Effect, Layer, Option } from "effect"
import * as CaptureServer from "../support/captureServer.js"
import { type ClientLayer, clients } from "../support/clients.js"

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
