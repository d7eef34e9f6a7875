/**
 * The demo behind `npm start`: a token is had, used, kept, renewed and recovered, for everyone to see.
 *
 * Without any `STORE_API_*` variable it starts the emulator on this machine; with them it talks to the real service.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { isConfigured } from "./demo/environment.js"
import { sentence } from "./demo/failure.js"
import { withEmulator, withService } from "./demo/stories.js"

const demo = Effect.if(isConfigured, { onTrue: () => withService, onFalse: () => withEmulator })

NodeRuntime.runMain(
  demo.pipe(
    Effect.catchAll((error) =>
      Effect.zipRight(
        Console.error(sentence(error)),
        Effect.sync(() => {
          process.exitCode = 1
        })
      )
    )
  )
)
