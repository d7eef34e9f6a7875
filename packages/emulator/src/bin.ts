/**
 * Starts the command `store-api-emulator`.
 *
 * @since 1.0.0
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as command from "./internal/command.js"

NodeRuntime.runMain(
  command.run(process.argv.slice(2)).pipe(
    // An expected error prints one sentence; `runMain` reports any other.
    Effect.catchAll(({ message }) =>
      Effect.map(Console.error(message), () => {
        process.exitCode = 1
      })
    )
  )
)
