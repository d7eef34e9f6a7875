/** Finds settings in flags, the environment and a file of variables, or in flags and a profile. */
import { parseEnv } from "node:util"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import { type CommandError, configurationError, usageError } from "../CommandError.js"
import type * as flags from "../flags.js"
import { Host } from "../Host.js"
import { note } from "../output.js"
import { defaultProfile, hasDefault, readProfile } from "./profiles.js"
import { serviceSettings, type Setting, sources } from "./sources.js"

/** A value, and where it was found. */
export interface FoundSetting {
  /** The flag or the variable. */
  readonly name: string
  readonly value: string
  readonly origin: string
  /** Whether it is in a file that the user did not name. */
  readonly isImplicit: boolean
}

export interface Variables {
  readonly profile: string | undefined
  readonly find: (setting: Setting) => FoundSetting | undefined
  /** Where to set a variable that is missing. */
  readonly place: string
}

type FlagValues = flags.Values<typeof flags.commonFlags>

type Read = Effect.Effect<Variables, CommandError, FileSystem.FileSystem>

/** Finds settings in flags and the profile that the user chose, or else in flags, the environment and a file. */
export const readVariables = (flagValues: FlagValues): Read =>
  Effect.gen(function*() {
    const { process } = yield* Host
    const name = flagValues.profile ?? process.env["STORE_API_PROFILE"]
    if (name !== undefined) {
      const origin = flagValues.profile === undefined ? "STORE_API_PROFILE" : "--profile"
      return flagValues.dotenv === undefined
        ? yield* readFromProfile(flagValues, name, origin)
        : yield* usageError(`Use either --dotenv or ${origin}: a profile has its own file.`)
    }
    const inFlags = finderInFlags(flagValues)
    const inEnvironment = finder(process.env, "the environment")
    const inFile = finder(
      yield* readDotenv(flagValues.dotenv),
      flagValues.dotenv ?? ".env",
      flagValues.dotenv === undefined
    )
    return {
      profile: undefined,
      find: (setting) => inFlags(setting) ?? inEnvironment(setting) ?? inFile(setting),
      place: "in the environment or in .env"
    }
  })

/** The default profile applies if the user gives no setting of a service. */
export const readVariablesOrDefault = (flagValues: FlagValues): Read =>
  Effect.gen(function*() {
    const variables = yield* readVariables(flagValues)
    if (variables.profile !== undefined || flagValues.dotenv !== undefined) return variables
    const found = serviceSettings.flatMap((setting) => variables.find(setting) ?? [])
    if (!(yield* hasDefault)) return variables
    if (found.length === 0) {
      return yield* readFromProfile(flagValues, defaultProfile, "The default profile")
    }
    if (found.some(({ isImplicit }) => isImplicit)) {
      yield* note(
        "Settings are those of the .env in this folder, not of the default profile. " +
          "To select the profile, use --profile default."
      )
    }
    return variables
  })

/**
 * A profile is not mixed with the environment, so the secret of one service never goes to the address of another. `by`:
 * what names the profile.
 */
const readFromProfile = (flagValues: FlagValues, name: string, origin: string): Read =>
  Effect.gen(function*() {
    const { process } = yield* Host
    const { path, values } = yield* readProfile(name, origin)
    const inFlags = finderInFlags(flagValues)
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

const finderInFlags =
  (flagValues: FlagValues) => (setting: Setting): FoundSetting | undefined => {
    const { flag } = sources[setting]
    const value = flagValues[flag]
    return value === undefined
      ? undefined
      : { name: `--${flag}`, value, origin: "the flags", isImplicit: false }
  }

const finder =
  (values: Readonly<Record<string, string | undefined>>, origin: string, isImplicit = false) =>
  (setting: Setting): FoundSetting | undefined => {
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
        configurationError(`Cannot read ${file}, the file of --dotenv.`))
    return parseEnv(text)
  })
