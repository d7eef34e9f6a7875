/** Profiles: files of variables, each for one service, in a folder of the user. */
import { isAbsolute, join, parse } from "node:path"
import { parseEnv } from "node:util"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { type CommandError, configurationError, usageError } from "../CommandError.js"
import { isNotFound } from "../files.js"
import { Host } from "../Host.js"
import { listInWords } from "../output.js"
import { sources } from "./sources.js"

/** Names that stay in the folder. */
const isName = (name: string): boolean => /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(name)

const folder: Effect.Effect<string> = Effect.map(Host, (host) => {
  const base = process.platform === "win32"
    ? host.process.env["LOCALAPPDATA"]
    : host.process.env["XDG_CONFIG_HOME"]
  // `homedir` throws for a user without an entry in the user database.
  const home = () => join(Either.getOrElse(Either.try(host.homedir), () => "/"), ".config")
  return join(base !== undefined && isAbsolute(base) ? base : home(), "store-api")
})

/** The file of a profile. `by`: what names it. A wrong name in a flag or an argument is a wrong command line. */
export const fileOf = (name: string, origin: string): Effect.Effect<string, CommandError> =>
  isName(name)
    ? Effect.map(folder, (folder) => join(folder, `${name}.env`))
    : (/^(--|The name)/.test(origin) ? usageError : configurationError)(
      `${origin} must consist of letters, digits, "-", "_" and ".", and not start with a ".".`
    )

export const readProfile = (name: string, origin: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* fileOf(name, origin)
    yield* checkFolder
    const [info, text] = yield* Effect.catchAll(
      Effect.all([fs.stat(path), fs.readFileString(path)]),
      (error) =>
        isNotFound(error)
          ? failUnknown(name)
          : configurationError(`Cannot read the profile ${name}, ${path}.`)
    )
    const values = parseEnv(text)
    const problem = whyNotPrivate(
      "its file",
      info,
      values[sources.clientSecret.variable] !== undefined
    )
    return problem === undefined
      ? { path, values }
      : yield* configurationError(
        `The profile ${name} is not used, because ${problem}. Make ${path} yours, with mode 600.`
      )
  })

/** In a folder that others may write to, they could replace a profile by another file of the user. */
export const checkFolder = Effect.gen(function*() {
  const path = yield* folder
  const info = yield* Effect.option(
    Effect.flatMap(FileSystem.FileSystem, (fs) => fs.stat(path))
  )
  const problem = Option.map(info, (info) => whyNotPrivate("their folder", info, false))
  if (Option.isNone(problem) || problem.value === undefined) return
  return yield* configurationError(
    `No profile is used, because ${problem.value}. Make ${path} yours, with mode 700.`
  )
})

export const failUnknown = (name: string) =>
  Effect.flatMap(profileNames, (names) => {
    const hint = names.length === 0
      ? `Create it: store-api profile add ${name}.`
      : `Known: ${listInWords(names)}.`
    return configurationError(`There is no profile ${name}. ${hint}`)
  })

/** The names of the saved profiles; none if the folder cannot be read. */
export const profileNames = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const files = yield* Effect.orElseSucceed(
    fs.readDirectory(yield* folder),
    (): ReadonlyArray<string> => []
  )
  return files.map((file) => parse(file)).filter(({ ext, name }) =>
    ext === ".env" && isName(name)
  )
    .map(({ name }) => name).sort()
})

/** The profile that applies if no setting of a service is given. */
export const defaultProfile = "default"

export const hasDefault = Effect.map(profileNames, (names) => names.includes(defaultProfile))

/** Other users must neither read a secret nor change the endpoint's address. Windows has neither owners nor modes. */
const whyNotPrivate = (
  what: string,
  { mode, uid }: FileSystem.File.Info,
  hasSecret: boolean
): string | undefined => {
  const user = process.getuid?.()
  if (user === undefined) return undefined
  if (Option.exists(uid, (uid) => uid !== user)) return `${what} belongs to another user`
  if ((mode & 0o022) !== 0) return `other users may write to ${what}`
  return hasSecret && (mode & 0o077) !== 0
    ? `it holds a secret and other users may read ${what}`
    : undefined
}
