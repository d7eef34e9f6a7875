/** One of several processes that share a token through Redis. Start it several times. */
import { NodeRuntime } from "@effect/platform-node"
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { RedisTokenStore } from "@store-api/redis"
import { Console, DateTime, Effect, Layer } from "effect"
import { HttpClient } from "effect/http"

// Reads the four variables of the store, and STORE_API_REDIS_URL.
const StoreAuthLive = NodeStoreAuth.layerSharedConfig().pipe(
  Layer.provide(RedisTokenStore.layerConfig())
)

const program = Effect.gen(function*() {
  const client = HttpClient.filterStatusOk(yield* AuthorizedHttpClient.AuthorizedHttpClient)
  const { status } = yield* client.get("/orders")
  const { expiresAt } = yield* Effect.flatMap(
    AccessTokenProvider.AccessTokenProvider,
    (provider) => provider.get
  )
  yield* Console.log(
    `${status}, with the token that expires at ${DateTime.formatIso(expiresAt)}`
  )
})

NodeRuntime.runMain(Effect.provide(program, StoreAuthLive))
