/** The exact type of each public value of core: requirements, result and errors. */

import type { HttpClient, HttpClientError } from "@effect/platform"
import {
  AccessToken,
  AccessTokenError,
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth,
  TokenEndpoint,
  TokenResponse,
  TokenSource,
  type TokenStore
} from "@store-api/core"
import type {
  Config,
  ConfigError,
  Context,
  DateTime,
  Duration,
  Effect,
  Either,
  Layer,
  Option,
  Redacted,
  Schema,
  Scope
} from "effect"
import { describe, expect, test } from "tstyche"

type Token = AccessToken.AccessToken
type Failure = AccessTokenError.AccessTokenError

test("AccessToken", () => {
  expect(AccessToken.AccessToken).type.toBeConstructableWith({
    value: {} as Redacted.Redacted,
    acquiredAt: {} as DateTime.Utc,
    expiresAt: {} as DateTime.Utc
  })
  expect<Token["value"]>().type.toBe<Redacted.Redacted>()
  expect<Token["tokenType"]>().type.toBe<"Bearer">()
  expect<Token["scope"]>().type.toBe<string>()
  expect<Token["acquiredAt"]>().type.toBe<DateTime.Utc>()
  expect<Token["expiresAt"]>().type.toBe<DateTime.Utc>()
  expect<Token["applicationName"]>().type.toBe<Option.Option<string>>()
  expect<Token["developerEmail"]>().type.toBe<Option.Option<Redacted.Redacted>>()
  expect<Token["issuedAt"]>().type.toBe<Option.Option<string>>()
  expect<Token["clientId"]>().type.toBe<Option.Option<string>>()
  expect(AccessToken.isExpired).type.toBe<(token: Token) => Effect.Effect<boolean>>()
  expect(AccessToken.remaining).type.toBe<(token: Token) => Effect.Effect<Duration.Duration>>()
  expect(AccessToken.ensureValid).type.toBe<
    (token: Token) => Effect.Effect<Token, AccessTokenError.TokenExpiredError>
  >()
  expect(AccessToken.authorization).type.toBe<(token: Token) => Redacted.Redacted>()
})

test("AccessTokenError", () => {
  const at = {} as DateTime.Utc
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
  expect<Failure>().type.toBe<
    | AccessTokenError.TokenExpiredError
    | AccessTokenError.CredentialsError
    | AccessTokenError.TokenRequestError
    | AccessTokenError.TokenRefusedError
    | AccessTokenError.TokenResponseError
  >()
  expect<Failure["retryAt"]>().type.toBe<Option.Option<DateTime.Utc>>()
  expect(AccessTokenError.AccessTokenError).type.toBe<
    Schema.Union<[
      typeof AccessTokenError.TokenExpiredError,
      typeof AccessTokenError.CredentialsError,
      typeof AccessTokenError.TokenRequestError,
      typeof AccessTokenError.TokenRefusedError,
      typeof AccessTokenError.TokenResponseError
    ]>
  >()
  expect(AccessTokenError.isAccessTokenError).type.toBe<(error: unknown) => error is Failure>()
  expect(AccessTokenError.isTransient).type.toBe<(error: unknown) => boolean>()
  expect(AccessTokenError.retryAt).type.toBe<(error: unknown) => Option.Option<DateTime.Utc>>()
  expect(AccessTokenError.withRetryAt).type.toBe<{
    (retryAt: Option.Option<DateTime.Utc>): (error: Failure) => Failure
    (error: Failure, retryAt: Option.Option<DateTime.Utc>): Failure
  }>()
})

