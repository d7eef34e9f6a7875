/** A profile: the variables of one service in a file of the user's, with a name. Loaded when one is used. */
import { isAbsolute, join } from "node:path"
import { parseEnv } from "node:util"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { configuration, type Fault } from "./Fault.js"
import { Host } from "./Host.js"
import { secretName } from "./names.js"
import { listed } from "./wording.js"

/** The name of a profile, and what gave it. */
export interface Named {
  readonly name: string
  readonly by: "--profile" | "STORE_API_PROFILE"
}

export interface Profile {
  readonly values: Readonly<Record<string, string | undefined>>
  readonly origin: string
  /** Where a variable that is missing would be put. */
  readonly place: string
}

const ending = ".env"

/** Nothing that leads out of the folder. */
const isName = (name: string): boolean => /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(name)

/** Beside the folder of the tokens, where the system keeps both in one place. */
const folder: Effect.Effect<string> = Effect.map(Host, ({ homedir, process: { env } }) => {
  const absolute = (name: string) => Option.filter(Option.fromNullable(env[name]), isAbsolute)
  // As with the folder of the tokens, for a user whom the system does not know.
  const home = Either.getOrElse(Either.try(homedir), () => "/")
  const base = process.platform === "win32"
    ? Option.getOrElse(absolute("LOCALAPPDATA"), () => join(home, "AppData", "Local"))
    : process.platform === "darwin"
    ? join(home, "Library", "Application Support")
    : Option.getOrElse(absolute("XDG_CONFIG_HOME"), () => join(home, ".config"))
  return join(base, "store-api")
})

/** `by`: the flag or the variable that names it. */
export const read = ({ by, name }: Named): Effect.Effect<Profile, Fault, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    if (!isName(name)) {
      return yield* configuration(
        `${by} must be the name of a profile: letters, digits, "-", "_" and ".", which is not the first.`
      )
    }
    const fs = yield* FileSystem.FileSystem
    const from = yield* folder
    const path = join(from, `${name}${ending}`)
    const unreadable = () => configuration(`The profile ${name}, ${path}, cannot be read.`)
    const info = yield* fs.stat(path).pipe(
      Effect.catchIf(
        (error) => error._tag === "SystemError" && error.reason === "NotFound",
        () => Effect.flatMap(names(from), (known) => unknown(name, from, known))
      ),
      Effect.catchTags({ BadArgument: unreadable, SystemError: unreadable })
    )
    const values = parseEnv(yield* Effect.mapError(fs.readFileString(path), unreadable))
    yield* onlyOurs(
      info,
      values[secretName] !== undefined,
      (why) =>
        configuration(
          `The profile ${name} is not used, since ${why}: see to it that ${path} is yours, with the mode 600.`
        )
    )
    return { values, origin: `the profile ${name}`, place: `in the profile ${name} (${path})` }
  })

const unknown = (name: string, from: string, known: ReadonlyArray<string>) =>
  configuration(
    `There is no profile ${name} in ${from}: ` +
      (known.length === 0 ? `there is none yet; write it as ${name}${ending}.` : `there is ${listed(known)}.`)
  )

/** Of those that exist. A folder that cannot be read has none. */
const names = (from: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readDirectory(from)).pipe(
    Effect.orElseSucceed((): ReadonlyArray<string> => []),
    Effect.map((files) =>
      files.filter((file) => file.endsWith(ending)).map((file) => file.slice(0, -ending.length)).filter(isName).sort()
    )
  )

/**
 * Who else may read a secret has it, and who may write an address leads the secret to it. Windows has neither owners by
 * number nor modes.
 */
const onlyOurs = (
  { mode, uid }: FileSystem.File.Info,
  hasSecret: boolean,
  refused: (why: string) => Fault
): Effect.Effect<void, Fault> =>
  Effect.suspend(() => {
    const user = process.getuid?.()
    if (user === undefined) return Effect.void
    if (Option.exists(uid, (uid) => uid !== user)) return refused("its file belongs to another user")
    if ((mode & 0o022) !== 0) return refused("others may write to its file")
    return hasSecret && (mode & 0o077) !== 0 ? refused("it holds a secret and others may read its file") : Effect.void
  })
