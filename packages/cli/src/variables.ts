/** Reads the variables of the environment and a file, or of a profile alone: the user's file for one service. */
import { isAbsolute, join, parse } from "node:path"
import { parseEnv } from "node:util"
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { configuration, type Fault, listed, usage } from "./Fault.js"
import type * as flags from "./flags.js"
import { Host } from "./Host.js"

/** No flag takes the secret itself, because other users can read the arguments of a process. */
export const sources = {
  authUrl: { flag: "auth-url", variable: "STORE_API_AUTH_URL" },
  clientId: { flag: "client-id", variable: "STORE_API_CLIENT_ID" },
  apiUrl: { flag: "api-url", variable: "STORE_API_URL" },
  clientSecret: { flag: "secret-file", variable: "STORE_API_CLIENT_SECRET" },
  cacheDir: { flag: "cache-dir", variable: "STORE_API_TOKEN_FOLDER" }
} as const

export type Setting = keyof typeof sources

/** A value, and where it was found. */
export interface Found {
  /** The flag or the variable. */
  readonly name: string
  readonly value: string
  readonly origin: string
  /** Whether it is in a file that the user did not name. */
  readonly isImplicit: boolean
}

export type Variables = Effect.Effect.Success<ReturnType<typeof read>>

/** Finds settings in flags and variables, or in flags and a profile. `mayDefault`: whether that may be the default. */
export const read = (given: flags.Values<typeof flags.common>, mayDefault: boolean) =>
  Effect.gen(function*() {
    const { process } = yield* Host
    const chosen = given.profile ?? process.env["STORE_API_PROFILE"]
    const by = given.profile === undefined ? "STORE_API_PROFILE" : "--profile"
    if (chosen !== undefined && given.dotenv !== undefined) {
      return yield* usage(`Use either --dotenv or ${by}: a profile has its own file.`)
    }
    const inFlags = (setting: Setting): Found | undefined => {
      const { flag } = sources[setting]
      const value = given[flag]
      return value === undefined ? undefined : { name: `--${flag}`, value, origin: "the flags", isImplicit: false }
    }
    const inEnvironment = finder(process.env, "the environment")
    const inFile = finder(yield* readDotenv(given.dotenv), given.dotenv ?? ".env", given.dotenv === undefined)
    const find = (setting: Setting) => inFlags(setting) ?? inEnvironment(setting) ?? inFile(setting)
    // A setting of a service excludes the default profile.
    const isGiven = given.dotenv !== undefined || service.some((setting) => find(setting) !== undefined)
    const profile = chosen ?? (mayDefault && !isGiven && (yield* hasDefault) ? defaultProfile : undefined)
    // Where to set a variable that is missing.
    if (profile === undefined) return { profile, find, place: "in the environment or in .env" }
    const { path, values } = yield* readProfile(profile, chosen === undefined ? "The default profile" : by)
    const inProfile = finder(values, `the profile ${profile}`)
    return {
      profile,
      // A profile is not mixed with the environment, so the secret of one service never goes to the address of another.
      find: (setting: Setting) =>
        inFlags(setting) ?? inProfile(setting) ?? (setting === "cacheDir" ? inEnvironment(setting) : undefined),
      place: `in the profile ${profile} (${path})`
    }
  })

/** Settings of a service, in the order of messages. */
export const service = ["authUrl", "clientId", "apiUrl", "clientSecret"] as const

const finder =
  (values: Readonly<Record<string, string | undefined>>, origin: string, isImplicit = false) =>
  (setting: Setting): Found | undefined => {
    const name = sources[setting].variable
    const value = values[name]
    return value === undefined ? undefined : { name, value, origin, isImplicit }
  }

/** Node parses the file, and leaves a `$` in a value as it is. */
const readDotenv = (file: string | undefined) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = (yield* Host).pathOf(file ?? ".env")
    // A `.env` that was not named may be a folder, or a pipe without a writer.
    const ifFile = Effect.filterOrFail(fs.stat(path), ({ type }) => type === "File")
    const text = yield* file === undefined
      ? Effect.orElseSucceed(Effect.zipRight(ifFile, fs.readFileString(path)), () => "")
      : Effect.mapError(fs.readFileString(path), () => configuration(`Cannot read ${file}, the file of --dotenv.`))
    return parseEnv(text)
  })