test("what each error carries", () => {
  expect<AccessTokenError.TokenExpiredError["reason"]>().type.toBe<"Elapsed" | "ClockMovedBack" | "DeadOnArrival">()
  expect<AccessTokenError.TokenExpiredError["expiredAt"]>().type.toBe<DateTime.Utc>()
  expect<AccessTokenError.TokenExpiredError["checkedAt"]>().type.toBe<DateTime.Utc>()
  expect<AccessTokenError.CredentialsError["field"]>().type.toBe<"clientId" | "clientSecret">()
  expect<AccessTokenError.TokenRequestError["reason"]>().type.toBe<
    "Transport" | "Timeout" | "Certificate" | "Redirect" | "TooLarge" | "Closed"
  >()
  expect<AccessTokenError.TokenRequestError["attempts"]>().type.toBe<number>()
  expect<AccessTokenError.TokenRefusedError["reason"]>().type.toBe<
    "InvalidClient" | "InvalidRequest" | "RateLimited" | "Unavailable" | "Other"
  >()
  expect<AccessTokenError.TokenRefusedError["status"]>().type.toBe<number>()
  expect<AccessTokenError.TokenRefusedError["code"]>().type.toBe<Option.Option<string>>()
  expect<AccessTokenError.TokenRefusedError["description"]>().type.toBe<Option.Option<string>>()
  expect<AccessTokenError.TokenResponseError["problems"]>().type.toBe<
    ReadonlyArray<{ readonly path: string; readonly expected: string }>
  >()
  expect<AccessTokenError.ConfigurationError>().type.not.toHaveProperty("retryAt")
  expect<AccessTokenError.UntrustedOriginError>().type.not.toHaveProperty("retryAt")
})

test("AccessTokenProvider", () => {
  type Service = AccessTokenProvider.Service
  expect(AccessTokenProvider.AccessTokenProvider).type.toBeAssignableTo<
    Context.Tag<AccessTokenProvider.AccessTokenProvider, Service>
  >()
  expect<Service["get"]>().type.toBe<Effect.Effect<Token, Failure>>()
  expect<Service["current"]>().type.toBe<Effect.Effect<Option.Option<Token>, AccessTokenError.TokenExpiredError>>()
  expect<Service["refresh"]>().type.toBe<Effect.Effect<Token, Failure>>()
  expect<Service["invalidate"]>().type.toBe<(token: Token) => Effect.Effect<void>>()
  expect<Service["status"]>().type.toBe<Effect.Effect<AccessTokenProvider.ProviderStatus>>()
  expect<AccessTokenProvider.ProviderStatus["state"]>().type.toBe<
    "Empty" | "Fresh" | "RefreshSoon" | "MustWait" | "Expired" | "Closed"
  >()
  expect<AccessTokenProvider.ProviderStatus["cooldown"]>().type.toBe<
    Option.Option<{ readonly until: DateTime.Utc; readonly error: Failure["_tag"] }>
  >()
  expect(AccessTokenProvider.make).type.toBe<
    (options?: AccessTokenProvider.Options) => Effect.Effect<Service, never, TokenSource.TokenSource | Scope.Scope>
  >()
  expect(AccessTokenProvider.layer).type.toBe<
    (
      options?: AccessTokenProvider.Options
    ) => Layer.Layer<AccessTokenProvider.AccessTokenProvider, never, TokenSource.TokenSource>
  >()
  expect(AccessTokenProvider.layerConfig).type.toBe<
    (
      config: Config.Config.Wrap<AccessTokenProvider.Options>
    ) => Layer.Layer<AccessTokenProvider.AccessTokenProvider, ConfigError.ConfigError, TokenSource.TokenSource>
  >()
  expect(AccessTokenProvider.layerTest).type.toBe<
    (token: Token | Effect.Effect<Token, Failure>) => Layer.Layer<AccessTokenProvider.AccessTokenProvider>
  >()
})

