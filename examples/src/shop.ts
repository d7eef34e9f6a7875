/** Application code, tested in test/shop.test.ts. */
import { AccessTokenError, AuthorizedHttpClient } from "@store-api/core"
import { Effect } from "effect"

/** Whether the store is open. Returns `false` while no token is available. Other errors stay in the type. */
export const isOpen = Effect.flatMap(
  AuthorizedHttpClient.AuthorizedHttpClient,
  (client) => client.get("/opening-hours")
).pipe(
  Effect.map(({ status }) => status === 200),
  Effect.catchIf(AccessTokenError.isTransient, () => Effect.succeed(false))
)
