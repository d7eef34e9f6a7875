import { NodeRuntime } from "@effect/platform-node"
import { AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Console, Effect } from "effect"

const StoreAuthLive = NodeStoreAuth.layerConfig() // from STORE_API_AUTH_URL, STORE_API_URL, STORE_API_CLIENT_ID, …_SECRET

const orders = Effect.gen(function*() {
  const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
  const response = yield* client.get("/orders") // relative to STORE_API_URL, with the token
  yield* Console.log(response.status, yield* response.json)
}).pipe(
  Effect.catchTag("TokenExpiredError", (error) => Console.error("check the clock:", error.message)),
  Effect.catchAll((error) => Console.error(error._tag, error.message)) // all others, of the token and of the call
)

NodeRuntime.runMain(Effect.provide(orders, StoreAuthLive))
