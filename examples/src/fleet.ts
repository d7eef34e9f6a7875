/** One of many processes with one token: start it as often as you like, with the same Redis. */
import { NodeRuntime } from "@effect/platform-node"
import {
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  SharedTokenSource,
  TokenEndpoint
} from "@store-api/core"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { RedisTokenStore } from "@store-api/redis"
import { Config, Console, DateTime, Effect, Layer } from "effect"

const StoreAuthLive = Layer.unwrapEffect(Effect.gen(function*() {
  const endpoint = { authUrl: yield* Config.string("STORE_API_AUTH_URL"), credentials: ClientCredentials.fromConfig() }
  return NodeStoreAuth.layerFromSource({ apiUrl: yield* Config.string("STORE_API_URL") }).pipe(
    Layer.provide(SharedTokenSource.layer(endpoint)), // asks the others first
    Layer.provide(TokenEndpoint.layer(endpoint)), // asks the endpoint, for all of them
    Layer.provide([RedisTokenStore.layerConfig(), NodeHttp.layer()]) // STORE_API_REDIS_URL
  )
}))

const program = Effect.gen(function*() {
  const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
  const { status } = yield* client.get("/orders")
  const { expiresAt } = yield* Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get)
  yield* Console.log(`${status}, with the token that dies at ${DateTime.formatIso(expiresAt)}`)
})

NodeRuntime.runMain(Effect.provide(program, StoreAuthLive))
