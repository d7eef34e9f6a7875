/** Tests of an application as in its own project: without a server, and with the emulator. */
import { HttpClient, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import {
  AccessToken,
  AccessTokenError,
  AccessTokenProvider,
  AuthorizedHttpClient
} from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { NodeStoreAuth } from "@store-api/platform-node"
import { DateTime, Effect, Layer, Redacted } from "effect"
import { isOpen } from "../src/shop.js"

const down = new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 })

const token = new AccessToken.AccessToken({
  value: Redacted.make("an-invented-token"),
  acquiredAt: DateTime.unsafeMake("2026-01-15T12:00:00Z"),
  expiresAt: DateTime.unsafeMake("2026-01-15T13:00:00Z")
})

const api = HttpClient.make((request) =>
  Effect.succeed(HttpClientResponse.fromWeb(request, new Response("{}")))
)

/** In five lines: scripted tokens and a scripted API. */
const shopTest = (tokens: Parameters<typeof AccessTokenProvider.layerTest>[0]) =>
  AuthorizedHttpClient.layer({ apiUrl: "https://api.store.example" }).pipe(
    Layer.provide(AccessTokenProvider.layerTest(tokens)),
    Layer.provide(Layer.succeed(HttpClient.HttpClient, api))
  )

const auth = ({ url }: Emulator.Service) =>
  NodeStoreAuth.layer({ authUrl: url, apiUrl: url, ...Emulator.demoClient })

/** In five lines: a token service and an API on this machine, with faults on demand. */
const EmulatorTest = Layer.unwrapEffect(Effect.map(Emulator.Emulator, auth)).pipe(
  Layer.provideMerge(Emulator.layer())
)

describe("the shop", () => {
  it.effect("is closed while no token is available", () =>
    Effect.gen(function*() {
      assert.isFalse(yield* isOpen)
    }).pipe(Effect.provide(shopTest(Effect.fail(down)))))

  it.effect("is open with a token", () =>
    Effect.gen(function*() {
      assert.isTrue(yield* isOpen)
    }).pipe(Effect.provide(shopTest(token))))

  it.scopedLive("is open despite a failed token request and a revoked token", () =>
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
