/** `store-api run`: another program, with a token in its environment. */
import { spawn } from "node:child_process"
import { constants } from "node:os"
import { isatty } from "node:tty"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { CommandError, notStartedError, systemCode } from "../../CommandError.js"
import type { Values } from "../../flags.js"
import { Host } from "../../Host.js"
import { readForToken } from "../../settings/settings.js"
import { acquireToken } from "../../token/provider.js"
import type { runFlags } from "./flags.js"

export const runProgram = (
  flagValues: Values<typeof runFlags>,
  [command = "", ...args]: ReadonlyArray<string>
) =>
  Effect.gen(function*() {
    const token = yield* acquireToken(yield* readForToken(flagValues), flagValues)
    const { env } = (yield* Host).process
    const variables = { ...env, STORE_API_ACCESS_TOKEN: Redacted.value(token.value) }
    const code = yield* Effect.async<number, CommandError>((resume) => {
      // The program decides when it ends. A terminal sends Ctrl+C to it as well. Standard input stays unopened, because
      // Node would make a pipe non-blocking for the program, too.
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
        const otherNames = process.listeners(signal)
        process.on(signal, () =>
          signal === "SIGINT" && isatty(0) ? undefined : child.kill(signal))
        otherNames.forEach((name) =>
          process.off(signal, name)
        )
      }
      const child = spawn(command, args, { stdio: "inherit", env: variables })
      // Node emits some errors of the system, and throws others, such as ENOTDIR.
      child.on("error", (error) => resume(Effect.die(error)))
      child.on("close", (code, signal) => {
        resume(Effect.succeed(code ?? 128 + (signal === null ? 0 : constants.signals[signal])))
      })
    }).pipe(
      Effect.catchAllDefect((error) =>
        notStartedError(`Cannot run ${command} (${systemCode(error) ?? "no reason given"}).`)
      )
    )
    if (code !== 0) return yield* new CommandError({ code, message: "" })
  })
