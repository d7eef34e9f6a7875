/** Variables: of the environment and of a file, or of a profile alone. */
import { stat } from "node:fs"
import { parseEnv } from "node:util"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { configuration, type Fault, usage } from "./Fault.js"
import type * as flags from "./flags.js"
import { Host } from "./Host.js"
import { folderName } from "./names.js"
import type { Named } from "./profile.js"

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
  readonly profile: Option.Option<string>
}

/** What a profile says is not mixed with the environment: the secret of one service never goes to the address of another. */
export const read = (
  given: Pick<flags.Values<typeof flags.common>, "dotenv" | "profile">
): Effect.Effect<Variables, Fault, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const inEnvironment = yield* environment
    const named = Option.orElse(
      Option.map(given.profile, (name): Named => ({ name, by: "--profile" })),
      () =>
        Option.map(
          inEnvironment("STORE_API_PROFILE"),
          ({ value }): Named => ({ name: value, by: "STORE_API_PROFILE" })
        )
    )
    if (Option.isNone(named)) return yield* ofEnvironment(given.dotenv)
    if (Option.isSome(given.dotenv)) {
      return yield* usage(`--dotenv and ${named.value.by} cannot both be given: a profile has its own file.`)
    }
    const profile = yield* Effect.promise(() => import("./profile.js"))
    const { origin, place, values } = yield* profile.read(named.value)
    const find = among(values, { origin, stumbledOn: false })
    return {
      place,
      profile: Option.some(named.value.name),
      find: (name) => Option.orElse(find(name), () => name === folderName ? inEnvironment(name) : Option.none())
    }
  })

const among =
  (values: Readonly<Record<string, string | undefined>>, about: Omit<Found, "value">) =>
  (name: string): Option.Option<Found> =>
    Option.map(Option.fromNullable(values[name]), (value) => ({ value, ...about }))

const environment = Effect.map(
  Host,
  ({ process }) => among(process.env, { origin: "the environment", stumbledOn: false })
)

/** Nobody named it: what is there may be a folder, or a pipe that nobody writes to. */
const ifFile = (fs: FileSystem.FileSystem, path: string) =>
  Effect.flatMap(isFile(path), (is) => is ? fs.readFileString(path) : Effect.succeed(""))

/** As big integers: the plain numbers of a pipe stay where Node 20 looks when it resolves links, and it then finds no module. */
const isFile = (path: string): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    stat(path, { bigint: true }, (error, info) => resume(Effect.succeed(error === null && info.isFile())))
  })

/** Node's own reader of such files: it takes values as they are, `$` too. */
const ofEnvironment = (file: Option.Option<string>): Effect.Effect<Variables, Fault, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const inEnvironment = yield* environment
    const origin = Option.getOrElse(file, () => ".env")
    const path = (yield* Host).pathOf(origin)
    const text = yield* Option.match(file, {
      onNone: () => Effect.orElseSucceed(ifFile(fs, path), () => ""),
      onSome: () => Effect.mapError(fs.readFileString(path), () => configuration(`${origin} cannot be read.`))
    })
    const find = among(text === "" ? {} : parseEnv(text), { origin, stumbledOn: Option.isNone(file) })
    return {
      find: (name) => Option.orElse(inEnvironment(name), () => find(name)),
      place: "in the environment or in .env",
      profile: Option.none()
    }
  })
