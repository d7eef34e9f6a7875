/** Variables: of the environment and a file, or of a profile alone. */
import { parseEnv } from "node:util"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import { configuration, type Fault, usage } from "./Fault.js"
import * as flags from "./flags.js"
import { Host } from "./Host.js"

export const cacheVariable = "STORE_API_TOKEN_FOLDER"

/** A value, and where it was found. */
export interface Found {
  readonly value: string
  readonly origin: string
  /** Whether it is in a file that the user did not name. */
  readonly isImplicit: boolean
}

export interface Variables {
  readonly find: (name: string) => Found | undefined
  /** Where to set a variable that is missing. */
  readonly place: string
  readonly profile: string | undefined
}

type Given = flags.Values<typeof flags.common>

/** Settings of a service. Where one of them is given, the default profile is not used. */
const service = ["STORE_API_AUTH_URL", "STORE_API_URL", "STORE_API_CLIENT_ID", flags.secretVariable]

/** A profile is not mixed with the environment: the secret of one service never goes to the address of another. */
export const read = (given: Given, hasDefault = true): Effect.Effect<Variables, Fault, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const inEnvironment = finder((yield* Host).process.env, "the environment")
    const chosen = given.profile ?? inEnvironment("STORE_API_PROFILE")?.value
    const by = given.profile === undefined ? "STORE_API_PROFILE" : "--profile"
    if (chosen === undefined) {
      const others = yield* ofEnvironment(given.dotenv)
      const isGiven = flags.service.some((flag) => given[flag] !== undefined) ||
        service.some((name) => others.find(name) !== undefined)
      if (isGiven || !hasDefault) return others
      const { defaultName } = yield* profiles
      const name = yield* defaultName
      return name === undefined ? others : yield* ofProfile(name, "The default profile", inEnvironment)
    }
    if (given.dotenv !== undefined) return yield* usage(`Use either --dotenv or ${by}: a profile has its own file.`)
    return yield* ofProfile(chosen, by, inEnvironment)
  })

const profiles = Effect.promise(() => import("./profile.js"))

const ofProfile = (name: string, by: string, inEnvironment: Variables["find"]) =>
  Effect.gen(function*() {
    const { read } = yield* profiles
    const { path, values } = yield* read(name, by)
    const find = finder(values, `the profile ${name}`)
    return {
      profile: name,
      place: `in the profile ${name} (${path})`,
      find: (variable: string) => find(variable) ?? (variable === cacheVariable ? inEnvironment(variable) : undefined)
    }
  })

const finder =
  (values: Readonly<Record<string, string | undefined>>, origin: string, isImplicit = false) =>
  (name: string): Found | undefined => {
    const value = values[name]
    return value === undefined ? undefined : { value, origin, isImplicit }
  }

/** A `.env` that was not named may be a folder, or a pipe without a writer. */
const ifFile = (fs: FileSystem.FileSystem, path: string) =>
  Effect.flatMap(fs.stat(path), ({ type }) => type === "File" ? fs.readFileString(path) : Effect.succeed(""))

/** Read by Node, which takes a `$` in a value as it is. */
const ofEnvironment = (file: string | undefined): Effect.Effect<Variables, Fault, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const { pathOf, process } = yield* Host
    const origin = file ?? ".env"
    const path = pathOf(origin)
    const text = yield* file === undefined
      ? Effect.orElseSucceed(ifFile(fs, path), () => "")
      : Effect.mapError(fs.readFileString(path), () => configuration(`Cannot read ${origin}, the file of --dotenv.`))
    const inEnvironment = finder(process.env, "the environment")
    const inFile = finder(text === "" ? {} : parseEnv(text), origin, file === undefined)
    return {
      find: (name) => inEnvironment(name) ?? inFile(name),
      place: "with store-api profile add, in the environment or in .env",
      profile: undefined
    }
  })
