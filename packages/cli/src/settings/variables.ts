/** Finds settings in flags, the environment and a file of variables, or in flags and a profile. */
import { parseEnv } from "node:util"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import { configuration, type Fault, usage } from "../Fault.js"
import type * as flags from "../flags.js"
import { Host } from "../Host.js"
import { defaultProfile, hasDefault, readProfile } from "./profiles.js"
import { service, type Setting, sources } from "./sources.js"

/** A value, and where it was found. */
export interface Found {
  /** The flag or the variable. */
  readonly name: string
  readonly value: string
  readonly origin: string
  /** Whether it is in a file that the user did not name. */
  readonly isImplicit: boolean
}

export interface Variables {
  readonly profile: string | undefined
  readonly find: (setting: Setting) => Found | undefined
  /** Where to set a variable that is missing. */
  readonly place: string
}

type Given = flags.Values<typeof flags.common>

type Read = Effect.Effect<Variables, Fault, FileSystem.FileSystem>

/** Finds settings in flags and the profile that the user chose, or else in flags, the environment and a file. */
export const readVariables = (given: Given): Read =>
  Effect.gen(function*() {
    const { process } = yield* Host
    const name = given.profile ?? process.env["STORE_API_PROFILE"]
    if (name !== undefined) {
      const by = given.profile === undefined ? "STORE_API_PROFILE" : "--profile"
      return given.dotenv === undefined
        ? yield* readFromProfile(given, name, by)
        : yield* usage(`Use either --dotenv or ${by}: a profile has its own file.`)
    }
    const inFlags = finderInFlags(given)
    const inEnvironment = finder(process.env, "the environment")
    const inFile = finder(
      yield* readDotenv(given.dotenv),
      given.dotenv ?? ".env",
      given.dotenv === undefined
    )
    return {
      profile: undefined,
      find: (setting) => inFlags(setting) ?? inEnvironment(setting) ?? inFile(setting),
      place: "in the environment or in .env"
    }
  })

/** The default profile applies if the user gives no setting of a service. */
export const readVariablesOrDefault = (given: Given): Read =>
  Effect.gen(function*() {
    const variables = yield* readVariables(given)
    const isGiven = variables.profile !== undefined || given.dotenv !== undefined ||
      service.some((setting) => variables.find(setting) !== undefined)
    return isGiven || !(yield* hasDefault)
      ? variables
      : yield* readFromProfile(given, defaultProfile, "The default profile")
  })

/**
 * A profile is not mixed with the environment, so the secret of one service never goes to the address of another. `by`:
 * what names the profile.
 */
const readFromProfile = (given: Given, name: string, by: string): Read =>
  Effect.gen(function*() {
    const { process } = yield* Host
    const { path, values } = yield* readProfile(name, by)
    const inFlags = finderInFlags(given)
    const inProfile = finder(values, `the profile ${name}`)
    const inEnvironment = finder(process.env, "the environment")
    return {
      profile: name,
      find: (setting) =>
        inFlags(setting) ?? inProfile(setting) ??
          (setting === "cacheDir" ? inEnvironment(setting) : undefined),
      place: `in the profile ${name} (${path})`
    }
  })

const finderInFlags = (given: Given) => (setting: Setting): Found | undefined => {
  const { flag } = sources[setting]
  const value = given[flag]
  return value === undefined
    ? undefined
    : { name: `--${flag}`, value, origin: "the flags", isImplicit: false }
}

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
      : Effect.mapError(fs.readFileString(path), () =>
        configuration(`Cannot read ${file}, the file of --dotenv.`))
    return parseEnv(text)
  })
