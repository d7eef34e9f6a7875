/** A wrong option does not compile. Each wrong one is next to a correct one that differs only in that option. */
import { FetchHttpClient, type HttpClient } from "@effect/platform"
import {
  AccessTokenError,
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth,
  TokenEndpoint,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { Config, Duration, Effect, Layer, Redacted } from "effect"
import { expect, test } from "tstyche"

const authUrl = "https://auth.store.example"
const apiUrl = new URL("https://api.store.example")
const clientId = "an id"
const clientSecret = Redacted.make("not a real one")
const checked = {} as ClientCredentials.ClientCredentials
const credentials = Effect.succeed(checked)

test("AccessTokenProvider.Options: durations", () => {
  expect(AccessTokenProvider.layer).type.toBeCallableWith()
  expect(AccessTokenProvider.layer).type.toBeCallableWith({
    refreshAhead: "5 minutes",
    leeway: 30_000,
    cooldown: { base: "1 second" }
  })
  expect(AccessTokenProvider.layer).type.toBeCallableWith({
    refreshAhead: Duration.minutes(5),
    leeway: undefined,
    cooldown: {}
  })
  expect(AccessTokenProvider.layer).type.not.toBeCallableWith({ refreshAhead: "5 fortnights" })
  expect(AccessTokenProvider.layer).type.not.toBeCallableWith({ leeway: "half a minute" })
  expect(AccessTokenProvider.layer).type.not.toBeCallableWith({ leeway: null })
  expect(AccessTokenProvider.layer).type.not.toBeCallableWith({ cooldown: "1 second" })
  expect(AccessTokenProvider.layer).type.not.toBeCallableWith({ cooldown: { max: "1 moment" } })
  expect(AccessTokenProvider.layer).type.not.toBeCallableWith({ cooldown: { maximum: "1 second" } })
  expect(AccessTokenProvider.layer).type.not.toBeCallableWith({ refreshahead: "5 minutes" })
})

test("AccessTokenProvider.Options", () => {
  expect(AccessTokenProvider.layer).type.toBeCallableWith({ refreshAhead: "1 minute" })
  expect(AccessTokenProvider.layer).type.not.toBeCallableWith({ refreshAhead: "1 lifetime" })
  expect(AccessTokenProvider.layer).type.not.toBeCallableWith({ ttl: "1 minute" })
  expect(AccessTokenProvider.make).type.not.toBeCallableWith({ leeway: true })
  expect(AccessTokenProvider.layerTest).type.not.toBeCallableWith("a token")
  expect(AccessTokenProvider.layerTest).type.not.toBeCallableWith(Effect.fail("any failure"))
})

test("AuthorizedHttpClient.Options", () => {
  const { layer } = AuthorizedHttpClient
  expect(layer).type.toBeCallableWith({ apiUrl, allowInsecure: true, trustedOrigins: [authUrl, apiUrl] })
  expect(layer).type.toBeCallableWith({ apiUrl, header: { name: "X-Token", format: (token: string) => token } })
  expect(layer).type.toBeCallableWith({ apiUrl, retryUnauthorized: undefined })
  expect(layer).type.not.toBeCallableWith()
  expect(layer).type.not.toBeCallableWith({})
  expect(layer).type.not.toBeCallableWith({ apiUrl: 1 })
  expect(layer).type.not.toBeCallableWith({ apiUrl, allowInsecure: "yes" })
  expect(layer).type.not.toBeCallableWith({ apiUrl, trustedOrigins: authUrl })
  expect(layer).type.not.toBeCallableWith({ apiUrl, header: "X-Token" })
  expect(layer).type.not.toBeCallableWith({ apiUrl, header: { format: (token: string) => token } })
  expect(layer).type.not.toBeCallableWith({ apiUrl, header: { name: "X-Token", format: () => 1 } })
  expect(layer).type.not.toBeCallableWith({ apiUrl, retryUnauthorized: 2 })
  expect(layer).type.not.toBeCallableWith({ apiUrl, retries: 2 })
  expect(AuthorizedHttpClient.make).type.not.toBeCallableWith({ apiUrl, retries: 2 })
  expect(AuthorizedHttpClient.layerHttpClient).type.not.toBeCallableWith({ apiUrl, retries: 2 })
  const client = {} as HttpClient.HttpClient
  expect(AuthorizedHttpClient.withAccessToken).type.toBeCallableWith(client, { apiUrl })
  expect(AuthorizedHttpClient.withAccessToken).type.not.toBeCallableWith(client, { apiUrl, retries: 2 })
  expect(AuthorizedHttpClient.withAccessToken).type.not.toBeCallableWith({ apiUrl, retries: 2 })
})

test("ClientCredentials.Options", () => {
  expect(ClientCredentials.make).type.toBeCallableWith({ clientId, clientSecret })
  expect(ClientCredentials.make).type.not.toBeCallableWith({ clientId, clientSecret: "in the open" })
  expect(ClientCredentials.make).type.not.toBeCallableWith({ clientId: Redacted.make(clientId), clientSecret })
  expect(ClientCredentials.make).type.not.toBeCallableWith({ clientSecret })
  expect(ClientCredentials.make).type.not.toBeCallableWith({ clientId, clientSecret, scope: "orders" })
  expect(ClientCredentials.fromConfig).type.toBeCallableWith("MY_STORE")
  expect(ClientCredentials.fromConfig).type.not.toBeCallableWith({ clientId: Config.string("ID") })
})

test("TokenEndpoint.Options", () => {
  const { layer } = TokenEndpoint
  expect(layer).type.toBeCallableWith({ authUrl, credentials, attemptTimeout: "10 seconds", maxResponseBytes: 1024 })
  expect(layer).type.toBeCallableWith({ authUrl, credentials, deadline: 30_000 })
  expect(layer).type.not.toBeCallableWith({ authUrl })
  expect(layer).type.not.toBeCallableWith({ authUrl, credentials: { clientId, clientSecret } })
  expect(layer).type.not.toBeCallableWith({ authUrl, credentials: checked })
  expect(layer).type.not.toBeCallableWith({ authUrl, credentials: Effect.fail("any failure") })
  expect(layer).type.not.toBeCallableWith({ authUrl, credentials, attemptTimeout: "10 ticks" })
  expect(layer).type.not.toBeCallableWith({ authUrl, credentials, deadline: "soon" })
  expect(layer).type.not.toBeCallableWith({ authUrl, credentials, maxResponseBytes: "64 KiB" })
  expect(layer).type.not.toBeCallableWith({ authUrl, credentials, timeout: "10 seconds" })
  expect(TokenEndpoint.make).type.not.toBeCallableWith({ authUrl, credentials, timeout: "10 seconds" })
})

test("StoreAuth.Options", () => {
  const { layer } = StoreAuth
  expect(layer).type.toBeCallableWith({ authUrl, apiUrl, clientId, clientSecret })
  expect(layer).type.toBeCallableWith({ authUrl, apiUrl, credentials })
  expect(layer).type.toBeCallableWith({
    authUrl,
    apiUrl,
    credentials,
    endpoint: { deadline: "1 minute" },
    provider: { leeway: "1 second" },
    client: { retryUnauthorized: false }
  })
  expect(layer).type.not.toBeCallableWith({ apiUrl, clientId, clientSecret })
  expect(layer).type.not.toBeCallableWith({ authUrl, clientId, clientSecret })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, clientId })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, clientId, clientSecret: "in the open" })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, audience: "stores" })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, endpoint: { deadline: "late" } })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, endpoint: { authUrl } })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, provider: { leeway: "a bit" } })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, client: { apiUrl } })
  const transformClient = (client: HttpClient.HttpClient) => client
  expect(layer).type.toBeCallableWith({ authUrl, apiUrl, credentials, transformClient })
  expect(layer).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, transformClient: () => 1 })
})

