/** Catching a tag removes exactly that error from the error channel. */
import { type HttpClient, HttpClientRequest } from "@effect/platform"
import type { AccessToken } from "@store-api/core"
import {
  AccessTokenError,
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth
} from "@store-api/core"
import { Effect } from "effect"
import { expect, test } from "tstyche"

type Token = AccessToken.AccessToken

const get = {} as AccessTokenProvider.Service["get"]
const recover = () => Effect.succeed("another way" as const)

type Recovered<E> = Effect.Effect<Token | "another way", E>

type Failure =
  | AccessTokenError.TokenExpiredError
  | AccessTokenError.CredentialsError
  | AccessTokenError.TokenRequestError
  | AccessTokenError.TokenRefusedError
  | AccessTokenError.TokenResponseError

type RecoveredFrom<Tag extends Failure["_tag"]> = Recovered<Exclude<Failure, { readonly _tag: Tag }>>

test("an acquisition", () => {
  expect(get).type.toBe<Effect.Effect<Token, Failure>>()
  expect(get.pipe(Effect.catchTag("TokenExpiredError", recover))).type.toBe<RecoveredFrom<"TokenExpiredError">>()
  expect(get.pipe(Effect.catchTag("CredentialsError", recover))).type.toBe<RecoveredFrom<"CredentialsError">>()
  expect(get.pipe(Effect.catchTag("TokenRequestError", recover))).type.toBe<RecoveredFrom<"TokenRequestError">>()
  expect(get.pipe(Effect.catchTag("TokenRefusedError", recover))).type.toBe<RecoveredFrom<"TokenRefusedError">>()
  expect(get.pipe(Effect.catchTag("TokenResponseError", recover))).type.toBe<RecoveredFrom<"TokenResponseError">>()
})

test("all of them at once, each handler with its own error", () => {
  const handled = get.pipe(Effect.catchTags({
    TokenExpiredError: (error) => Effect.succeed(error),
    CredentialsError: (error) => Effect.succeed(error.field),
    TokenRequestError: (error) => Effect.succeed(error.attempts),
    TokenRefusedError: () => recover(),
    TokenResponseError: () => recover()
  }))
  expect(handled).type.toBe<
    Effect.Effect<
      Token | AccessTokenError.TokenExpiredError | "clientId" | "clientSecret" | number | "another way"
    >
  >()
  // @ts-expect-error is not assignable to type 'never'
  Effect.catchTags(get, { NoSuchError: recover })
})

test("a look", () => {
  const current = {} as AccessTokenProvider.Service["current"]
  expect(current.pipe(Effect.catchTag("TokenExpiredError", () => Effect.succeedNone)))
    .type.toBeAssignableTo<Effect.Effect<unknown>>()
  expect(current).type.not.toBeAssignableTo<Effect.Effect<unknown>>()
  // @ts-expect-error Argument of type '"TokenRefusedError"' is not assignable to parameter of type
  // '"TokenExpiredError"'
  Effect.catchTag(current, "TokenRefusedError", recover)
})

test("a call", () => {
  const client = {} as AuthorizedHttpClient.Service
  const call = client.execute(HttpClientRequest.get("/orders"))
  const caught = call.pipe(
    Effect.catchTags({
      UntrustedOriginError: recover,
      RequestError: recover,
      ResponseError: recover
    })
  )
  expect(Effect.flip(caught)).type.toBeAssignableTo<Effect.Effect<AccessTokenError.AccessTokenError, unknown>>()
  expect(Effect.flip(call)).type.not.toBeAssignableTo<Effect.Effect<AccessTokenError.AccessTokenError, unknown>>()
  expect(Effect.flip(call.pipe(Effect.catchTag("UntrustedOriginError", recover))))
    .type.not.toBeAssignableTo<Effect.Effect<AccessTokenError.UntrustedOriginError, unknown>>()
})

test("a layer", () => {
  const program = AccessTokenProvider.AccessTokenProvider.pipe(
    Effect.as("done" as const),
    Effect.provide(StoreAuth.layer({} as StoreAuth.Options))
  )
  type Program<E, A = never> = Effect.Effect<"done" | A, E, HttpClient.HttpClient>
  expect(program).type.toBe<Program<AccessTokenError.ConfigurationError | AccessTokenError.CredentialsError>>()
  expect(program.pipe(Effect.catchTag("ConfigurationError", recover))).type.toBe<
    Program<AccessTokenError.CredentialsError, "another way">
  >()
  expect(program.pipe(Effect.catchTag("CredentialsError", recover))).type.toBe<
    Program<AccessTokenError.ConfigurationError, "another way">
  >()
  expect(program.pipe(Effect.catchTags({ ConfigurationError: recover, CredentialsError: recover }))).type.toBe<
    Program<never, "another way">
  >()
})

test("the layer of the client fails only for its options", () => {
  const made = AuthorizedHttpClient.make({ apiUrl: "https://api.store.example" })
  type Made<E, A = never> = Effect.Effect<
    AuthorizedHttpClient.Service | A,
    E,
    AccessTokenProvider.AccessTokenProvider | HttpClient.HttpClient
  >
  expect(made).type.toBe<Made<AccessTokenError.ConfigurationError>>()
  expect(made.pipe(Effect.catchTag("ConfigurationError", recover))).type.toBe<Made<never, "another way">>()
})

test("credentials", () => {
  const made = ClientCredentials.make({} as ClientCredentials.Options)
  expect(made.pipe(Effect.catchTag("CredentialsError", recover))).type.toBe<
    Effect.Effect<ClientCredentials.ClientCredentials | "another way">
  >()
})

test("an unknown failure is narrowed", () => {
  const failure: unknown = undefined
  if (AccessTokenError.isAccessTokenError(failure)) {
    expect(failure).type.toBe<AccessTokenError.AccessTokenError>()
    if (failure._tag === "TokenRefusedError") expect(failure).type.toBe<AccessTokenError.TokenRefusedError>()
  }
})
