/**
 * Reads the secret from a file at each acquisition, so that a new secret needs no restart. The file is named like the
 * variable, in the folder SECRETS_FOLDER, as container platforms mount secrets.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { AuthorizedHttpClient, ClientCredentials } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Config, ConfigProvider, Console, Effect, Layer, Schedule } from "effect"
import { HttpClient } from "effect/http"

/** Reads a variable that is not set from the folder, at each use. */
const SecretsLive = Layer.unwrap(
  Effect.map(
    Config.String("SECRETS_FOLDER"),
    (rootDirectory) =>
      ConfigProvider.layerAdd(ConfigProvider.fromDir({ rootPath: rootDirectory }))
  )
).pipe(Layer.provide(NodeServices.layer))

const StoreAuthLive = NodeStoreAuth.layerConfig({
  authUrl: Config.String("STORE_API_AUTH_URL"),
  apiUrl: Config.String("STORE_API_URL"),
  // The value of this option is the effect itself. The library runs it whenever it acquires a token.
  credentials: Config.succeed(ClientCredentials.fromConfig())
}).pipe(Layer.provide(SecretsLive))

const call = Effect.gen(function*() {
  const client = HttpClient.filterStatusOk(yield* AuthorizedHttpClient.AuthorizedHttpClient)
  const { status } = yield* client.get("/orders")
  yield* Console.log(`GET /orders: ${status}`)
}).pipe(
  // The worker goes on, because the next rotation may bring a valid secret.
  Effect.catch((error) => Console.error(`${error._tag}: ${error.message}`))
)

const program = Effect.flatMap(
  Config.withDefault(Config.Duration("CALL_INTERVAL"), "1 minute"),
  (interval) => Effect.repeat(call, Schedule.spaced(interval))
)

NodeRuntime.runMain(Effect.provide(program, StoreAuthLive))
