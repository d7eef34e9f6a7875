/** `store-api run`: another program, with a token in its environment. */
import { spawn } from "node:child_process"
import { constants } from "node:os"
import { isatty } from "node:tty"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { exitCodes, Fault } from "../Fault.js"
import type * as flags from "../flags.js"
import { Host } from "../Host.js"
import { acquireToken } from "../provider.js"
import { read } from "../settings.js"

export const run = (given: flags.Values<typeof flags.run>, [command = "", ...args]: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const token = yield* acquireToken(yield* read(given), given)
    const { env } = (yield* Host).process
    const variables = { ...env, STORE_API_ACCESS_TOKEN: Redacted.value(token.value) }
    const code = yield* Effect.async<number, Fault>((resume) => {
      // The program decides when it ends. A terminal sends Ctrl+C to it as well. Standard input stays unopened: Node
      // would make a pipe non-blocking, also for the program.
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
        const others = process.listeners(signal)
        process.on(signal, () => signal === "SIGINT" && isatty(0) ? undefined : child.kill(signal))
        others.forEach((other) => process.off(signal, other))
      }
      const child = spawn(command, args, { stdio: "inherit", env: variables })
      child.on("error", (error: NodeJS.ErrnoException) => {
        const message = `Cannot run ${command} (${error.code ?? "no reason given"}).`
        resume(new Fault({ code: exitCodes.notStarted.code, message }))
      })
      child.on("close", (code, signal) => {
        resume(Effect.succeed(code ?? 128 + (signal === null ? 0 : constants.signals[signal])))
      })
    })
    if (code !== 0) return yield* new Fault({ code, message: "" })
  })