describe("AuthorizedHttpClient", () => {
  type Options = AuthorizedHttpClient.Options
  type Needs = AccessTokenProvider.AccessTokenProvider | HttpClient.HttpClient

  test("services", () => {
    expect<AuthorizedHttpClient.Service>().type.toBe<
      HttpClient.HttpClient.With<
        HttpClientError.HttpClientError | Failure | AccessTokenError.UntrustedOriginError
      >
    >()
    expect(AuthorizedHttpClient.AuthorizedHttpClient).type.toBeAssignableTo<
      Context.Tag<AuthorizedHttpClient.AuthorizedHttpClient, AuthorizedHttpClient.Service>
    >()
    expect(AuthorizedHttpClient.RetryUnauthorized).type.toBeAssignableTo<
      Context.Reference<AuthorizedHttpClient.RetryUnauthorized, boolean | undefined>
    >()
    expect<Context.Tag.Service<typeof AuthorizedHttpClient.RetryUnauthorized>>().type.toBe<boolean | undefined>()
  })

  test("layers", () => {
    expect(AuthorizedHttpClient.isLoopback).type.toBe<(url: URL) => boolean>()
    expect(AuthorizedHttpClient.make).type.toBe<
      (options: Options) => Effect.Effect<AuthorizedHttpClient.Service, AccessTokenError.ConfigurationError, Needs>
    >()
    expect(AuthorizedHttpClient.layer).type.toBe<
      (
        options: Options
      ) => Layer.Layer<AuthorizedHttpClient.AuthorizedHttpClient, AccessTokenError.ConfigurationError, Needs>
    >()
    expect(AuthorizedHttpClient.layerConfig).type.toBe<
      (config: Config.Config.Wrap<Options>) => Layer.Layer<
        AuthorizedHttpClient.AuthorizedHttpClient,
        AccessTokenError.ConfigurationError | ConfigError.ConfigError,
        Needs
      >
    >()
    expect(AuthorizedHttpClient.layerHttpClient).type.toBe<
      (options: Options) => Layer.Layer<HttpClient.HttpClient, AccessTokenError.ConfigurationError, Needs>
    >()
  })

  test("withAccessToken, in both forms", () => {
    type Authorized<E, R> = Effect.Effect<
      HttpClient.HttpClient.With<E | Failure | AccessTokenError.UntrustedOriginError, R>,
      AccessTokenError.ConfigurationError,
      AccessTokenProvider.AccessTokenProvider
    >
    const client = {} as HttpClient.HttpClient.With<"own error", "own need">
    const options: Options = { apiUrl: "https://api.store.example" }
    expect(AuthorizedHttpClient.withAccessToken(client, options)).type.toBe<Authorized<"own error", "own need">>()
    expect(AuthorizedHttpClient.withAccessToken(options)(client)).type.toBe<Authorized<"own error", "own need">>()
    expect(AuthorizedHttpClient.withAccessToken).type.toBe<{
      (options: Options): <E, R>(client: HttpClient.HttpClient.With<E, R>) => Authorized<E, R>
      <E, R>(client: HttpClient.HttpClient.With<E, R>, options: Options): Authorized<E, R>
    }>()
    expect(AuthorizedHttpClient.withAccessToken).type.not.toBeCallableWith(client)
    expect(AuthorizedHttpClient.withAccessToken).type.not.toBeCallableWith(options, client)
  })
})

test("ClientCredentials", () => {
  expect(ClientCredentials.make).type.toBe<
    (
      options: ClientCredentials.Options
    ) => Effect.Effect<ClientCredentials.ClientCredentials, AccessTokenError.CredentialsError>
  >()
  expect(ClientCredentials.fromConfig).type.toBe<
    (prefix?: string) => Effect.Effect<ClientCredentials.ClientCredentials, AccessTokenError.CredentialsError>
  >()
  // Only `make` creates them, after checking the values.
  expect<ClientCredentials.ClientCredentials>().type.not.toBeAssignableFrom<ClientCredentials.Options>()
})

