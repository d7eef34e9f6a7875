/** From a command line to an exit code. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { type Fault, usage } from "./Fault.js"
import { type Command, commands } from "./flags.js"
import * as output from "./output.js"
import { flagsFirst, parse } from "./parse.js"
import { listed } from "./wording.js"

/** A secret in a flag is known to the whole machine already; it is not printed here besides. */
const isSecretFlag = (arg: string): boolean => /^--?(client[-_]?)?secret(=|$)/i.test(arg)

const dispatch = (args: ReadonlyArray<string>) => {
  if (args.some(isSecretFlag)) {
    return Effect.fail(usage(
      "A secret is never a flag, since others on this machine can read those: " +
        "use STORE_API_CLIENT_SECRET, --secret-file or --secret-stdin."
    ))
  }
  const [name, ...rest] = args
  if (name === undefined || (["--help", "-h", "help"].includes(name) && rest.length === 0)) {
    return Effect.flatMap(
      Effect.promise(() => import("./overview.js")),
      ({ overview }) => output.write("stdout", overview)
    )
  }
  if (args.some(isOfEveryCommand)) return app(args)
  return isCommand(name) ? command(name, rest) : Effect.fail(usage(
    name.startsWith("-")
      ? "Flags come after the command: store-api COMMAND, then these. See store-api --help."
      : `There is no such command: there are ${listed(Object.keys(commands))}. See store-api --help.`
  ))
}

/** The one command that other programs wait for does not wait for the help. */
const command = (name: Command, args: ReadonlyArray<string>) =>
  name === "token"
    ? Effect.flatMap(parse(name, args), (parsed) =>
      Option.isSome(parsed.logLevel)
        ? app([name, ...flagsFirst(parsed)])
        : Effect.flatMap(Effect.promise(() => import("./commands/token.js")), ({ run }) => run(parsed.values)))
    : Effect.flatMap(parse(name, args), (parsed) => app([name, ...flagsFirst(parsed)]))

const app = (args: ReadonlyArray<string>) =>
  Effect.flatMap(Effect.promise(() => import("./app.js")), ({ run }) => run(args))

const isCommand = (name: string): name is Command => Object.hasOwn(commands, name)

/** What `@effect/cli` brings along, and answers by itself. */
const isOfEveryCommand = (arg: string): boolean => /^(-h|--help|--version|--wizard|--completions(=.*)?)$/.test(arg)

const explain = ({ code, message }: Fault): Effect.Effect<number> =>
  Effect.as(message === "" ? Effect.void : Effect.flatMap(output.red("stderr", message), output.note), code)

export const main = (args: ReadonlyArray<string>): Effect.Effect<number> =>
  dispatch(args).pipe(
    Effect.as(0),
    Effect.catchTag("Fault", explain),
    Effect.provide(Layer.merge(NodeFileSystem.layer, output.layerLogger))
  )
