/** The types of platform-node: no layer has requirements, and each declares its errors. */
import type { HttpClient } from "@effect/platform"
import type { NodeHttpClient } from "@effect/platform-node"
import type { AuthorizedHttpClient, ClientCredentials, StoreAuth, TokenSource } from "@store-api/core"
import { type AccessToken, type AccessTokenError, type AccessTokenProvider } from "@store-api/core"
import { type TokenStore } from "@store-api/core"
import { NodeHttp, NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import type { ConfigError, Layer, Scope } from "effect"
import { Config, Effect, Redacted } from "effect"
import { expect, test } from "tstyche"

type Services = AccessTokenProvider.AccessTokenProvider | AuthorizedHttpClient.AuthorizedHttpClient
type Failure = ConfigError.ConfigError
type Invalid = AccessTokenError.ConfigurationError
type Options = NodeStoreAuth.Options
type Secret = NodeStoreAuth.SecretOptions
type Credentials = NodeStoreAuth.CredentialsOptions
type Shared = StoreAuth.Sharing
type Wrap<A> = Config.Config.Wrap<A>
type Errors = AccessTokenError.ConfigurationError | AccessTokenError.CredentialsError

const authUrl = "https://auth.store.example"
const apiUrl = "https://api.store.example"
const clientId = "an id"
const clientSecret = Redacted.make("not a real one")
const credentials = Effect.succeed({} as ClientCredentials.ClientCredentials)

test("NodeHttp", () => {
  type Http = HttpClient.HttpClient
  type Dispatcher = NodeHttpClient.Dispatcher
  expect(NodeHttp.layerDispatcher).type.toBe<(options?: NodeHttp.Options) => Layer.Layer<Dispatcher, Invalid>>()
  expect(NodeHttp.layer).type.toBe<(options?: NodeHttp.Options) => Layer.Layer<Http, Invalid>>()
  expect(NodeHttp.layerConfig).type.toBe<(config: Wrap<NodeHttp.Options>) => Layer.Layer<Http, Invalid | Failure>>()
})

test("NodeStoreAuth", () => {
  type Configs = Config.Config<Options> | Wrap<Secret> | Wrap<Credentials>
  type SharedConfigs = Config.Config<Options & Shared> | Wrap<Secret & Shared> | Wrap<Credentials & Shared>
  type Store = TokenStore.TokenStore
  type Source = TokenSource.TokenSource
  expect<Options>().type.toBe<Secret | Credentials>()
  expect(NodeStoreAuth.layer).type.toBe<(options: Options) => Layer.Layer<Services, Errors>>()
  expect(NodeStoreAuth.make).type.toBe<(options: Options) => Effect.Effect<StoreAuth.StoreAuth, Errors, Scope.Scope>>()
  expect(NodeStoreAuth.layerShared).type.toBe<(options: Options & Shared) => Layer.Layer<Services, Errors, Store>>()
  expect(NodeStoreAuth.layerSharedConfig).type.toBe<
    (options?: SharedConfigs) => Layer.Layer<Services, Errors | Failure, Store>
  >()
  expect(NodeStoreAuth.layerFromSource).type.toBe<
    (options: NodeStoreAuth.SourceOptions) => Layer.Layer<Services, Invalid, Source>
  >()
  expect(NodeStoreAuth.layerConfig).type.toBe<(options?: Configs) => Layer.Layer<Services, Errors | Failure>>()
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
