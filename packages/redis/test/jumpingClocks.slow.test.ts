import { describe } from "@effect/vitest"
import { RedisTokenStore } from "@store-api/redis"
import { runRandomFleets, runScenarios } from "@store-api/testing/jumpingClocksLive"
import { isLeftOut, sharedRedis } from "@store-api/testing/redisServers"
import { test } from "@store-api/testing/test"
import { Effect, Redacted } from "effect"

const seed = Number(process.env["MODEL_SEED"] ?? Math.floor(Math.random() * 2 ** 31))

describe.skipIf(isLeftOut)(
  "processes with wrong wall clocks that share a token in Redis",
  () => {
    const redis = sharedRedis()
    const store = Effect.flatMap(
      redis,
      ({ url }) => RedisTokenStore.make({ url: Redacted.make(url) })
    )

    test.live("every call gets a valid token while one wall clock is ahead, behind or set back", function*() {
      yield* runScenarios(yield* store)
    })

    test.live(`every call gets a valid token while all wall clocks jump at random (MODEL_SEED=${seed})`, function*() {
      yield* runRandomFleets(yield* store, 40, seed)
    })
  }
)
