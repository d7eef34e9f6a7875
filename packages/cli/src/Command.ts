/** What a command is, for the parser, its help and its completion. */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import type { CommandError } from "./CommandError.js"
import type * as flags from "./flags.js"

export type Run = Effect.Effect<void, CommandError, FileSystem.FileSystem>

/** The values of the flags, by name. */
export type FlagValues = Readonly<
  Record<string, boolean | string | ReadonlyArray<string> | undefined>
>

export interface Command {
  /** What it does. */
  readonly text: string
  /** Its argument as in a usage line: `<name>`, or `[name]` if it may be left out. */
  readonly args?: string
  /** More text for its own help. */
  readonly more?: string
  readonly flags: flags.Flags
  /** Command lines without the name of the program. */
  readonly examples: ReadonlyArray<string>
  /** None for a group of commands. */
  readonly run?: (flagValues: FlagValues, args: ReadonlyArray<string>) => Run
}

/** The commands by their words, with a group before its members. */
export type Commands = Readonly<Record<string, Command>>

export const defineCommand = <F extends flags.Flags>(
  table: F,
  { run, ...description }: Omit<Command, "flags" | "run"> & {
    readonly run: (
      flagValues: flags.Values<F>,
      argument: string,
      args: ReadonlyArray<string>
    ) => Run
  }
): Command => ({
  ...description,
  flags: table,
  // The parser creates the values from the same table as their type.
  run: (flagValues, args) => run(flagValues as flags.Values<F>, args[0] ?? "", args)
})

export const load = <M>(module: () => Promise<M>, run: (module: M) => Run): Run =>
  Effect.flatMap(Effect.promise(module), run)
