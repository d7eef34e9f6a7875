/** The exact type of each public value of core, and what follows. docs/reference/api has the fields of types. */
import { FetchHttpClient, type HttpClient, type HttpClientError, HttpClientRequest } from "@effect/platform"
import { AccessToken, AccessTokenError, AccessTokenMetrics, AccessTokenProvider } from "@store-api/core"
import { AuthorizedHttpClient, ClientCredentials, SharedTokenSource, StoreAuth, TokenEndpoint } from "@store-api/core"
import { TokenRequest, TokenResponse, TokenSource, TokenStore } from "@store-api/core"
import type { ConfigError, Context, DateTime, Duration, Either, Metric, Option, Schema, Scope } from "effect"
import { Config, Effect, Layer, type Redacted } from "effect"
import { expect, test } from "tstyche"

type Token = AccessToken.AccessToken
type Failure = AccessTokenError.AccessTokenError
type Provider = AccessTokenProvider.AccessTokenProvider
type Authorized = AuthorizedHttpClient.AuthorizedHttpClient
type Source = TokenSource.TokenSource
type Http = HttpClient.HttpClient
type Invalid = AccessTokenError.ConfigurationError
type Untrusted = AccessTokenError.UntrustedOriginError
type StoreTag = TokenStore.TokenStore
type Credentials = Effect.Effect<ClientCredentials.ClientCredentials, AccessTokenError.CredentialsError>
type ConfigFailure = ConfigError.ConfigError

/** A layer from a config of its options, which may also fail because of that config. */
type FromConfig<Options, Services, E, R> = (
  config: Config.Config.Wrap<Options>
) => Layer.Layer<Services, E | ConfigFailure, R>

const at = {} as DateTime.Utc

test("AccessToken", () => {
  expect(AccessToken.AccessToken).type.toBeConstructableWith({
    value: {} as Redacted.Redacted,
    acquiredAt: at,
    expiresAt: at
  })
  expect(AccessToken.isExpired).type.toBe<(token: Token) => Effect.Effect<boolean>>()
  expect(AccessToken.remaining).type.toBe<(token: Token) => Effect.Effect<Duration.Duration>>()
  expect(AccessToken.ensureValid).type.toBe<
    (token: Token) => Effect.Effect<Token, AccessTokenError.TokenExpiredError>
  >()
  expect(AccessToken.authorization).type.toBe<(token: Token) => Redacted.Redacted>()
})

test("AccessTokenError", () => {
  expect(AccessTokenError.TokenExpiredError).type.toBeConstructableWith({
    reason: "Elapsed",
    expiredAt: at,
    checkedAt: at
  })
  expect(AccessTokenError.CredentialsError).type.toBeConstructableWith({ field: "clientId", reason: "is empty" })
  expect(AccessTokenError.TokenRequestError).type.toBeConstructableWith({ reason: "Timeout", attempts: 1 })
  expect(AccessTokenError.TokenRefusedError).type.toBeConstructableWith({ reason: "InvalidClient", status: 401 })
  expect(AccessTokenError.TokenResponseError).type.toBeConstructableWith({ problems: [{ path: "", expected: "" }] })
  expect(AccessTokenError.ConfigurationError).type.toBeConstructableWith({ option: "apiUrl", reason: "is not a URL" })
  expect(AccessTokenError.UntrustedOriginError).type.toBeConstructableWith({ origin: "", trusted: [] })
  expect(AccessTokenError.AccessTokenError).type.toBe<
    Schema.Union<[
      typeof AccessTokenError.TokenExpiredError,
      typeof AccessTokenError.CredentialsError,
      typeof AccessTokenError.TokenRequestError,
      typeof AccessTokenError.TokenRefusedError,
      typeof AccessTokenError.TokenResponseError
    ]>
  >()
  expect<Failure["retryAt"]>().type.toBe<Option.Option<DateTime.Utc>>()
  expect<Invalid>().type.not.toHaveProperty("retryAt")
  expect<Untrusted>().type.not.toHaveProperty("retryAt")
  expect(AccessTokenError.isAccessTokenError).type.toBe<(error: unknown) => error is Failure>()
  expect(AccessTokenError.isTransient).type.toBe<(error: unknown) => boolean>()
  expect(AccessTokenError.retryAt).type.toBe<(error: unknown) => Option.Option<DateTime.Utc>>()
  expect(AccessTokenError.withRetryAt).type.toBe<{
    (retryAt: Option.Option<DateTime.Utc>): (error: Failure) => Failure
    (error: Failure, retryAt: Option.Option<DateTime.Utc>): Failure
  }>()
})

