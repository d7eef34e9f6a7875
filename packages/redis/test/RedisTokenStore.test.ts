import { describe } from "@effect/vitest"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Layer, Redacted } from "effect"
import { tokenStoreContract } from "../../core/test/support/tokenStoreContract.js"
import { isLeftOut, redisServer } from "./support/redisServer.js"

describe.skipIf(isLeftOut)("RedisTokenStore", () => {
  tokenStoreContract(
    "RedisTokenStore",
    Layer.unwrapScoped(Effect.map(redisServer(), ({ url }) => RedisTokenStore.layer({ url: Redacted.make(url) })))
  )
})
