/** The whole command line, with its help and completions. A command is loaded when it is run. */
import { createRequire } from "node:module"
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import { exitCodes, Fault } from "./Fault.js"
import * as flags from "./flags.js"
import { withPlainConsole } from "./output.js"

const manifest: unknown = createRequire(import.meta.url)("../package.json")

/** Of this package. */
const version: string = (manifest as { readonly version: string }).version

const optionOf = (name: string, { alias, many, text, value }: flags.Flag): Options.Options<unknown> => {
  const named = <A>(option: Options.Options<A>): Options.Options<A> => {
    const described = Options.withDescription(option, text)
    return alias === undefined ? described : Options.withAlias(described, alias)
  }
  if (value === undefined) return named(Options.boolean(name))
  const option = named(Options.withPseudoName(Options.text(name), value))
  // With a default, the help says that it may be left out.
  return many === true ? Options.withDefault(Options.repeated(option), []) : Options.optional(option)
}

/** By the table, of which both the options and the type of their values are made. */
const optionsOf = <F extends flags.Flags>(table: F): Options.Options<flags.Values<F>> =>
  // `Object.fromEntries` loses the names of the fields.
  Options.all(
    Object.fromEntries(Object.entries<flags.Flag>(table).map(([name, flag]) => [name, optionOf(name, flag)]))
  ) as unknown as Options.Options<flags.Values<F>>

/** A module of a command, and what of it is run. */
const loaded = <M, A, E, R>(load: () => Promise<M>, run: (module: M) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(Effect.promise(load), run)

const token = Command.make(
  "token",
  { given: optionsOf(flags.token) },
  ({ given }) => loaded(() => import("./commands/token.js"), ({ run }) => run(given))
).pipe(
  Command.withDescription("Prints an access token for another program; it is kept for the next run.")
)

const call = Command.make(
  "call",
  {
    given: optionsOf(flags.call),
    method: Args.withDescription(Args.text({ name: "METHOD" }), "GET, POST, PUT, PATCH, DELETE, HEAD or OPTIONS"),
    path: Args.withDescription(Args.text({ name: "PATH" }), "Joined to STORE_API_URL")
  },
  ({ given, method, path }) => loaded(() => import("./commands/call.js"), ({ run }) => run(given, method, path))
).pipe(Command.withDescription("Calls an API with a token, and prints the answer as it comes."))

const check = Command.make(
  "check",
  {
    given: optionsOf(flags.check),
    path: Args.optional(Args.withDescription(Args.text({ name: "PATH" }), "A path of the API to GET"))
  },
  ({ given, path }) => loaded(() => import("./commands/check.js"), ({ run }) => run(given, path))
).pipe(Command.withDescription("Walks the way to a token step by step, and says what is wrong on it."))

const status = Command.make(
  "status",
  { given: optionsOf(flags.status) },
  ({ given }) => loaded(() => import("./commands/status.js"), ({ run }) => run(given))
).pipe(
  Command.withDescription("Tells whether a token is stored, and for how long it is good. Asks no server.")
)

const emulator = Command.make(
  "emulator",
  { given: optionsOf(flags.emulator) },
  ({ given }) => loaded(() => import("./commands/emulator.js"), ({ run }) => run(given))
).pipe(
  Command.withDescription("Starts the access-token service and a protected API on this machine.")
)

const cli = Command.run(
  Command.make("store-api").pipe(
    Command.withDescription("Access tokens for the store API suite."),
    Command.withSubcommands([token, call, check, status, emulator])
  ),
  { name: "store-api", version, executable: "store-api" }
)

export const run = (args: ReadonlyArray<string>) =>
  cli(["node", "store-api", ...args]).pipe(
    // What was wrong was printed where it was found.
    Effect.catchIf((error) => error._tag !== "Fault", () => new Fault({ code: exitCodes.usage, message: "" })),
    withPlainConsole,
    Effect.provide(NodeContext.layer)
  )
