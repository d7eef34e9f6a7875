/**
 * A process that has one token and is done, over the packages as they are built. It says so, and ends by itself, unless it is
 * told to leave its layer open (argument 2: `"leaked"`).
 */
import { AccessTokenProvider, ClientCredentials, SharedTokenSource, StoreAuth, TokenEndpoint } from "@store-api/core"
import { NodeHttp } from "@store-api/platform-node"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Layer, Logger, ManagedRuntime, Redacted } from "effect"

const [settings, end] = process.argv.slice(2)
const { apiUrl, authUrl, clientId, clientSecret, redisUrl } = JSON.parse(settings)

const credentials = ClientCredentials.make({ clientId, clientSecret: Redacted.make(clientSecret) })

const runtime = ManagedRuntime.make(
  StoreAuth.layerFromSource({ apiUrl }).pipe(
    Layer.provide(SharedTokenSource.layer({ authUrl, credentials })),
    Layer.provide(TokenEndpoint.layer({ authUrl, credentials })),
    Layer.provide([RedisTokenStore.layer({ url: Redacted.make(redisUrl) }), NodeHttp.layer()]),
    Layer.provide(Logger.remove(Logger.defaultLogger))
  )
)

await runtime.runPromise(Effect.flatMap(AccessTokenProvider.AccessTokenProvider, ({ get }) => get))
if (end !== "leaked") await runtime.dispose()
process.stdout.write("done\n")