test("the tags of errors that no acquisition fails with", () => {
  expect<[Invalid["_tag"], Untrusted["_tag"]]>().type.toBe<["ConfigurationError", "UntrustedOriginError"]>()
})

test("each handler of catchTags gets its own error, and the others remain", () => {
  const get = {} as AccessTokenProvider.Service["get"]
  const caught = get.pipe(Effect.catchTags({
    TokenExpiredError: (error) => Effect.succeed(error),
    CredentialsError: (error) => Effect.succeed(error.field)
  }))
  expect(caught).type.toBe<
    Effect.Effect<
      Token | AccessTokenError.TokenExpiredError | "clientId" | "clientSecret",
      | AccessTokenError.TokenRequestError
      | AccessTokenError.TokenRefusedError
      | AccessTokenError.TokenResponseError
    >
  >()
  // @ts-expect-error is not assignable to type 'never'
  Effect.catchTags(get, { NoSuchError: Effect.succeed })
  const call = ({} as AuthorizedHttpClient.Service).execute(HttpClientRequest.get("/orders"))
  const ofHttp = { RequestError: Effect.succeed, ResponseError: Effect.succeed }
  const handled = call.pipe(Effect.catchTags({ ...ofHttp, UntrustedOriginError: Effect.succeed }))
  expect(Effect.flip(handled)).type.toBeAssignableTo<Effect.Effect<Failure, unknown>>()
  expect(Effect.flip(call)).type.not.toBeAssignableTo<Effect.Effect<Failure, unknown>>()
})

test("AccessTokenMetrics", () => {
  expect(AccessTokenMetrics.acquisitions).type.toBe<Metric.Metric.Counter<number>>()
  expect(AccessTokenMetrics.acquisitionDuration).type.toBe<Metric.Metric.Histogram<number>>()
  expect(AccessTokenMetrics.callersJoined).type.toBe<Metric.Metric.Counter<number>>()
  expect(AccessTokenMetrics.rejections).type.toBe<Metric.Metric.Counter<number>>()
  expect(AccessTokenMetrics.cooldowns).type.toBe<Metric.Metric.Counter<number>>()
  expect(AccessTokenMetrics.expiry).type.toBe<Metric.Metric.Gauge<number>>()
})

test("AccessTokenProvider", () => {
  type Options = AccessTokenProvider.Options
  expect(AccessTokenProvider.AccessTokenProvider).type.toBeAssignableTo<
    Context.Tag<Provider, AccessTokenProvider.Service>
  >()
  expect(AccessTokenProvider.make).type.toBe<
    (options?: Options) => Effect.Effect<AccessTokenProvider.Service, never, Source | Scope.Scope>
  >()
  expect(AccessTokenProvider.layer).type.toBe<(options?: Options) => Layer.Layer<Provider, never, Source>>()
  expect(AccessTokenProvider.layerConfig).type.toBe<FromConfig<Options, Provider, never, Source>>()
  expect(AccessTokenProvider.layerTest).type.toBe<
    (token: Token | Effect.Effect<Token, Failure>) => Layer.Layer<Provider>
  >()
})

test("AuthorizedHttpClient", () => {
  type Options = AuthorizedHttpClient.Options
  type Needs = Provider | Http
  expect<AuthorizedHttpClient.Service>().type.toBe<
    HttpClient.HttpClient.With<HttpClientError.HttpClientError | Failure | Untrusted>
  >()
  expect(AuthorizedHttpClient.AuthorizedHttpClient).type.toBeAssignableTo<
    Context.Tag<Authorized, AuthorizedHttpClient.Service>
  >()
  expect(AuthorizedHttpClient.RetryUnauthorized).type.toBeAssignableTo<
    Context.Reference<AuthorizedHttpClient.RetryUnauthorized, boolean | undefined>
  >()
  expect<Context.Tag.Service<typeof AuthorizedHttpClient.RetryUnauthorized>>().type.toBe<boolean | undefined>()
  expect(AuthorizedHttpClient.isLoopback).type.toBe<(url: URL) => boolean>()
  expect(AuthorizedHttpClient.make).type.toBe<
    (options: Options) => Effect.Effect<AuthorizedHttpClient.Service, Invalid, Needs>
  >()
  expect(AuthorizedHttpClient.layer).type.toBe<(options: Options) => Layer.Layer<Authorized, Invalid, Needs>>()
  expect(AuthorizedHttpClient.layerConfig).type.toBe<FromConfig<Options, Authorized, Invalid, Needs>>()
  expect(AuthorizedHttpClient.layerHttpClient).type.toBe<(options: Options) => Layer.Layer<Http, Invalid, Needs>>()
})

