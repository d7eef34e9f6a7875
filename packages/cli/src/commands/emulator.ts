/** `store-api emulator`: the token service and a protected API on this machine. */
import * as EmulatorCommand from "@store-api/emulator/EmulatorCommand"
import * as Effect from "effect/Effect"
import { configuration, usage } from "../Fault.js"
import type * as flags from "../flags.js"
import { Host } from "../Host.js"
import * as output from "../output.js"

export const run = (given: flags.Values<typeof flags.emulator>) =>
  Effect.gen(function*() {
    const console = yield* Effect.console
    const { pathOf } = yield* Host
    const path = (text: string | undefined) => text === undefined ? undefined : pathOf(text)
    const toHost = { ...console, log: (text: unknown) => Effect.ignore(output.line(String(text))) }
    const files = { dotenv: path(given.dotenv), "env-file": path(given["env-file"]) }
    yield* EmulatorCommand.run({ ...given, ...files }).pipe(
      Effect.withConsole(toHost),
      Effect.mapError(({ message, option, reason }) =>
        reason === "InvalidOption" && option.startsWith("--") ? usage(message) : configuration(message)
      )
    )
  })
