/** A profile: the variables of one service in a file of the user. Loaded when one is used. */
import { isAbsolute, join } from "node:path"
import { parseEnv } from "node:util"
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { configuration, type Fault, listed } from "./Fault.js"
import { secretVariable } from "./flags.js"
import { Host } from "./Host.js"

export interface Profile {
  readonly path: string
  readonly values: Readonly<Record<string, string | undefined>>
}

const extension = ".env"

/** Names that stay in the folder. */
const isName = (name: string): boolean => /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(name)

const folder: Effect.Effect<string> = Effect.map(Host, ({ homedir, process: { env } }) => {
  const absolute = (name: string) => Option.filter(Option.fromNullable(env[name]), isAbsolute)
  // `homedir` throws for a user without an entry in the user database.
  const home = Either.getOrElse(Either.try(homedir), () => "/")
  const base = process.platform === "win32"
    ? Option.getOrElse(absolute("LOCALAPPDATA"), () => join(home, "AppData", "Local"))
    : process.platform === "darwin"
    ? join(home, "Library", "Application Support")
    : Option.getOrElse(absolute("XDG_CONFIG_HOME"), () => join(home, ".config"))
  return join(base, "store-api")
})

/** The file of a profile. `by`: the flag, the variable or the argument that names it. */
export const fileOf = (name: string, by: string): Effect.Effect<string, Fault> =>
  isName(name)
    ? Effect.map(folder, (folder) => join(folder, `${name}${extension}`))
    : configuration(`${by} must be letters, digits, "-", "_" and ".", without a "." at the start.`)

export const read = (name: string, by: string): Effect.Effect<Profile, Fault, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* fileOf(name, by)
    const unreadable = () => configuration(`Cannot read the profile ${name}, ${path}.`)
    const info = yield* fs.stat(path).pipe(
      Effect.catchIf(isNotFound, () => isUnknown(name)),
      Effect.catchTags({ BadArgument: unreadable, SystemError: unreadable })
    )
    const values = parseEnv(yield* Effect.mapError(fs.readFileString(path), unreadable))
    const problem = whyNotPrivate(info, values[secretVariable] !== undefined)
    return problem === undefined
      ? { path, values }
      : yield* configuration(`The profile ${name} is not used, because ${problem}. Make ${path} yours, with mode 600.`)
  })

export const isNotFound = (error: PlatformError): boolean => error._tag === "SystemError" && error.reason === "NotFound"

export const isUnknown = (name: string) =>
  Effect.flatMap(names, (known) => {
    const hint = known.length === 0 ? `Create it: store-api profile add ${name}.` : `Known: ${listed(known)}.`
    return configuration(`There is no profile ${name}. ${hint}`)
  })

/** Of the saved profiles. A folder that cannot be read has none. */
export const names = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const files = yield* Effect.orElseSucceed(fs.readDirectory(yield* folder), (): ReadonlyArray<string> => [])
  return files.filter((file) => file.endsWith(extension)).map((file) => file.slice(0, -extension.length))
    .filter(isName).sort()
})

/** Other users must not read a secret, nor write the address of the endpoint. Windows has no owners and modes. */
const whyNotPrivate = ({ mode, uid }: FileSystem.File.Info, hasSecret: boolean): string | undefined => {
  const user = process.getuid?.()
  if (user === undefined) return undefined
  if (Option.exists(uid, (uid) => uid !== user)) return "its file belongs to another user"
  if ((mode & 0o022) !== 0) return "other users may write to its file"
  return hasSecret && (mode & 0o077) !== 0 ? "it holds a secret and other users may read its file" : undefined
}
