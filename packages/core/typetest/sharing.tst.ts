/** The types of `TokenStore`, and of the source that shares tokens through it. */
import {
  type AccessTokenError,
  ClientCredentials,
  SharedTokenSource,
  type TokenSource,
  TokenStore
} from "@store-api/core"
import type { Context, Duration, Layer, Metric, Option } from "effect"
import { Effect, Redacted } from "effect"
import { expect, test } from "tstyche"

type Failure = TokenStore.TokenStoreError

test("TokenStore", () => {
  expect(TokenStore.TokenStore).type.toBeAssignableTo<Context.Tag<TokenStore.TokenStore, TokenStore.Service>>()
  expect<TokenStore.Service>().type.toBe<{
    readonly get: (key: string) => Effect.Effect<Option.Option<string>, Failure>
    readonly put: (key: string, entry: string, life: Duration.DurationInput) => Effect.Effect<void, Failure>
    readonly remove: (key: string, entry: string) => Effect.Effect<boolean, Failure>
    readonly lease: (
      key: string,
      duration: Duration.DurationInput
    ) => Effect.Effect<Option.Option<TokenStore.Lease>, Failure>
  }>()
  expect<TokenStore.Lease>().type.toBe<{
    readonly extend: Effect.Effect<boolean, Failure>
    readonly release: Effect.Effect<void, Failure>
  }>()
  expect(TokenStore.FailedAttempt).type.toBeAssignableTo<
    Context.Reference<TokenStore.FailedAttempt, (reason: string) => void>
  >()
  expect<Context.Tag.Service<typeof TokenStore.FailedAttempt>>().type.toBe<(reason: string) => void>()
  expect(TokenStore.makeMemory).type.toBe<Effect.Effect<TokenStore.Service>>()
  expect(TokenStore.layerMemory).type.toBe<Layer.Layer<TokenStore.TokenStore>>()
})

test("TokenStoreError", () => {
  expect(TokenStore.TokenStoreError).type.toBeConstructableWith({ operation: "get", reason: "ECONNREFUSED" })
  expect(TokenStore.TokenStoreError).type.not.toBeConstructableWith({ operation: "flush", reason: "ECONNREFUSED" })
  expect(TokenStore.TokenStoreError).type.not.toBeConstructableWith({ operation: "get" })
  expect<Failure["_tag"]>().type.toBe<"TokenStoreError">()
  expect<Failure["operation"]>().type.toBe<"get" | "put" | "remove" | "lease" | "extend" | "release">()
})

test("SharedTokenSource decorates the source in the context, over the store in it", () => {
  expect(SharedTokenSource.make).type.toBe<
    (
      options: SharedTokenSource.Options
    ) => Effect.Effect<
      TokenSource.Service,
      AccessTokenError.ConfigurationError,
      TokenSource.TokenSource | TokenStore.TokenStore
    >
  >()
  expect(SharedTokenSource.layer).type.toBe<
    (
      options: SharedTokenSource.Options
    ) => Layer.Layer<
      TokenSource.TokenSource,
      AccessTokenError.ConfigurationError,
      TokenSource.TokenSource | TokenStore.TokenStore
    >
  >()
  expect(SharedTokenSource.storeFailures).type.toBe<Metric.Metric.Counter<number>>()
  expect(SharedTokenSource.storeHits).type.toBe<Metric.Metric.Counter<number>>()
})

test("SharedTokenSource.Options", () => {
  const authUrl = "https://auth.store.example"
  const credentials = Effect.succeed({} as ClientCredentials.ClientCredentials)
  const { layer } = SharedTokenSource
  expect(layer).type.toBeCallableWith({ authUrl, credentials })
  expect(layer).type.toBeCallableWith({
    authUrl: new URL(authUrl),
    credentials: ClientCredentials.make({
      clientId: "an id",
      clientSecret: Redacted.make("not a real one")
    })
  })
  expect(layer).type.toBeCallableWith({
    authUrl,
    credentials,
    leeway: "1 minute",
    lease: "5 seconds",
    maxWait: 20_000,
    storeTimeout: undefined
  })
  expect(layer).type.not.toBeCallableWith({ authUrl })
  expect(layer).type.not.toBeCallableWith({ authUrl, clientId: "an id", clientSecret: Redacted.make("") })
  expect(layer).type.not.toBeCallableWith({ authUrl, credentials, lease: "a while" })
})

test("TokenStore.FailedAttempt", () => {
  expect(TokenStore.FailedAttempt).type.toBeAssignableTo<Effect.Effect<(reason: string) => void>>()
})
