/** `store-api emulator`: the token service and a protected API on this machine. */
import type { Command } from "@store-api/emulator/EmulatorCommand"
import * as Effect from "effect/Effect"
import { configuration, usage } from "../Fault.js"
import { Host } from "../Host.js"
import * as output from "../output.js"

export const run = ({ flags, run }: Command, given: Parameters<Command["run"]>[0], argument: string) =>
  Effect.gen(function*() {
    const console = yield* Effect.console
    const { pathOf } = yield* Host
    const toHost = { ...console, log: (text: unknown) => Effect.ignore(output.line(String(text))) }
    const values = Object.entries(given).map(([name, value]) =>
      [name, flags[name]?.value === "FILE" && typeof value === "string" ? pathOf(value) : value] as const
    )
    yield* run(Object.fromEntries(values), argument).pipe(
      Effect.withConsole(toHost),
      Effect.mapError(({ message, option, reason }) =>
        reason === "InvalidOption" && !option.startsWith("STORE_API") ? usage(message) : configuration(message)
      )
    )
  })
