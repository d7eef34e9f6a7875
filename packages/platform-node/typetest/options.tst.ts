/** The options of platform-node, by their types. docs/reference/api has the type of each function. */
import {
  type AccessTokenError,
  type ClientCredentials,
  TokenRequest,
  type TokenSource,
  type TokenStore
} from "@store-api/core"
import {
  ClientAssertion,
  NodeHttp,
  NodeStoreAuth,
  PromiseStoreAuth
} from "@store-api/platform-node"
import { Config, Effect, type Layer, Redacted, type Scope } from "effect"
import { expect, test } from "tstyche"

const authUrl = "https://auth.store.example"
const apiUrl = "https://api.store.example"
const clientId = "an id"
const clientSecret = Redacted.make("not a real one")
const credentials = Effect.succeed({} as ClientCredentials.ClientCredentials)

test("the fetch of PromiseStoreAuth is the global one", () => {
  expect<PromiseStoreAuth.PromiseStoreAuth["fetch"]>().type.toBe<typeof globalThis.fetch>()
  // Such as openapi-fetch expects it.
  expect<PromiseStoreAuth.PromiseStoreAuth["fetch"]>().type.toBeAssignableTo<
    (request: Request) => Promise<Response>
  >()
})

test("NodeHttp.Options: a private key is Redacted, and no option turns certificates off", () => {
  expect(NodeHttp.layer).type.not.toBeCallableWith({ key: "in the open" })
  expect(NodeHttp.layer).type.not.toBeCallableWith({ rejectUnauthorized: false })
  expect(NodeHttp.layerConfig).type.not.toBeCallableWith({
    connections: Config.string("CONNECTIONS")
  })
})

test("ClientAssertion.fromFile reads the assertion of a token request", () => {
  const assertion = ClientAssertion.fromFile("/an/invented/path")
  expect(TokenRequest.clientAssertion).type.toBeCallableWith(assertion)
  expect(TokenRequest.clientAssertion).type.not.toBeCallableWith(() =>
    Effect.succeed("in the open")
  )
})

test("NodeStoreAuth.Options", () => {
  const { layer } = NodeStoreAuth
  expect(layer).type.not.toBeCallableWith({
    authUrl,
    apiUrl,
    clientId,
    clientSecret: "in the open"
  })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, clientId })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, connections: 1 })
  expect(NodeStoreAuth.layerFromSource).type.not.toBeCallableWith({ authUrl, apiUrl })
})

test("PromiseStoreAuth.Options", () => {
  const { make } = PromiseStoreAuth
  const store = {} as Layer.Layer<TokenStore.TokenStore, AccessTokenError.ConfigurationError>
  const shared = { lease: "5 seconds" } as const
  expect(make).type.toBeCallableWith({
    authUrl,
    apiUrl,
    credentials,
    http: { connections: 1 },
    store,
    shared
  })
  expect(make).type.not.toBeCallableWith({ authUrl, apiUrl })
  expect(make).type.not.toBeCallableWith({ store, apiUrl })
  expect(make).type.not.toBeCallableWith({ store, credentials })
  expect(make).type.not.toBeCallableWith({
    authUrl,
    apiUrl,
    clientId,
    clientSecret,
    credentials
  })
  expect(make).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, shared })
  expect(make).type.not.toBeCallableWith({ shared })
  expect(make).type.not.toBeCallableWith({ store, pool: 1 })
  expect(make).type.not.toBeCallableWith({ store: {} as Layer.Layer<TokenSource.TokenSource> })
  expect(make).type.not.toBeCallableWith({
    store: {} as Layer.Layer<TokenStore.TokenStore, never, Scope.Scope>
  })
})
