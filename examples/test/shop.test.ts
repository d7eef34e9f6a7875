/** Tests of an application, as its own project would have them: without a server, and against the emulator. */
import { HttpClient, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { AccessTokenError, AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Effect, Layer } from "effect"
import { isOpen } from "../src/shop.js"

const down = new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 })

/** In five lines: the tokens are a script, and so is the API. */
const ShopTest = AuthorizedHttpClient.layer({ apiUrl: "https://api.store.example" }).pipe(
  Layer.provide(AccessTokenProvider.layerTest(Effect.fail(down))),
  Layer.provide(Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request) => Effect.succeed(HttpClientResponse.fromWeb(request, new Response("{}"))))
  ))
)

/** In five lines: a token service and an API on this machine, with faults on demand. */
const EmulatorTest = Layer.unwrapEffect(
  Effect.map(
    Emulator.Emulator,
    ({ url }) => NodeStoreAuth.layer({ authUrl: url, apiUrl: url, ...Emulator.demoClient, http: { proxy: "none" } })
  )
).pipe(
  Layer.provideMerge(Emulator.layer())
)

describe("the shop", () => {
  it.effect("is closed while no token can be had", () =>
    Effect.gen(function*() {
      assert.isFalse(yield* isOpen)
    }).pipe(Effect.provide(ShopTest)))

  it.scopedLive("is open, also when the token service stumbles and a token is revoked", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.Emulator
      yield* emulator.fail(Fault.status(503))
      assert.isTrue(yield* isOpen)
      yield* emulator.revoke()
      assert.isTrue(yield* isOpen)
      yield* emulator.fail(Fault.status(503, { on: "api" }))
      assert.isFalse(yield* isOpen)
    }).pipe(Effect.provide(EmulatorTest)))
})
