/** The types of core as its users meet them. docs/reference/api has the type of each function and field. */
import {
  FetchHttpClient,
  type HttpClient,
  type HttpClientError,
  HttpClientRequest
} from "@effect/platform"
import {
  type AccessToken,
  AccessTokenError,
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth,
  TokenRequest,
  TokenStore
} from "@store-api/core"
import { Config, type DateTime, Effect, Layer, type Redacted, type Schema } from "effect"
import { expect, test } from "tstyche"

type Token = AccessToken.AccessToken
type Failure = AccessTokenError.AccessTokenError
type Provider = AccessTokenProvider.AccessTokenProvider
type Invalid = AccessTokenError.ConfigurationError
type Untrusted = AccessTokenError.UntrustedOriginError

test("AccessTokenError", () => {
  expect(AccessTokenError.AccessTokenError).type.toBe<
    Schema.Union<[
      typeof AccessTokenError.TokenExpiredError,
      typeof AccessTokenError.CredentialsError,
      typeof AccessTokenError.TokenRequestError,
      typeof AccessTokenError.TokenRefusedError,
      typeof AccessTokenError.TokenResponseError
    ]>
  >()
  expect<Failure["retryAt"]>().type.toBe<DateTime.Utc | undefined>()
  expect<Invalid>().type.not.toHaveProperty("retryAt")
  expect<Untrusted>().type.not.toHaveProperty("retryAt")
})

test("the tags of errors that no acquisition fails with", () => {
  expect<[Invalid["_tag"], Untrusted["_tag"]]>().type.toBe<
    ["ConfigurationError", "UntrustedOriginError"]
  >()
})

test("each handler of catchTags gets its own error, and the others remain", () => {
  const get = {} as AccessTokenProvider.Service["get"]
  const caught = get.pipe(Effect.catchTags({
    TokenExpiredError: (error) => Effect.succeed(error),
    CredentialsError: (error) => Effect.succeed(error.field)
  }))
  expect(caught).type.toBe<
    Effect.Effect<
      | Token
      | AccessTokenError.TokenExpiredError
      | "clientId"
      | "clientSecret"
      | "clientAssertion",
      | AccessTokenError.TokenRequestError
      | AccessTokenError.TokenRefusedError
      | AccessTokenError.TokenResponseError
    >
  >()
  // @ts-expect-error is not assignable to type 'never'
  Effect.catchTags(get, { NoSuchError: Effect.succeed })
  const call = ({} as AuthorizedHttpClient.Service).execute(HttpClientRequest.get("/orders"))
  const ofHttp = { RequestError: Effect.succeed, ResponseError: Effect.succeed }
  const handled = call.pipe(
    Effect.catchTags({ ...ofHttp, UntrustedOriginError: Effect.succeed })
  )
  expect(Effect.flip(handled)).type.toBeAssignableTo<Effect.Effect<Failure, unknown>>()
  expect(Effect.flip(call)).type.not.toBeAssignableTo<Effect.Effect<Failure, unknown>>()
})

test("an authorized client fails with the errors of HTTP, of tokens and of origins", () => {
  expect<AuthorizedHttpClient.Service>().type.toBe<
    HttpClient.HttpClient.With<HttpClientError.HttpClientError | Failure | Untrusted>
  >()
})

test("AuthorizedHttpClient.withAccessToken, in both forms", () => {
  type Options = AuthorizedHttpClient.Options
  type Result<E, R> = Effect.Effect<
    HttpClient.HttpClient.With<E | Failure | Untrusted, R>,
    Invalid,
    Provider
  >
  const client = {} as HttpClient.HttpClient.With<"own error", "own need">
  const options: Options = { apiUrl: "https://api.store.example" }
  expect(AuthorizedHttpClient.withAccessToken(client, options)).type.toBe<
    Result<"own error", "own need">
  >()
  expect(AuthorizedHttpClient.withAccessToken(options)(client)).type.toBe<
    Result<"own error", "own need">
  >()
  expect(AuthorizedHttpClient.withAccessToken).type.toBe<{
    (options: Options): <E, R>(client: HttpClient.HttpClient.With<E, R>) => Result<E, R>
    <E, R>(client: HttpClient.HttpClient.With<E, R>, options: Options): Result<E, R>
  }>()
  expect(AuthorizedHttpClient.withAccessToken).type.not.toBeCallableWith(client)
})

test("only ClientCredentials.make creates credentials, after checking the values", () => {
  expect<ClientCredentials.ClientCredentials>().type.not.toBeAssignableFrom<
    ClientCredentials.Options
  >()
})

test("a layer takes its options from a Config, whole or field by field", () => {
  const fields = {
    authUrl: Config.string("AUTH_URL"),
    apiUrl: Config.string("API_URL"),
    clientId: Config.string("ID")
  }
  const complete = { ...fields, clientSecret: Config.redacted("SECRET") }
  expect(StoreAuth.layerConfig).type.toBeCallableWith({
    ...complete,
    endpoint: {
      path: Config.string("PATH"),
      request: Config.succeed(TokenRequest.clientSecretPost())
    }
  })
  expect(StoreAuth.layerConfig).type.toBeCallableWith(
    Config.map(
      StoreAuth.config("OTHER"),
      (options): StoreAuth.Options => ({ ...options, provider: { leeway: 0 } })
    )
  )
  expect(StoreAuth.layerConfig).type.not.toBeCallableWith({
    ...fields,
    clientSecret: Config.string("SECRET")
  })
  expect(StoreAuth.layerConfig).type.not.toBeCallableWith(fields)
})

test("credentials are given in one way, not both, and layerShared runs only with a TokenStore", () => {
  const urls = { authUrl: "https://auth.store.example", apiUrl: "https://api.store.example" }
  const secret: ClientCredentials.Options = {
    clientId: "an id",
    clientSecret: {} as Redacted.Redacted
  }
  const credentials = ClientCredentials.make(secret)
  expect(StoreAuth.layer).type.not.toBeCallableWith({ ...urls, ...secret, credentials })
  expect(StoreAuth.layer).type.not.toBeCallableWith({ ...urls, clientId: "an id" })
  const runnable = (effect: Effect.Effect<void, unknown>) => effect
  const use = Effect.asVoid(AccessTokenProvider.AccessTokenProvider)
  const layer = Layer.provide(
    StoreAuth.layerShared({ ...urls, credentials }),
    FetchHttpClient.layer
  )
  expect(runnable).type.toBeCallableWith(
    Effect.provide(use, Layer.provide(layer, TokenStore.layerMemory))
  )
  expect(runnable).type.not.toBeCallableWith(Effect.provide(use, layer))
})
