/** Starts the command `store-api`. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { exitCodes } from "./Fault.js"
import { main } from "./main.js"

// Who reads has enough (`| head`): that is no fault, and nobody to tell it to. Standard error is beside the point: without a
// reader of it, all goes on to its own end.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? 0 : exitCodes.unexpected)
})
process.stderr.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") process.exit(exitCodes.unexpected)
})

let interrupted: number = exitCodes.interrupted
// The first signal says how it ends. With no listener left, the next ends it at once.
const onSignal = (signal: NodeJS.Signals) => {
  process.off("SIGINT", onSignal).off("SIGTERM", onSignal)
  if (signal === "SIGTERM") interrupted = 143
}
process.on("SIGINT", onSignal).on("SIGTERM", onSignal)

/** What is being let go of after a signal has that long; then the program ends all the same. */
const grace = "2 seconds"

const program = Effect.flatMap(
  Effect.forkDaemon(main(process.argv.slice(2))),
  (fiber) =>
    Effect.onInterrupt(
      Fiber.join(fiber),
      () =>
        Effect.zipRight(
          Fiber.interruptFork(fiber),
          Effect.timeoutOption(Effect.interruptible(Fiber.await(fiber)), grace)
        )
    )
)

NodeRuntime.runMain(program, {
  disableErrorReporting: true,
  disablePrettyLogger: true,
  teardown: (exit: Exit.Exit<unknown, unknown>) => {
    if (Exit.isSuccess(exit)) process.exit(Number(exit.value))
    if (Cause.isInterruptedOnly(exit.cause)) process.exit(interrupted)
    process.stderr.write(`store-api failed unexpectedly: ${String(Cause.squash(exit.cause))}\n`, () => {
      process.exit(exitCodes.unexpected)
    })
  }
})
