/** The options of the store on Redis, by their types. docs/reference/api has the type of each function. */
import { createClient, createClientPool, createCluster, createSentinel } from "@redis/client"
import { RedisTokenStore } from "@store-api/redis"
import { Config, Redacted } from "effect"
import { expect, test } from "tstyche"

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
  expect(RedisTokenStore.fromClient).type.toBeCallableWith(
    createSentinel({ name: "main", sentinelRootNodes: [] })
  )
  expect(RedisTokenStore.fromClient).type.not.toBeCallableWith({
    get: () => Promise.resolve(null)
  })
})
