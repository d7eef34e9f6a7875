import { describe } from "@effect/vitest"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Layer, Redacted } from "effect"
import { tokenStoreContract } from "../../core/test/support/tokenStoreContract.js"
import { isLeftOut, sharedRedis } from "./support/redisServer.js"

describe.skipIf(isLeftOut)("RedisTokenStore", () => {
  const store = Effect.map(sharedRedis(), ({ url }) => RedisTokenStore.layer({ url: Redacted.make(url) }))
  tokenStoreContract("RedisTokenStore", Layer.unwrapEffect(store))
})
