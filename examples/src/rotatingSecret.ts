/**
 * The secret in a file, read at each acquisition: whoever rotates it writes the file, and restarts nothing. The file has
 * the name of the variable, in the folder that SECRETS_FOLDER names, as container platforms mount secrets.
 */
import { PlatformConfigProvider } from "@effect/platform"
import { NodeContext, NodeRuntime } from "@effect/platform-node"
import { AuthorizedHttpClient, ClientCredentials } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Config, Console, Effect, Layer, Schedule } from "effect"

/** What is not in the environment is looked for in the folder, anew each time. */
const SecretsLive = Layer.unwrapEffect(
  Effect.map(
    Config.string("SECRETS_FOLDER"),
    (rootDirectory) => PlatformConfigProvider.layerFileTreeAdd({ rootDirectory })
  )
).pipe(Layer.provide(NodeContext.layer))

const StoreAuthLive = NodeStoreAuth.layerConfig({
  authUrl: Config.string("STORE_API_AUTH_URL"),
  apiUrl: Config.string("STORE_API_URL"),
  credentials: Config.succeed(ClientCredentials.fromConfig())
}).pipe(Layer.provide(SecretsLive))

const call = Effect.gen(function*() {
  const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
  const { status } = yield* client.get("/orders")
  return `the store answers ${status}`
}).pipe(Effect.catchAll((error) => Effect.succeed(`${error._tag}: ${error.message}`)))

const program = Effect.repeat(Effect.flatMap(call, Console.log), Schedule.spaced("250 millis"))

NodeRuntime.runMain(Effect.provide(program, StoreAuthLive))
