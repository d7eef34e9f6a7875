/** `store-api emulator`: the access-token service and a protected API on this machine, with faults by name. */
import * as EmulatorCommand from "@store-api/emulator/EmulatorCommand"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { configuration, usage } from "../Fault.js"
import type * as flags from "../flags.js"

export const run = (given: flags.Values<typeof flags.emulator>) =>
  EmulatorCommand.run({
    ...given,
    port: Option.getOrUndefined(given.port),
    "token-life": Option.getOrUndefined(given["token-life"]),
    "client-id": Option.getOrUndefined(given["client-id"])
  }).pipe(
    Effect.mapError(({ message, option, reason }) =>
      reason === "InvalidOption" && option.startsWith("--") ? usage(message) : configuration(message)
    )
  )
