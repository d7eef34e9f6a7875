/** The types of platform-node: no layer has requirements, and each declares its errors. */
import type { HttpClient } from "@effect/platform"
import type { NodeHttpClient } from "@effect/platform-node"
import { type AccessToken, type AccessTokenError, type AccessTokenProvider } from "@store-api/core"
import { type AuthorizedHttpClient, type ClientCredentials, StoreAuth, type TokenSource } from "@store-api/core"
import { type TokenStore } from "@store-api/core"
import { NodeHttp, NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import type { ConfigError, Layer, Scope } from "effect"
import { Config, Effect, Redacted } from "effect"
import { expect, test } from "tstyche"

type Services = AccessTokenProvider.AccessTokenProvider | AuthorizedHttpClient.AuthorizedHttpClient
type Errors = AccessTokenError.ConfigurationError | AccessTokenError.CredentialsError

const authUrl = "https://auth.store.example"
const apiUrl = "https://api.store.example"
const clientId = "an id"
const clientSecret = Redacted.make("not a real one")
const credentials = Effect.succeed({} as ClientCredentials.ClientCredentials)

test("NodeHttp", () => {
  expect(NodeHttp.layerDispatcher).type.toBe<
    (options?: NodeHttp.Options) => Layer.Layer<NodeHttpClient.Dispatcher, AccessTokenError.ConfigurationError>
  >()
  expect(NodeHttp.layer).type.toBe<
    (options?: NodeHttp.Options) => Layer.Layer<HttpClient.HttpClient, AccessTokenError.ConfigurationError>
  >()
  expect(NodeHttp.layerConfig).type.toBe<
    (
      config: Config.Config.Wrap<NodeHttp.Options>
    ) => Layer.Layer<HttpClient.HttpClient, AccessTokenError.ConfigurationError | ConfigError.ConfigError>
  >()
})

test("NodeStoreAuth", () => {
  expect<NodeStoreAuth.Options>().type.toBe<NodeStoreAuth.SecretOptions | NodeStoreAuth.CredentialsOptions>()
  expect(NodeStoreAuth.layer).type.toBe<(options: NodeStoreAuth.Options) => Layer.Layer<Services, Errors>>()
  expect(NodeStoreAuth.make).type.toBe<
    (options: NodeStoreAuth.Options) => Effect.Effect<StoreAuth.StoreAuth, Errors, Scope.Scope>
  >()
  expect(NodeStoreAuth.layerShared).type.toBe<
    (options: NodeStoreAuth.Options & StoreAuth.Sharing) => Layer.Layer<Services, Errors, TokenStore.TokenStore>
  >()
  expect(NodeStoreAuth.layerSharedConfig).type.toBe<
    (
      options?:
        | Config.Config<NodeStoreAuth.Options & StoreAuth.Sharing>
        | Config.Config.Wrap<NodeStoreAuth.SecretOptions & StoreAuth.Sharing>
        | Config.Config.Wrap<NodeStoreAuth.CredentialsOptions & StoreAuth.Sharing>
    ) => Layer.Layer<Services, Errors | ConfigError.ConfigError, TokenStore.TokenStore>
  >()
  expect(NodeStoreAuth.layerFromSource).type.toBe<
    (
      options: NodeStoreAuth.SourceOptions
    ) => Layer.Layer<Services, AccessTokenError.ConfigurationError, TokenSource.TokenSource>
  >()
  expect(NodeStoreAuth.layerConfig).type.toBe<
    (
      options?:
        | Config.Config<NodeStoreAuth.Options>
        | Config.Config.Wrap<NodeStoreAuth.SecretOptions>
        | Config.Config.Wrap<NodeStoreAuth.CredentialsOptions>
    ) => Layer.Layer<Services, Errors | ConfigError.ConfigError>
  >()
})

test("PromiseStoreAuth", () => {
  expect(PromiseStoreAuth.make).type.toBe<(options?: PromiseStoreAuth.Options) => PromiseStoreAuth.PromiseStoreAuth>()
  expect<PromiseStoreAuth.PromiseStoreAuth>().type.toBe<{
    readonly getToken: () => Promise<AccessToken.AccessToken>
    readonly reject: (token: AccessToken.AccessToken) => Promise<void>
    readonly status: () => Promise<AccessTokenProvider.ProviderStatus>
    readonly fetch: typeof globalThis.fetch
    readonly dispose: () => Promise<void>
  }>()
  // Such as openapi-fetch expects it.
  expect<PromiseStoreAuth.PromiseStoreAuth["fetch"]>().type.toBeAssignableTo<(request: Request) => Promise<Response>>()
})

test("NodeHttp.Options", () => {
  expect(NodeHttp.layer).type.toBeCallableWith()
  expect(NodeHttp.layer).type.toBeCallableWith({ connections: 10, proxy: "none", ca: ["one", new Uint8Array()] })
  expect(NodeHttp.layer).type.toBeCallableWith({ proxy: new URL(apiUrl), cert: "", key: Redacted.make("") })
  expect(NodeHttp.layer).type.not.toBeCallableWith({ connections: "10" })
  expect(NodeHttp.layer).type.not.toBeCallableWith({ proxy: apiUrl })
  expect(NodeHttp.layer).type.not.toBeCallableWith({ ca: 1 })
  expect(NodeHttp.layer).type.not.toBeCallableWith({ key: "in the open" })
  expect(NodeHttp.layer).type.not.toBeCallableWith({ rejectUnauthorized: false })
  expect(NodeHttp.layerDispatcher).type.not.toBeCallableWith({ rejectUnauthorized: false })
  expect(NodeHttp.layerConfig).type.toBeCallableWith({ connections: Config.integer("CONNECTIONS") })
  expect(NodeHttp.layerConfig).type.not.toBeCallableWith({ connections: Config.string("CONNECTIONS") })
})

test("NodeStoreAuth.Options", () => {
  const { layer } = NodeStoreAuth
  expect(layer).type.toBeCallableWith({ authUrl, apiUrl, clientId, clientSecret, http: { connections: 1 } })
  expect(layer).type.toBeCallableWith({ authUrl, apiUrl, credentials })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, clientId, clientSecret: "in the open" })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, clientId })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, http: { pool: 1 } })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, connections: 1 })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, provider: { leeway: "a bit" } })
  expect(NodeStoreAuth.layerFromSource).type.toBeCallableWith({ apiUrl, http: { proxy: "none" } })
  expect(NodeStoreAuth.layerFromSource).type.not.toBeCallableWith({ authUrl, apiUrl })
})