test("AuthorizedHttpClient.withAccessToken, in both forms", () => {
  type Options = AuthorizedHttpClient.Options
  type Result<E, R> = Effect.Effect<HttpClient.HttpClient.With<E | Failure | Untrusted, R>, Invalid, Provider>
  const client = {} as HttpClient.HttpClient.With<"own error", "own need">
  const options: Options = { apiUrl: "https://api.store.example" }
  expect(AuthorizedHttpClient.withAccessToken(client, options)).type.toBe<Result<"own error", "own need">>()
  expect(AuthorizedHttpClient.withAccessToken(options)(client)).type.toBe<Result<"own error", "own need">>()
  expect(AuthorizedHttpClient.withAccessToken).type.toBe<{
    (options: Options): <E, R>(client: HttpClient.HttpClient.With<E, R>) => Result<E, R>
    <E, R>(client: HttpClient.HttpClient.With<E, R>, options: Options): Result<E, R>
  }>()
  expect(AuthorizedHttpClient.withAccessToken).type.not.toBeCallableWith(client)
})

test("ClientCredentials", () => {
  expect(ClientCredentials.make).type.toBe<(options: ClientCredentials.Options) => Credentials>()
  expect(ClientCredentials.fromConfig).type.toBe<(prefix?: string) => Credentials>()
  // Only `make` creates them, after checking the values.
  expect<ClientCredentials.ClientCredentials>().type.not.toBeAssignableFrom<ClientCredentials.Options>()
})

test("StoreAuth", () => {
  type Services = Provider | Authorized
  type Errors = Invalid | AccessTokenError.CredentialsError
  type Options = StoreAuth.Options
  type Configs<More = unknown> =
    | Config.Config<Options & More>
    | Config.Config.Wrap<StoreAuth.SecretOptions & More>
    | Config.Config.Wrap<StoreAuth.CredentialsOptions & More>
  expect<Options>().type.toBe<StoreAuth.SecretOptions | StoreAuth.CredentialsOptions>()
  expect(StoreAuth.make).type.toBe<
    (options: Options) => Effect.Effect<StoreAuth.StoreAuth, Errors, Http | Scope.Scope>
  >()
  expect(StoreAuth.layer).type.toBe<(options: Options) => Layer.Layer<Services, Errors, Http>>()
  expect(StoreAuth.layerShared).type.toBe<
    (options: Options & StoreAuth.Sharing) => Layer.Layer<Services, Errors, Http | StoreTag>
  >()
  expect(StoreAuth.layerFromSource).type.toBe<
    (options: StoreAuth.SourceOptions) => Layer.Layer<Services, Invalid, Source | Http>
  >()
  expect(StoreAuth.config).type.toBe<(prefix?: string) => Config.Config<StoreAuth.SecretOptions>>()
  expect(StoreAuth.layerConfig).type.toBe<(options?: Configs) => Layer.Layer<Services, Errors | ConfigFailure, Http>>()
  expect(StoreAuth.layerSharedConfig).type.toBe<
    (
      options?: Configs<StoreAuth.Sharing>
    ) => Layer.Layer<Services, Errors | ConfigFailure, Http | StoreTag>
  >()
})

test("a layer takes its options from a Config, whole or field by field", () => {
  const fields = { authUrl: Config.string("AUTH_URL"), apiUrl: Config.string("API_URL"), clientId: Config.string("ID") }
  expect(StoreAuth.layerConfig).type.toBeCallableWith()
  expect(StoreAuth.layerConfig).type.toBeCallableWith({ ...fields, clientSecret: Config.redacted("SECRET") })
  expect(StoreAuth.layerConfig).type.toBeCallableWith(
    Config.map(StoreAuth.config("OTHER"), (options): StoreAuth.Options => ({ ...options, provider: { leeway: 0 } }))
  )
  expect(StoreAuth.layerConfig).type.not.toBeCallableWith({ ...fields, clientSecret: Config.string("SECRET") })
  expect(StoreAuth.layerConfig).type.not.toBeCallableWith(fields)
})

test("credentials are given in one way, not both, and layerShared runs only with a TokenStore", () => {
  const urls = { authUrl: "https://auth.store.example", apiUrl: "https://api.store.example" }
  const secret: ClientCredentials.Options = { clientId: "an id", clientSecret: {} as Redacted.Redacted }
  const credentials = ClientCredentials.make(secret)
  expect(StoreAuth.layer).type.toBeCallableWith({ ...urls, ...secret })
  expect(StoreAuth.layer).type.toBeCallableWith({ ...urls, credentials })
  expect(StoreAuth.layer).type.not.toBeCallableWith({ ...urls, ...secret, credentials })
  expect(StoreAuth.layer).type.not.toBeCallableWith({ ...urls, clientId: "an id" })
  const runnable = (effect: Effect.Effect<void, unknown>) => effect
  const use = Effect.asVoid(AccessTokenProvider.AccessTokenProvider)
  const layer = Layer.provide(StoreAuth.layerShared({ ...urls, credentials }), FetchHttpClient.layer)
  expect(runnable).type.toBeCallableWith(Effect.provide(use, Layer.provide(layer, TokenStore.layerMemory)))
  expect(runnable).type.not.toBeCallableWith(Effect.provide(use, layer))
})

