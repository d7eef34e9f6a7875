/** A declared API: the client derived from its declaration, over the authorized one. The tokens are nowhere to be seen. */
import { NodeRuntime } from "@effect/platform-node"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Console, Effect } from "effect"
import { storeClient } from "./declaredApi.js"

const program = Effect.gen(function*() {
  const store = yield* storeClient
  const placed = yield* store.orders.place({ payload: { item: "a chair" } })
  yield* Console.log(`order ${placed.id}: ${placed.item}`)
  yield* Console.log(`${(yield* store.orders.list()).length} in all`)
}).pipe(
  // The errors of the declaration, of the token and of the origin are told apart by their tags.
  Effect.catchTag("Unauthorized", () => Console.error("the store takes no token of ours")),
  Effect.catchTag("ParseError", () => Console.error("what STORE_API_URL names is not the declared API")),
  Effect.catchTag("TokenRefusedError", (error) => Console.error(error.message))
)

NodeRuntime.runMain(Effect.provide(program, NodeStoreAuth.layerConfig()))
