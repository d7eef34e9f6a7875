/** The types of the store on Redis: its constructors and their errors. */
import { createClient, createClientPool, createCluster, createSentinel } from "@redis/client"
import type { AccessTokenError, TokenStore } from "@store-api/core"
import { RedisTokenStore } from "@store-api/redis"
import type { ConfigError, Effect, Layer, Scope } from "effect"
import { Config, Redacted } from "effect"
import { expect, test } from "tstyche"

test("RedisTokenStore", () => {
  expect(RedisTokenStore.make).type.toBe<
    (
      options: RedisTokenStore.Options
    ) => Effect.Effect<TokenStore.Service, AccessTokenError.ConfigurationError, Scope.Scope>
  >()
  expect(RedisTokenStore.layer).type.toBe<
    (options: RedisTokenStore.Options) => Layer.Layer<TokenStore.TokenStore, AccessTokenError.ConfigurationError>
  >()
  expect(RedisTokenStore.layerConfig).type.toBe<
    (
      config?: Config.Config.Wrap<RedisTokenStore.Options>
    ) => Layer.Layer<TokenStore.TokenStore, AccessTokenError.ConfigurationError | ConfigError.ConfigError>
  >()
  expect(RedisTokenStore.fromClient).type.toBe<
    (client: RedisTokenStore.Commands, prefix?: string) => TokenStore.Service
  >()
})

test("RedisTokenStore.Options: the URL holds a password, so it is Redacted", () => {
  const { layer, layerConfig } = RedisTokenStore
  const url = Redacted.make("redis://127.0.0.1")
  expect(layer).type.toBeCallableWith({ url })
  expect(layer).type.toBeCallableWith({ url, prefix: "mine:" })
  expect(layer).type.not.toBeCallableWith({ url: "redis://127.0.0.1" })
  expect(layer).type.not.toBeCallableWith({})
  expect(layerConfig).type.toBeCallableWith()
  expect(layerConfig).type.toBeCallableWith({ url: Config.redacted("REDIS_URL") })
  expect(layerConfig).type.not.toBeCallableWith({ url: Config.string("REDIS_URL") })
})

test("RedisTokenStore.fromClient takes each kind of client of @redis/client, as it comes", () => {
  expect(RedisTokenStore.fromClient).type.toBeCallableWith(createClient())
  expect(RedisTokenStore.fromClient).type.toBeCallableWith(createClient(), "mine:")
  expect(RedisTokenStore.fromClient).type.toBeCallableWith(createClientPool())
  expect(RedisTokenStore.fromClient).type.toBeCallableWith(createCluster({ rootNodes: [] }))
  expect(RedisTokenStore.fromClient).type.toBeCallableWith(createSentinel({ name: "main", sentinelRootNodes: [] }))
  expect(RedisTokenStore.fromClient).type.not.toBeCallableWith({ get: () => Promise.resolve(null) })
})
