/** A profile: the variables of one service in a file of the user. Loaded when one is used. */
import { dirname, isAbsolute, join } from "node:path"
import { parseEnv } from "node:util"
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { configuration, type Fault, listed, usage } from "./Fault.js"
import { secretVariable } from "./flags.js"
import { Host } from "./Host.js"

export interface Profile {
  readonly path: string
  readonly values: Readonly<Record<string, string | undefined>>
}

const extension = ".env"

/** Names that stay in the folder. */
const isName = (name: string): boolean => /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(name)

const folder: Effect.Effect<string> = Effect.map(Host, (host) => {
  const base = process.platform === "win32" ? host.process.env["LOCALAPPDATA"] : host.process.env["XDG_CONFIG_HOME"]
  // `homedir` throws for a user without an entry in the user database.
  const home = () => join(Either.getOrElse(Either.try(host.homedir), () => "/"), ".config")
  return join(base !== undefined && isAbsolute(base) ? base : home(), "store-api")
})

/** The file of a profile. `by`: the flag, the variable or the argument that names it. */
export const fileOf = (name: string, by: string): Effect.Effect<string, Fault> =>
  isName(name)
    ? Effect.map(folder, (folder) => join(folder, `${name}${extension}`))
    : (by === "STORE_API_PROFILE" ? configuration : usage)(
      `${by} must be letters, digits, "-", "_" and ".", without a "." at the start.`
    )

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

/** The file with the name of the default profile. */
const defaultFile = Effect.map(folder, (folder) => join(folder, "default"))

/** Of the profile that is used where no setting is given. */
export const defaultName = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const name = yield* Effect.orElseSucceed(fs.readFileString(yield* defaultFile), () => "")
  return name.trim() || undefined
})

/** `undefined`: there is no default profile any more. */
export const setDefault = (name: string | undefined) =>
  Effect.gen(function*() {
    const path = yield* defaultFile
    yield* name === undefined ? Effect.ignore(remove(path)) : write(path, `${name}\n`)
  })

const remove = (path: string) => Effect.flatMap(FileSystem.FileSystem, (fs) => fs.remove(path, { force: true }))

/** For this user alone: the file is created with its mode, and renamed when it is complete. */
export const write = (path: string, text: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const part = `${path}.part`
    yield* fs.makeDirectory(dirname(path), { recursive: true, mode: 0o700 }).pipe(
      Effect.zipRight(remove(part)),
      Effect.zipRight(fs.writeFileString(part, text, { mode: 0o600, flag: "wx" })),
      Effect.zipRight(fs.rename(part, path)),
      Effect.mapError(() => configuration(`Cannot write ${path}.`)),
      Effect.ensuring(Effect.ignore(remove(part)))
    )
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
