/** One of many processes with one token: start it as often as you like, with the same Redis. */
import { NodeRuntime } from "@effect/platform-node"
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { RedisTokenStore } from "@store-api/redis"
import { Console, DateTime, Effect, Layer } from "effect"

// STORE_API_AUTH_URL, STORE_API_URL, STORE_API_CLIENT_ID, STORE_API_CLIENT_SECRET, and STORE_API_REDIS_URL
const StoreAuthLive = NodeStoreAuth.layerSharedConfig().pipe(Layer.provide(RedisTokenStore.layerConfig()))

const program = Effect.gen(function*() {
  const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
  const { status } = yield* client.get("/orders")
  const { expiresAt } = yield* Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get)
  yield* Console.log(`${status}, with the token that dies at ${DateTime.formatIso(expiresAt)}`)
})

NodeRuntime.runMain(Effect.provide(program, StoreAuthLive))
