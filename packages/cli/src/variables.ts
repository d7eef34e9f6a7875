/** Variables: of the environment and a file, or of a profile alone. */
import { stat } from "node:fs"
import { parseEnv } from "node:util"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import { configuration, type Fault, usage } from "./Fault.js"
import type * as flags from "./flags.js"
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

type Given = Pick<flags.Values<typeof flags.common>, "dotenv" | "profile">

/** A profile is not mixed with the environment: the secret of one service never goes to the address of another. */
export const read = (given: Given): Effect.Effect<Variables, Fault, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const inEnvironment = finder((yield* Host).process.env, "the environment")
    const name = given.profile ?? inEnvironment("STORE_API_PROFILE")?.value
    if (name === undefined) return yield* ofEnvironment(given.dotenv)
    const by = given.profile === undefined ? "STORE_API_PROFILE" : "--profile"
    if (given.dotenv !== undefined) return yield* usage(`Use either --dotenv or ${by}: a profile has its own file.`)
    const profile = yield* Effect.promise(() => import("./profile.js"))
    const { path, values } = yield* profile.read(name, by)
    const find = finder(values, `the profile ${name}`)
    return {
      profile: name,
      place: `in the profile ${name} (${path})`,
      find: (variable) => find(variable) ?? (variable === cacheVariable ? inEnvironment(variable) : undefined)
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
  Effect.if(isFile(path), { onTrue: () => fs.readFileString(path), onFalse: () => Effect.succeed("") })

/** As big integers: after a plain `stat` of a pipe, Node 20 resolves links by its numbers and finds no module. */
const isFile = (path: string): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    stat(path, { bigint: true }, (error, info) => resume(Effect.succeed(error === null && info.isFile())))
  })

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
      place: "in the environment or in .env",
      profile: undefined
    }
  })
