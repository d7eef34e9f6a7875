import { Console, Effect } from "effect"
import { isConfigured } from "./environment.js"
import { sentence } from "./failure.js"
import { withEmulator, withService } from "./stories.js"

/**
 * Runs the demo with the service if any `STORE_API_*` variable is set, else with the emulator. Returns the exit code.
 */
export const main = Effect.if(isConfigured, { onTrue: () => withService, onFalse: () => withEmulator }).pipe(
  Effect.as(0),
  Effect.catchAll((error) => Effect.as(Console.error(sentence(error)), 1))
)