test("StoreAuth", () => {
  type Services = AccessTokenProvider.AccessTokenProvider | AuthorizedHttpClient.AuthorizedHttpClient
  type Errors = AccessTokenError.ConfigurationError | AccessTokenError.CredentialsError
  expect<StoreAuth.Options>().type.toBe<StoreAuth.SecretOptions | StoreAuth.CredentialsOptions>()
  expect(StoreAuth.layer).type.toBe<
    (options: StoreAuth.Options) => Layer.Layer<Services, Errors, HttpClient.HttpClient>
  >()
  expect(StoreAuth.make).type.toBe<
    (options: StoreAuth.Options) => Effect.Effect<StoreAuth.StoreAuth, Errors, HttpClient.HttpClient | Scope.Scope>
  >()
  expect<StoreAuth.StoreAuth>().type.toBe<{
    readonly provider: AccessTokenProvider.Service
    readonly client: AuthorizedHttpClient.Service
  }>()
  expect(StoreAuth.layerShared).type.toBe<
    (
      options: StoreAuth.Options & StoreAuth.Sharing
    ) => Layer.Layer<Services, Errors, HttpClient.HttpClient | TokenStore.TokenStore>
  >()
  expect(StoreAuth.layerSharedConfig).type.toBe<
    (
      options?:
        | Config.Config<StoreAuth.Options & StoreAuth.Sharing>
        | Config.Config.Wrap<StoreAuth.SecretOptions & StoreAuth.Sharing>
        | Config.Config.Wrap<StoreAuth.CredentialsOptions & StoreAuth.Sharing>
    ) => Layer.Layer<Services, Errors | ConfigError.ConfigError, HttpClient.HttpClient | TokenStore.TokenStore>
  >()
  expect(StoreAuth.layerFromSource).type.toBe<
    (options: StoreAuth.SourceOptions) => Layer.Layer<
      Services,
      AccessTokenError.ConfigurationError,
      TokenSource.TokenSource | HttpClient.HttpClient
    >
  >()
  expect(StoreAuth.config).type.toBe<(prefix?: string) => Config.Config<StoreAuth.SecretOptions>>()
  expect(StoreAuth.layerConfig).type.toBe<
    (
      options?:
        | Config.Config<StoreAuth.Options>
        | Config.Config.Wrap<StoreAuth.SecretOptions>
        | Config.Config.Wrap<StoreAuth.CredentialsOptions>
    ) => Layer.Layer<Services, Errors | ConfigError.ConfigError, HttpClient.HttpClient>
  >()
})

test("TokenEndpoint", () => {
  type Errors = AccessTokenError.ConfigurationError
  expect(TokenEndpoint.make).type.toBe<
    (options: TokenEndpoint.Options) => Effect.Effect<TokenSource.Service, Errors, HttpClient.HttpClient>
  >()
  expect(TokenEndpoint.layer).type.toBe<
    (options: TokenEndpoint.Options) => Layer.Layer<TokenSource.TokenSource, Errors, HttpClient.HttpClient>
  >()
})

test("TokenResponse", () => {
  type Response = TokenResponse.TokenResponse
  expect(TokenResponse.TokenResponse).type.toBeAssignableTo<Schema.Schema.AnyNoContext>()
  expect<Response["access_token"]>().type.toBe<Redacted.Redacted>()
  expect<Response["expires_in"]>().type.toBe<number>()
  expect<Response["developer.email"]>().type.toBe<Option.Option<Redacted.Redacted>>()
  expect(TokenResponse.decode).type.toBe<
    (body: string) => Either.Either<Response, AccessTokenError.TokenResponseError>
  >()
})

test("TokenSource", () => {
  type Acquire = (replacing: Option.Option<Token>) => Effect.Effect<Token, Failure>
  expect(TokenSource.TokenSource).type.toBeAssignableTo<Context.Tag<TokenSource.TokenSource, TokenSource.Service>>()
  expect<TokenSource.Service>().type.toBe<{ readonly acquire: Acquire }>()
  expect(TokenSource.make).type.toBe<(acquire: Acquire) => TokenSource.Service>()
  expect(TokenSource.layer).type.toBe<(acquire: Acquire) => Layer.Layer<TokenSource.TokenSource>>()
})
