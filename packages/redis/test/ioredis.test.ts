/** The store over ioredis, by the two functions that the README shows. */
import { describe } from "@effect/vitest"
import { TokenStore } from "@store-api/core"
import { rules } from "@store-api/core/TokenStoreContract"
import { RedisTokenStore } from "@store-api/redis"
import { isLeftOut, sharedRedis } from "@store-api/testing/redisServers"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"
import { Redis } from "ioredis"

const storeOf = (client: Redis) =>
  RedisTokenStore.fromClient({
    set: (key, value, { PX }) => client.set(key, value, "PX", PX),
    eval: (script, options) =>
      client.eval(script, options.keys.length, ...options.keys, ...options.arguments)
  })

const clientAt = (url: string) =>
  Effect.acquireRelease(
    Effect.sync(() => new Redis(url)),
    (client) => Effect.sync(() => client.disconnect())
  )

describe.skipIf(isLeftOut)("RedisTokenStore over ioredis fulfils the contract", () => {
  const redis = sharedRedis()
  for (const { check, rule } of rules) {
    test.live(rule, function*() {
      const store = storeOf(yield* clientAt((yield* redis).url))
      yield* Effect.provideService(check, TokenStore.TokenStore, store)
    })
  }
})
