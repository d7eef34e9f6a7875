/** Runs a command line as the main program: exit codes, signals and closed pipes. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { exitCodes } from "./CommandError.js"
import { visible } from "./output.js"

// A closed pipe (`| head`) ends the run without an error, unless the API has responded with one. The run continues if
// only standard error is closed.
// The command that writes reports any other failure of standard output.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit()
})
process.stderr.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") process.exit(exitCodes.output.code)
})

let interruptedCode: number = exitCodes.interrupted.code
// The first signal sets the exit code. Without a listener, the next one ends the process at once.
const onSignal = (signal: NodeJS.Signals) => {
  process.off("SIGINT", onSignal).off("SIGTERM", onSignal)
  if (signal === "SIGTERM") interruptedCode = 143
  // The terminal shows ^C, so the shell's prompt needs a new line.
  else if (process.stderr.isTTY) process.stderr.write("\n")
}
process.on("SIGINT", onSignal).on("SIGTERM", onSignal)

/** How long finalizers may take after a signal. */
const grace = "2 seconds"

/** `main`: turns the arguments into an exit code. */
export const runMain = (
  main: (args: ReadonlyArray<string>) => Effect.Effect<number>
): void => {
  const program = Effect.flatMap(Effect.forkDaemon(main(process.argv.slice(2))), (fiber) => {
    const stop = Effect.timeoutOption(Effect.interruptible(Fiber.interrupt(fiber)), grace)
    return Effect.onInterrupt(Fiber.join(fiber), () => stop)
  })
  NodeRuntime.runMain(program, {
    disableErrorReporting: true,
    disablePrettyLogger: true,
    teardown: (exit: Exit.Exit<unknown, unknown>) => {
      if (Exit.isSuccess(exit)) process.exit(Number(exit.value))
      if (Cause.isInterruptedOnly(exit.cause)) process.exit(interruptedCode)
      process.stderr.write(
        `store-api failed unexpectedly: ${visible(String(Cause.squash(exit.cause)))}\n`,
        () => {
          process.exit(exitCodes.unexpected.code)
        }
      )
    }
  })
}
