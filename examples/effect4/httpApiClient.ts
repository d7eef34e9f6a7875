/** Calls a declared API through the client that Effect derives from its declaration. The token is added underneath. */
import { NodeRuntime } from "@effect/platform-node"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Console, Effect } from "effect"
import { storeClient } from "./declared/api.js"

const StoreAuthLive = NodeStoreAuth.layerConfig()

const program = Effect.gen(function*() {
  const store = yield* storeClient
  const placed = yield* store.orders.place({ payload: { item: "a chair" } })
  yield* Console.log(`order ${placed.id}: ${placed.item}`)
  yield* Console.log(`orders in all: ${(yield* store.orders.list()).length}`)
}).pipe(
  // The errors of the declaration and those of the token have different tags. The program exits with code 1 on each.
  Effect.tapErrorTag("Unauthorized", () => Console.error("The store rejects the token.")),
  Effect.tapErrorTag(
    "SchemaError",
    () => Console.error("STORE_API_URL does not lead to the declared API.")
  ),
  Effect.tapErrorTag("TokenRefusedError", (error) => Console.error(error.message))
)

NodeRuntime.runMain(Effect.provide(program, StoreAuthLive), { disableErrorReporting: true })