test("options for sharing are those of layerShared only, which needs a TokenStore", () => {
  const shared = { lease: "10 seconds", maxWait: "1 minute", storeTimeout: 500 } as const
  expect(StoreAuth.layerShared).type.toBeCallableWith({ authUrl, apiUrl, credentials, shared })
  expect(StoreAuth.layerShared).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, shared: { patience: 1 } })
  expect(StoreAuth.layerShared).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, shared: { leeway: 1 } })
  expect(StoreAuth.layer).type.not.toBeCallableWith({ authUrl, apiUrl, credentials, shared })
  const runnable = (effect: Effect.Effect<void, unknown>) => effect
  const use = Effect.asVoid(AccessTokenProvider.AccessTokenProvider)
  const layer = Layer.provide(StoreAuth.layerShared({ authUrl, apiUrl, credentials }), FetchHttpClient.layer)
  expect(runnable).type.toBeCallableWith(Effect.provide(use, Layer.provide(layer, TokenStore.layerMemory)))
  expect(runnable).type.not.toBeCallableWith(Effect.provide(use, layer))
})

test("one way to give credentials, not both", () => {
  expect(StoreAuth.layer).type.not.toBeCallableWith({ authUrl, apiUrl, clientId, clientSecret, credentials })
})

test("StoreAuth.SourceOptions", () => {
  expect(StoreAuth.layerFromSource).type.toBeCallableWith({ apiUrl, provider: { leeway: 0 } })
  expect(StoreAuth.layerFromSource).type.not.toBeCallableWith({ authUrl, apiUrl })
  expect(StoreAuth.layerFromSource).type.not.toBeCallableWith({ apiUrl, endpoint: {} })
})

