/** Gets a token that is shared through Redis. Its arguments: the URLs of the store and of Redis, and how it ends. */
import { PromiseStoreAuth } from "@store-api/platform-node"
import { RedisTokenStore } from "@store-api/redis"
import { Redacted } from "effect"

const [url = "", redis = "", end = ""] = process.argv.slice(2)

const store = PromiseStoreAuth.make({
  authUrl: url,
  apiUrl: url,
  clientId: "demo-client",
  clientSecret: Redacted.make("an invented secret"),
  http: { proxy: "none" },
  store: RedisTokenStore.layer({ url: Redacted.make(redis) })
})

const { tokenType } = await store.getToken()
console.log(tokenType)
if (end === "dispose") await store.dispose()
