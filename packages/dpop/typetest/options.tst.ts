/** The options that `bind` takes, by their types. docs/reference/api has the type of each function. */
import { ClientCredentials, StoreAuth, TokenRequest } from "@store-api/core"
import type { Dpop } from "@store-api/dpop"
import { NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { Redacted } from "effect"
import { expect, test } from "tstyche"

declare const dpop: Dpop.Dpop

const urls = { authUrl: "https://auth.store.example", apiUrl: "https://api.store.example" }
const secret = {
  ...urls,
  clientId: "demo-client",
  clientSecret: Redacted.make("an invented secret")
}
const effect = { ...urls, credentials: ClientCredentials.fromConfig() }

test("Dpop.bind takes the options of every layer, and returns them", () => {
  const endpoint = { path: "/token", request: TokenRequest.clientSecretPost() }
  expect(StoreAuth.layer).type.toBeCallableWith(dpop.bind(secret))
  expect(StoreAuth.layer).type.toBeCallableWith(dpop.bind({ ...effect, endpoint }))
  const shared = { lease: "10 seconds" } as const
  expect(StoreAuth.layerShared).type.toBeCallableWith(dpop.bind({ ...secret, shared }))
  expect(NodeStoreAuth.layer).type.toBeCallableWith(dpop.bind({ ...effect, http: {} }))
  expect(PromiseStoreAuth.make).type.toBeCallableWith(dpop.bind({ ...secret, http: {} }))
  expect(PromiseStoreAuth.make).type.toBeCallableWith(dpop.bind({}))
})

test("Dpop.bind takes options of StoreAuth as a variable of their type", () => {
  const bound = (options: StoreAuth.Options) => dpop.bind(options)
  expect(bound).type.toBe<(options: StoreAuth.Options) => StoreAuth.Options>()
})

test("Dpop.bind refuses other endpoints and clients", () => {
  expect(dpop.bind).type.not.toBeCallableWith({ ...secret, endpoint: { path: 1 } })
  expect(dpop.bind).type.not.toBeCallableWith({ ...secret, transformClient: true })
})
