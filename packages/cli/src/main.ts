/** From a command line to an exit code. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as Effect from "effect/Effect"
import { parse } from "./commandLine.js"
import { commands, load } from "./commands.js"
import { type Fault, usage } from "./Fault.js"
import { Host } from "./Host.js"
import * as output from "./output.js"

/** Other users can read the arguments of a process, so this program does not repeat such a secret. */
const isSecretFlag = (arg: string): boolean => /^--?(client[-_]?)?secret(=|$)/i.test(arg)

const run = (args: ReadonlyArray<string>) => {
  // Those after -- are of another program.
  if (args.slice(0, [...args, "--"].indexOf("--")).some(isSecretFlag)) {
    return usage(
      "A secret is never a flag, because others on this machine can read flags. " +
        "Use STORE_API_CLIENT_SECRET or --secret-file."
    )
  }
  // Hidden: the completion scripts run it.
  return args[0] === "__complete"
    ? load(() => import("./commands/completion.js"), ({ complete }) => complete(commands, args.slice(1)))
    : Effect.flatMap(Host, ({ process }) => parse(args, Math.min(process.stdout.columns ?? 80, 80)))
}

const report = ({ code, message }: Fault): Effect.Effect<number> =>
  Effect.as(message === "" ? Effect.void : output.problem(message), code)

export const main = (args: ReadonlyArray<string>): Effect.Effect<number> =>
  Effect.suspend(() => run(args)).pipe(
    Effect.as(0),
    Effect.catchTag("Fault", report),
    Effect.provide(NodeFileSystem.layer),
    output.withLogger
  )
