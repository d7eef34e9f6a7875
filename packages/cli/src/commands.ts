/** The commands. Other programs wait for `token`, so the larger modules of other commands are loaded when they run. */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as EmulatorCommand from "@store-api/emulator/EmulatorCommand"
import * as Effect from "effect/Effect"
import { logout, run, status, token } from "./commands/token.js"
import { configuration, type Fault, usage } from "./Fault.js"
import * as flags from "./flags.js"
import { Host } from "./Host.js"
import * as output from "./output.js"

export type Run = Effect.Effect<void, Fault, FileSystem.FileSystem>

/** The values of the flags, by name. */
export type Given = Parameters<EmulatorCommand.Command["run"]>[0]

export interface Command extends Omit<EmulatorCommand.Command, "flags" | "run"> {
  readonly flags: flags.Flags
  /** None for a group of commands. */
  readonly run?: (given: Given, args: ReadonlyArray<string>) => Run
}

const command = <F extends flags.Flags>(
  table: F,
  { run, ...about }: Omit<Command, "flags" | "run"> & {
    readonly run: (given: flags.Values<F>, argument: string, args: ReadonlyArray<string>) => Run
  }
): Command => ({
  ...about,
  flags: table,
  // The parser creates the values from the same table as their type.
  run: (given, args) => run(given as flags.Values<F>, args[0] ?? "", args)
})

export const load = <M>(module: () => Promise<M>, run: (module: M) => Run): Run =>
  Effect.flatMap(Effect.promise(module), run)

/** The commands of `store-api-emulator`, as a group. */
const emulator = Object.fromEntries(
  Object.entries(EmulatorCommand.commands).map(([name, command]): [string, Command] => [
    `emulator ${name}`.trim(),
    {
      ...command,
      examples: command.examples.map((line) => `emulator ${line}`),
      run: (given, [argument = ""]) => runEmulator(command, given, argument)
    }
  ])
)

const runEmulator = ({ flags, run }: EmulatorCommand.Command, given: Given, argument: string) =>
  Effect.gen(function*() {
    const console = yield* Effect.console
    const { pathOf } = yield* Host
    let written: Effect.Effect<void, Fault> = Effect.void
    const log = (text: unknown) => Effect.map(Effect.exit(output.line(String(text))), (exit) => void (written = exit))
    const values = Object.entries(given).map(([name, value]) =>
      [name, flags[name]?.value === "FILE" && typeof value === "string" ? pathOf(value) : value] as const
    )
    yield* run(Object.fromEntries(values), argument).pipe(
      Effect.withConsole({ ...console, log }),
      Effect.mapError(({ message, option, reason }) =>
        reason === "InvalidOption" && !option.startsWith("STORE_API") ? usage(message) : configuration(message)
      )
    )
    yield* written
  })

export const commands: Readonly<Record<string, Command>> = {
  token: command(flags.token, {
    text: "Print an access token for another program",
    examples: ["token --format json", "token --format header | curl -H @- $STORE_API_URL/orders"],
    run: token
  }),
  call: command(flags.call, {
    text: "Call the API with a token",
    args: "<path>",
    more: "Pretty-prints JSON on a terminal, and passes the body unchanged to a file or a pipe, such as one to jq.",
    examples: ["call '/orders?page=2' --include", "call /orders -d @order.json --fail"],
    run: (given, path) => load(() => import("./commands/call.js"), ({ run }) => run(given, path))
  }),
  check: command(flags.check, {
    text: "Find out why there is no token",
    args: "[path]",
    more: "Tries each step to a token and, with a path, to the API. Its token is neither cached nor printed.",
    examples: ["check", "check /orders --json"],
    run: (given, path) => load(() => import("./commands/check.js"), ({ run }) => run(given, path))
  }),
  run: command(flags.run, {
    text: "Run a command with a token in STORE_API_ACCESS_TOKEN",
    args: "<command...>",
    more: "Write -- before the command, to keep its flags apart. Passes signals to it and returns its exit code.",
    examples: ["run -- npm test", "run --profile books -- node import.js"],
    run: (given, _, args) => run(given, args)
  }),
  status: command(flags.check, {
    text: "Show the cached token; exit with code 5 if there is none",
    more: "Sends nothing. It needs the client secret, because cached tokens are encrypted with it.",
    examples: ["status", "status --json --profile books"],
    run: status
  }),
  logout: command(flags.common, {
    text: "Remove the cached token",
    more: "The service is not told, so a copy of the token stays valid until it expires.",
    examples: ["logout", "logout --profile books"],
    run: logout
  }),
  profile: {
    text: "Save and select settings by name",
    flags: flags.none,
    examples: ["profile add books", "call /orders --profile books"]
  },
  "profile add": command(flags.profileAdd, {
    text: "Save the settings under a name",
    args: "<name>",
    more: "Reads flags, the environment and .env, asks for what is missing, and verifies all by requesting a token.",
    examples: [
      "profile add books --auth-url https://auth.example --client-id me",
      "profile add books --dotenv books.env --force"
    ],
    run: (given, name) => load(() => import("./commands/profile.js"), ({ add }) => add(given, name))
  }),
  "profile use": command(flags.none, {
    text: "Make a profile the default",
    args: "<name>",
    more: "It applies if no flag, variable or .env gives a setting. The first profile that you save is the default.",
    examples: ["profile use books", "profile use books && store-api call /orders"],
    run: (_, name) => load(() => import("./commands/profile.js"), ({ use }) => use(name))
  }),
  "profile show": command(flags.none, {
    text: "Show a profile without its secret",
    args: "[name]",
    examples: ["profile show", "profile show books"],
    run: (_, name) => load(() => import("./commands/profile.js"), ({ show }) => show(name))
  }),
  "profile list": command(flags.none, {
    text: "List the saved profiles",
    examples: ["profile list", "profile list | xargs -n 1 store-api status --profile"],
    run: () => load(() => import("./commands/profile.js"), ({ list }) => list)
  }),
  "profile remove": command(flags.none, {
    text: "Remove a saved profile",
    args: "<name>",
    examples: ["profile remove books", "profile remove books && store-api profile list"],
    run: (_, name) => load(() => import("./commands/profile.js"), ({ remove }) => remove(name))
  }),
  ...emulator,
  completion: command(flags.none, {
    text: "Print a completion script for bash, zsh or fish",
    args: "<shell>",
    examples: ["completion bash >> ~/.bash_completion", "completion zsh > ~/.zfunc/_store-api"],
    run: (_, shell) => load(() => import("./commands/completion.js"), ({ script }) => script(shell))
  })
}
