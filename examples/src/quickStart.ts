import { NodeRuntime } from "@effect/platform-node"
import { AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Console, Effect } from "effect"

const StoreAuthLive = NodeStoreAuth.layerConfig() // reads STORE_API_*

const orders = Effect.gen(function*() {
  const store = yield* AuthorizedHttpClient.AuthorizedHttpClient
  const response = yield* store.get("/orders") // relative to STORE_API_URL
  yield* Console.log(response.status, yield* response.json)
})

NodeRuntime.runMain(Effect.provide(orders, StoreAuthLive))