test("TokenEndpoint", () => {
  type Options = TokenEndpoint.Options
  expect(TokenEndpoint.make).type.toBe<(options: Options) => Effect.Effect<TokenSource.Service, Invalid, Http>>()
  expect(TokenEndpoint.layer).type.toBe<(options: Options) => Layer.Layer<Source, Invalid, Http>>()
})

test("TokenRequest", () => {
  type Parameter = string | Redacted.Redacted
  expect<TokenRequest.Parameters>().type.toBe<{
    readonly [name: string]: Parameter | ReadonlyArray<Parameter> | undefined
  }>()
  expect(TokenRequest.specification).type.toBe<TokenRequest.TokenRequest>()
  expect(TokenRequest.clientSecretPost).type.toBe<
    (parameters?: TokenRequest.Parameters) => TokenRequest.TokenRequest
  >()
  expect(TokenRequest.clientSecretBasic).type.toBe<
    (parameters?: TokenRequest.Parameters) => TokenRequest.TokenRequest
  >()
  expect(TokenRequest.make).type.toBe<
    (options: {
      readonly identity: string | Redacted.Redacted
      readonly request: (
        credentials: ClientCredentials.ClientCredentials
      ) => Effect.Effect<HttpClientRequest.HttpClientRequest, AccessTokenError.CredentialsError>
    }) => TokenRequest.TokenRequest
  >()
  // A record of configurations can contain the options of the endpoint.
  expect(StoreAuth.layerConfig).type.toBeCallableWith({
    authUrl: Config.string("A"),
    apiUrl: Config.string("B"),
    clientId: Config.string("C"),
    clientSecret: Config.redacted("D"),
    endpoint: { path: Config.string("E"), request: Config.succeed(TokenRequest.clientSecretPost()) }
  })
})

test("TokenResponse", () => {
  type Response = TokenResponse.TokenResponse
  expect(TokenResponse.TokenResponse).type.toBeAssignableTo<Schema.Schema.AnyNoContext>()
  expect(TokenResponse.decode).type.toBe<
    (body: string) => Either.Either<Response, AccessTokenError.TokenResponseError>
  >()
})

test("TokenSource", () => {
  type Acquire = (replacing: Option.Option<Token>) => Effect.Effect<Token, Failure>
  expect(TokenSource.TokenSource).type.toBeAssignableTo<Context.Tag<Source, TokenSource.Service>>()
  expect<TokenSource.Service>().type.toBe<{ readonly acquire: Acquire }>()
  expect(TokenSource.make).type.toBe<(acquire: Acquire) => TokenSource.Service>()
  expect(TokenSource.layer).type.toBe<(acquire: Acquire) => Layer.Layer<Source>>()
})

test("TokenStore", () => {
  expect(TokenStore.TokenStore).type.toBeAssignableTo<Context.Tag<TokenStore.TokenStore, TokenStore.Service>>()
  expect(TokenStore.FailedAttempt).type.toBeAssignableTo<
    Context.Reference<TokenStore.FailedAttempt, (reason: string) => void> & Effect.Effect<(reason: string) => void>
  >()
  expect<Context.Tag.Service<typeof TokenStore.FailedAttempt>>().type.toBe<(reason: string) => void>()
  expect(TokenStore.makeMemory).type.toBe<Effect.Effect<TokenStore.Service>>()
  expect(TokenStore.layerMemory).type.toBe<Layer.Layer<TokenStore.TokenStore>>()
  expect(TokenStore.TokenStoreError).type.toBeConstructableWith({ operation: "get", reason: "ECONNREFUSED" })
})

test("SharedTokenSource decorates the source in the context, over the store in it", () => {
  type Options = SharedTokenSource.Options
  type Needs = Source | StoreTag
  expect(SharedTokenSource.make).type.toBe<(options: Options) => Effect.Effect<TokenSource.Service, Invalid, Needs>>()
  expect(SharedTokenSource.layer).type.toBe<(options: Options) => Layer.Layer<Source, Invalid, Needs>>()
  expect(SharedTokenSource.storeFailures).type.toBe<Metric.Metric.Counter<number>>()
  expect(SharedTokenSource.storeHits).type.toBe<Metric.Metric.Counter<number>>()
})
