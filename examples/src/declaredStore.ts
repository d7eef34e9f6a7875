/** Starts a token service and the declared API for httpApiClient.ts on this machine. Prints the variables to set. */
import { NodeRuntime } from "@effect/platform-node"
import { Emulator } from "@store-api/emulator"
import { Console, Effect, Redacted } from "effect"
import * as DeclaredServer from "./declared/server.js"

const program = Effect.gen(function*() {
  const emulator = yield* Emulator.make()
  const { apiUrl } = yield* DeclaredServer.make(emulator)
  const { clientId, clientSecret } = Emulator.demoClient
  yield* Console.log(`export STORE_API_AUTH_URL='${emulator.url}' STORE_API_URL='${apiUrl}'`)
  yield* Console.log(
    `export STORE_API_CLIENT_ID='${clientId}' STORE_API_CLIENT_SECRET='${
      Redacted.value(clientSecret)
    }'`
  )
  yield* Effect.never
})

NodeRuntime.runMain(Effect.scoped(program))
