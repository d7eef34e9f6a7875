/** Runs a scenario of the emulator with a client that has what the scenario requires. */
import type { HttpClient } from "@effect/platform"
import { ClientCredentials, StoreAuth } from "@store-api/core"
import { Dpop } from "@store-api/dpop"
import { Emulator, Scenario } from "@store-api/emulator"
import { Effect, Layer, Redacted } from "effect"
import { signedAssertion } from "./assertions.js"
import { optionsFor } from "./emulator.js"
import { clientWithKey, pemOf } from "./keys.js"

/** Starts an emulator with the options and the script of a scenario, and a client for it. */
export const setUpScenario = (
  name: Scenario.Name,
  layer: Layer.Layer<HttpClient.HttpClient>
) =>
  Effect.gen(function*() {
    const { options: { clientAuthentication, dpop, tls }, script } = Scenario.all[name]
    const { client, privateKey } = clientWithKey()
    const emulator = yield* Emulator.make({
      clientAuthentication,
      dpop,
      tls,
      clients: [client]
    })
    yield* emulator.fail(script)
    const { apiUrl, authUrl } = optionsFor(emulator)
    const withAssertion: StoreAuth.Options = {
      authUrl,
      apiUrl,
      credentials: ClientCredentials.withoutSecret(client.clientId),
      endpoint: { request: signedAssertion(privateKey, emulator.url) }
    }
    const own = clientAuthentication === "private_key_jwt"
      ? withAssertion
      : optionsFor(emulator, client)
    const proofKey = pemOf()
    const { bind } = yield* Dpop.make({ privateKey: Redacted.make(proofKey) })
    const options = dpop === undefined ? own : bind(own)
    const context = yield* Layer.build(layer)
    const store = yield* Effect.provide(StoreAuth.make(options), context)
    return { emulator, store, options, keys: [privateKey, proofKey] }
  })
