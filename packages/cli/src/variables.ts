/** Variables: of the environment and of a file. */
import { parseEnv } from "node:util"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { configuration, type Fault } from "./Fault.js"
import type * as flags from "./flags.js"

/** A value, and where it was found. */
export interface Found {
  readonly value: string
  readonly origin: string
  /** Whether it stands in a file that nobody named. */
  readonly stumbledOn: boolean
}

export interface Variables {
  readonly find: (name: string) => Option.Option<Found>
  /** Where one that is missing would be put. */
  readonly place: string
}

export const secretName = "STORE_API_CLIENT_SECRET"

export const folderName = "STORE_API_TOKEN_FOLDER"

export const listed = (words: ReadonlyArray<string>): string =>
  words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} and ${words.at(-1) ?? ""}`

const inEnvironment = (name: string): Option.Option<Found> =>
  Option.map(
    Option.fromNullable(process.env[name]),
    (value) => ({ value, origin: "the environment", stumbledOn: false })
  )

const inFile =
  (values: Readonly<Record<string, string | undefined>>, about: Omit<Found, "value">) =>
  (name: string): Option.Option<Found> =>
    Option.map(Option.fromNullable(values[name]), (value) => ({ value, ...about }))

/** Node's own reader of such files: it takes values as they are, `$` too. */
export const read = (
  { dotenv: file }: Pick<flags.Values<typeof flags.common>, "dotenv">
): Effect.Effect<Variables, Fault, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = Option.getOrElse(file, () => ".env")
    const text = yield* fs.readFileString(path).pipe(
      Effect.catchTag(
        "SystemError",
        (error) => error.reason === "NotFound" && Option.isNone(file) ? Effect.succeed("") : Effect.fail(error)
      ),
      Effect.mapError(() => configuration(`${path} cannot be read.`))
    )
    const find = inFile(text === "" ? {} : parseEnv(text), { origin: path, stumbledOn: Option.isNone(file) })
    return {
      find: (name) => Option.orElse(inEnvironment(name), () => find(name)),
      place: "in the environment or in .env"
    }
  })