test("PromiseStoreAuth.Options", () => {
  const { make } = PromiseStoreAuth
  const store = {} as Layer.Layer<TokenStore.TokenStore, AccessTokenError.ConfigurationError>
  const shared = { lease: "5 seconds" } as const
  expect(make).type.toBeCallableWith()
  expect(make).type.toBeCallableWith({ http: { connections: 1 }, provider: { leeway: "10 seconds" } })
  expect(make).type.toBeCallableWith({ store, shared })
  expect(make).type.toBeCallableWith({ authUrl, apiUrl, clientId, clientSecret })
  expect(make).type.toBeCallableWith({ authUrl, apiUrl, credentials, http: { connections: 1 }, store, shared })
  expect(make).type.not.toBeCallableWith({ authUrl, apiUrl })
  expect(make).type.not.toBeCallableWith({ store, apiUrl })
  expect(make).type.not.toBeCallableWith({ store, credentials })
  expect(make).type.not.toBeCallableWith({ authUrl, apiUrl, clientId, clientSecret, credentials })
  expect(make).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, shared })
  expect(make).type.not.toBeCallableWith({ shared })
  expect(make).type.not.toBeCallableWith({ store, pool: 1 })
  expect(make).type.not.toBeCallableWith({ store: {} as Layer.Layer<TokenSource.TokenSource> })
  expect(make).type.not.toBeCallableWith({ store: {} as Layer.Layer<TokenStore.TokenStore, never, Scope.Scope> })
})

test("one way to give credentials, not both", () => {
  expect(NodeStoreAuth.layer).type.not.toBeCallableWith({ authUrl, apiUrl, clientId, clientSecret, credentials })
})

test("the layer takes its options from a Config, whole or field by field", () => {
  const fields = { authUrl: Config.string("AUTH_URL"), apiUrl: Config.string("API_URL"), clientId: Config.string("ID") }
  expect(NodeStoreAuth.layerConfig).type.toBeCallableWith()
  expect(NodeStoreAuth.layerConfig).type.toBeCallableWith(StoreAuth.config("OTHER"))
  expect(NodeStoreAuth.layerConfig).type.toBeCallableWith({ ...fields, clientSecret: Config.redacted("SECRET") })
  expect(NodeStoreAuth.layerConfig).type.not.toBeCallableWith({ ...fields, clientSecret: Config.string("SECRET") })
  expect(NodeStoreAuth.layerConfig).type.not.toBeCallableWith(fields)
})
