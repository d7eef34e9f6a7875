import { HttpClient } from "@effect/platform" // Effect 4: "effect/http"
import { NodeRuntime } from "@effect/platform-node"
import { AccessTokenError, AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Console, Effect } from "effect"

// Reads STORE_API_AUTH_URL, STORE_API_URL, STORE_API_CLIENT_ID and STORE_API_CLIENT_SECRET.
const StoreAuthLive = NodeStoreAuth.layerConfig()

const orders = Effect.gen(function*() {
  const client = HttpClient.filterStatusOk(yield* AuthorizedHttpClient.AuthorizedHttpClient) // fails unless the status is 2xx
  const response = yield* client.get("/orders") // relative to STORE_API_URL; the token is added
  yield* Console.log(response.status, yield* response.json)
}).pipe(
  Effect.tapErrorTag("TokenRefusedError", ({ reason }) =>
    reason === "InvalidClient"
      ? Console.error("Correct STORE_API_CLIENT_ID or STORE_API_CLIENT_SECRET.")
      : Effect.void),
  Effect.tapError((error) =>
    AccessTokenError.isTransient(error)
      ? Console.error("The token endpoint is unreachable or busy. Run the program again later.")
      : Effect.void
  )
)

NodeRuntime.runMain(Effect.provide(orders, StoreAuthLive)) // prints the error and exits with code 1 if it fails