test("TokenSource", () => {
  const failure = new AccessTokenError.TokenRefusedError({ reason: "Other", status: 400 })
  expect(TokenSource.layer).type.toBeCallableWith(() => Effect.fail(failure))
  expect(TokenSource.layer).type.not.toBeCallableWith(() => Effect.fail("any failure"))
  expect(TokenSource.layer).type.not.toBeCallableWith(() => Effect.succeed("a token"))
  expect(TokenSource.layer).type.not.toBeCallableWith(Effect.fail(failure))
  expect(TokenSource.make).type.not.toBeCallableWith((replacing: string) => Effect.fail(replacing))
})

test("a layer takes its options from a Config, whole or field by field", () => {
  const duration = Config.duration("REFRESH_AHEAD")
  expect(AccessTokenProvider.layerConfig).type.toBeCallableWith({ refreshAhead: duration })
  expect(AccessTokenProvider.layerConfig).type.toBeCallableWith({ cooldown: { base: duration } })
  expect(AccessTokenProvider.layerConfig).type.toBeCallableWith(Config.map(duration, (leeway) => ({ leeway })))
  expect(AccessTokenProvider.layerConfig).type.not.toBeCallableWith({ refreshAhead: Config.boolean("REFRESH_AHEAD") })
  expect(AccessTokenProvider.layerConfig).type.not.toBeCallableWith({ ttl: duration })

  expect(AuthorizedHttpClient.layerConfig).type.toBeCallableWith({ apiUrl: Config.string("API_URL") })
  expect(AuthorizedHttpClient.layerConfig).type.toBeCallableWith(
    Config.map(Config.url("API_URL"), (apiUrl) => ({ apiUrl }))
  )
  expect(AuthorizedHttpClient.layerConfig).type.not.toBeCallableWith({ apiUrl: Config.number("API_URL") })
  expect(AuthorizedHttpClient.layerConfig).type.not.toBeCallableWith({ allowInsecure: Config.boolean("INSECURE") })

  const fields = { authUrl: Config.string("AUTH_URL"), apiUrl: Config.string("API_URL"), clientId: Config.string("ID") }
  expect(StoreAuth.layerConfig).type.toBeCallableWith()
  expect(StoreAuth.layerConfig).type.toBeCallableWith(StoreAuth.config("OTHER"))
  expect(StoreAuth.layerConfig).type.toBeCallableWith({ ...fields, clientSecret: Config.redacted("SECRET") })
  expect(StoreAuth.layerConfig).type.toBeCallableWith(
    Config.map(StoreAuth.config(), (options): StoreAuth.Options => ({ ...options, provider: { leeway: 0 } }))
  )
  expect(StoreAuth.layerConfig).type.not.toBeCallableWith({ ...fields, clientSecret: Config.string("SECRET") })
  expect(StoreAuth.layerConfig).type.not.toBeCallableWith(fields)
  expect(StoreAuth.config).type.not.toBeCallableWith({ prefix: "OTHER" })
})
