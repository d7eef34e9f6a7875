/** Code of an application, which its tests try: test/shop.test.ts. */
import { AuthorizedHttpClient } from "@store-api/core"
import { Effect } from "effect"

/** Whether the store is open; it is not when its token service cannot be reached. Other errors stay in the type. */
export const isOpen = Effect.flatMap(
  AuthorizedHttpClient.AuthorizedHttpClient,
  (client) => client.get("/opening-hours")
).pipe(
  Effect.map(({ status }) => status === 200),
  Effect.catchTag("TokenRequestError", () => Effect.succeed(false))
)
