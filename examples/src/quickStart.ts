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
  Effect.tapErrorTag("TokenExpiredError", () => Console.error("is the clock of this machine right?"))
)

NodeRuntime.runMain(Effect.provide(orders, StoreAuthLive)) // reports a failure, and exits with code 1