/** Names that stay in the folder. */
const isName = (name: string): boolean => /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(name)

const folder: Effect.Effect<string> = Effect.map(Host, (host) => {
  const base = process.platform === "win32" ? host.process.env["LOCALAPPDATA"] : host.process.env["XDG_CONFIG_HOME"]
  // `homedir` throws for a user without an entry in the user database.
  const home = () => join(Either.getOrElse(Either.try(host.homedir), () => "/"), ".config")
  return join(base !== undefined && isAbsolute(base) ? base : home(), "store-api")
})

/** The file of a profile. `by`: what names it. A wrong name in a flag or an argument is a wrong command line. */
export const fileOf = (name: string, by: string): Effect.Effect<string, Fault> =>
  isName(name)
    ? Effect.map(folder, (folder) => join(folder, `${name}.env`))
    : (/^(--|The name)/.test(by) ? usage : configuration)(
      `${by} must consist of letters, digits, "-", "_" and ".", and not start with a ".".`
    )

export const readProfile = (name: string, by: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* fileOf(name, by)
    const [info, text] = yield* Effect.catchAll(
      Effect.all([fs.stat(path), fs.readFileString(path)]),
      (error) => isNotFound(error) ? isUnknown(name) : configuration(`Cannot read the profile ${name}, ${path}.`)
    )
    const values = parseEnv(text)
    const problem = whyNotPrivate(info, values[sources.clientSecret.variable] !== undefined)
    return problem === undefined
      ? { path, values }
      : yield* configuration(`The profile ${name} is not used, because ${problem}. Make ${path} yours, with mode 600.`)
  })

export const isNotFound = (error: PlatformError): boolean => error._tag === "SystemError" && error.reason === "NotFound"

export const isUnknown = (name: string) =>
  Effect.flatMap(profileNames, (known) => {
    const hint = known.length === 0 ? `Create it: store-api profile add ${name}.` : `Known: ${listed(known)}.`
    return configuration(`There is no profile ${name}. ${hint}`)
  })

const remove = (path: string) => Effect.flatMap(FileSystem.FileSystem, (fs) => fs.remove(path, { force: true }))

/** Writes a file that only this user can read. It is created with its mode, and renamed when it is complete. */
export const write = (path: string, text: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const part = `${path}.part`
    yield* remove(part).pipe(
      Effect.zipRight(fs.writeFileString(part, text, { mode: 0o600, flag: "wx" })),
      Effect.zipRight(fs.rename(part, path)),
      Effect.mapError(() => configuration(`Cannot write ${path}.`)),
      Effect.ensuring(Effect.ignore(remove(part)))
    )
  })

/** Returns a line for a file of variables. Chooses quotes that keep the value as it is. */
export const assignment = (variable: string, value: string | undefined): Effect.Effect<string, Fault> => {
  if (value === undefined) return Effect.succeed("")
  const line = ["'", "`", "\""].map((quote) => `${variable}=${quote}${value}${quote}\n`)
    .find((line) => parseEnv(line)[variable] === value)
  return line === undefined
    ? configuration(`${variable} has too many kinds of quotes for a file.`)
    : Effect.succeed(line)
}

/** The names of the saved profiles; none if the folder cannot be read. */
export const profileNames = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const files = yield* Effect.orElseSucceed(fs.readDirectory(yield* folder), (): ReadonlyArray<string> => [])
  return files.map((file) => parse(file)).filter(({ ext, name }) => ext === ".env" && isName(name))
    .map(({ name }) => name).sort()
})

/** The profile that applies if no setting of a service is given. */
export const defaultProfile = "default"

export const hasDefault = Effect.map(profileNames, (names) => names.includes(defaultProfile))

/** Other users must neither read a secret nor change the endpoint's address. Windows has neither owners nor modes. */
const whyNotPrivate = ({ mode, uid }: FileSystem.File.Info, hasSecret: boolean): string | undefined => {
  const user = process.getuid?.()
  if (user === undefined) return undefined
  if (Option.exists(uid, (uid) => uid !== user)) return "its file belongs to another user"
  if ((mode & 0o022) !== 0) return "other users may write to its file"
  return hasSecret && (mode & 0o077) !== 0 ? "it holds a secret and other users may read its file" : undefined
}
