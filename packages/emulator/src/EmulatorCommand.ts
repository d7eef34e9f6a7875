/**
 * The emulator as a command: `store-api-emulator`, and `store-api emulator` of `@store-api/cli`. Importing this module
 * does not load the emulator.
 *
 * @since 1.0.0
 */
import * as Effect from "effect/Effect"
import type { EmulatorError } from "./EmulatorError.js"
import { flags, type Values } from "./internal/flags.js"

/**
 * A flag of a command. `value` names its value in the help; a flag without it is a switch.
 *
 * @see commands
 *
 * @since 1.0.0
 * @category models
 */
export interface Flag {
  /** The name of its value, which is `FILE` for the path of a file. */
  readonly value?: string
  /** Whether it may be repeated. */
  readonly many?: true
  /** The values that it can have. */
  readonly choices?: ReadonlyArray<string>
  /** Its line in the help. */
  readonly text: string
}

/**
 * A command, for a parser, its help and its completion.
 *
 * @see commands
 *
 * @since 1.0.0
 * @category models
 */
export interface Command {
  /** What it does. */
  readonly text: string
  /** Its argument as in a usage line: `<name>`, or `[name]` if it may be left out. */
  readonly args?: string
  /** More text for its own help. */
  readonly more?: string
  /** Its flags by name. */
  readonly flags: Readonly<Record<string, Flag>>
  /** Command lines without the name of the program. */
  readonly examples: ReadonlyArray<string>
  /** Takes the values of the flags as the table describes them, and the argument. */
  readonly run: (
    given: Readonly<Record<string, boolean | string | ReadonlyArray<string> | undefined>>,
    argument: string
  ) => Effect.Effect<void, EmulatorError>
}

/**
 * The flags of `run` by name, with their values as they were typed.
 *
 * @see run
 *
 * @since 1.0.0
 * @category models
 */
export type Flags = Values<typeof flags>

/** A command that steers a running emulator, by its name. */
const steering = (name: string, about: Pick<Command, "text" | "args">, example = name): Command => ({
  ...about,
  flags: {
    ...(name === "fail" ? { times: { value: "NUMBER", text: "Number of requests to which each fault applies" } } : {}),
    port: { value: "PORT", text: "Default: the port in STORE_API_AUTH_URL" }
  },
  examples: [example, `${example} --port 4010`],
  run: (given, argument) =>
    Effect.flatMap(Effect.promise(() => import("./internal/steer.js")), ({ steer }) => steer(name, given, argument))
})

/**
 * Starts an emulator, prints the variables for an application and the address of the page, and then two lines per
 * request, to the `Console`. Runs until it is interrupted, and remembers few requests. Fails with an `EmulatorError`
 * whose `option` is the flag or the variable.
 *
 * @example
 * ```ts
 * import { NodeRuntime } from "@effect/platform-node"
 * import { EmulatorCommand } from "@store-api/emulator"
 *
 * NodeRuntime.runMain(
 *   EmulatorCommand.run({ port: "4010", "token-life": "2s", scenario: ["token/429-without-retry-after"] })
 * )
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const run = (flags: Flags): Effect.Effect<void, EmulatorError> =>
  Effect.flatMap(Effect.promise(() => import("./internal/start.js")), ({ start }) => start(flags))

/**
 * The commands by name: the one that starts an emulator is `""`, and the others steer one that runs on this machine.
 *
 * @example
 * ```ts
 * import { EmulatorCommand } from "@store-api/emulator"
 *
 * const outage = EmulatorCommand.commands.fail.run({ times: "3", port: "4010" }, "token/503-json")
 * ```
 *
 * @since 1.0.0
 * @category constants
 */
export const commands: Readonly<Record<"" | "fail" | "clear" | "revoke" | "requests" | "tokens", Command>> = {
  "": {
    flags,
    text: "Start the token service and an API on this machine",
    more: "Reads STORE_API_CLIENT_SECRET only with --client-id.",
    examples: ["--port 4010 --token-life 2m", "--dotenv .env --scenario token/401-rfc"],
    // The parser creates the values from the same table as their type.
    run
  },
  fail: steering("fail", { text: "Make the next requests fail", args: "<scenario>" }, "fail token/503-json --times 3"),
  clear: steering("clear", { text: "Remove the remaining faults" }),
  revoke: steering("revoke", { text: "Revoke a token by its number, or all tokens", args: "[token]" }, "revoke 3"),
  requests: steering("requests", { text: "Show the last requests" }),
  tokens: steering("tokens", { text: "Show the tokens and when they expire" })
}
