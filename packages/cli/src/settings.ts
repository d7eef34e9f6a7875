/** What the flags, the environment and a file of variables say, in this order. */
import { parseEnv } from "node:util"
import * as FileSystem from "@effect/platform/FileSystem"
import { type ClientCredentials, make as credentialsOf } from "@store-api/core/ClientCredentials"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { configuration, type Fault, fromLibrary, usage } from "./Fault.js"
import type * as flags from "./flags.js"
import { isTerminal } from "./output.js"

export interface Settings {
  readonly authUrl: string
  readonly credentials: ClientCredentials
  readonly folder: Option.Option<string>
  readonly allowInsecure: boolean
  /** Where each of them was found, for people. */
  readonly origins: ReadonlyArray<string>
}

export interface SettingsWithApi extends Settings {
  readonly apiUrl: string
}

type Given = flags.Values<typeof flags.common>

/** A value, and where it was found. */
interface Found<A = string> {
  readonly value: A
  readonly origin: string
}

interface Variables {
  readonly find: (name: string) => Option.Option<Found>
}

/** A secret is in none of its values: flags can be read by others on the machine. */
const byFlag = {
  STORE_API_AUTH_URL: "auth-url",
  STORE_API_URL: "api-url",
  STORE_API_CLIENT_ID: "client-id",
  STORE_API_TOKEN_FOLDER: "token-folder"
} as const

const secretName = "STORE_API_CLIENT_SECRET"

/** All that a token needs. */
export const read = (given: Given): Effect.Effect<Settings, Fault, FileSystem.FileSystem> =>
  Effect.map(readWith(given, []), ({ settings }) => settings)

/** All that a call of an API needs. */
export const readWithApi = (given: Given): Effect.Effect<SettingsWithApi, Fault, FileSystem.FileSystem> =>
  Effect.map(readWith(given, ["STORE_API_URL"]), ({ settings, values: [apiUrl = ""] }) => ({ ...settings, apiUrl }))

const readWith = (given: Given, more: ReadonlyArray<keyof typeof byFlag>) =>
  Effect.gen(function*() {
    if (Option.isSome(given["secret-file"]) && given["secret-stdin"]) {
      return yield* usage("--secret-file and --secret-stdin cannot both be given.")
    }
    const variables = yield* readVariables(given.dotenv)
    const find = (name: keyof typeof byFlag) =>
      Option.orElse(
        Option.map(given[byFlag[name]], (value) => ({ value, origin: `--${byFlag[name]}` })),
        () => variables.find(name)
      )
    const names = ["STORE_API_AUTH_URL", "STORE_API_CLIENT_ID", ...more] as const
    const found = names.map((name) => ({ name, value: find(name) }))
    const missing = found.filter(({ value }) => Option.isNone(value)).map(({ name }) => name)
    const secret = yield* readSecret(given, variables, missing.length === 0)
    if (missing.length > 0 || Option.isNone(secret)) {
      return yield* configuration(isMissing([...missing, ...(Option.isNone(secret) ? [secretName] : [])]))
    }
    const [authUrl = "", clientId = "", ...values] = found.map(({ value }) => Option.getOrThrow(value).value)
    const folder = Option.map(find("STORE_API_TOKEN_FOLDER"), ({ value }) => value)
    if (Option.contains(folder, "")) return yield* configuration("STORE_API_TOKEN_FOLDER is empty: name a folder.")
    const settings: Settings = {
      authUrl,
      credentials: yield* Effect.mapError(
        credentialsOf({ clientId, clientSecret: secret.value.value }),
        fromLibrary
      ),
      folder,
      allowInsecure: given["allow-insecure"],
      origins: [
        ...found.map(({ name, value }) => `${name}: ${Option.getOrThrow(value).origin}`),
        `${secretName}: ${secret.value.origin}`
      ]
    }
    return { settings, values }
  })

const isMissing = (names: ReadonlyArray<string>): string => {
  const flagOf = (name: string) => name === secretName ? "--secret-file" : `--${byFlag[name as keyof typeof byFlag]}`
  return `${listed(names)} ${names.length === 1 ? "is" : "are"} not set: set ${
    names.length === 1 ? "it" : "them"
  } in the ` +
    `environment or in .env, or use ${listed(names.map(flagOf))}.`
}

const listed = (words: ReadonlyArray<string>): string =>
  words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} and ${words.at(-1) ?? ""}`

/** Node's own reader of such files: it takes values as they are, `$` too. */
const readVariables = (file: Option.Option<string>): Effect.Effect<Variables, Fault, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = Option.getOrElse(file, () => ".env")
    const text = yield* fs.readFileString(path).pipe(
      Effect.catchTag(
        "SystemError",
        (error) => error.reason === "NotFound" && Option.isNone(file) ? Effect.succeed("") : Effect.fail(error)
      ),
      Effect.mapError(() => configuration(`${path} cannot be read.`))
    )
    const inFile = text === "" ? {} : parseEnv(text)
    return {
      find: (name) =>
        Option.orElse(
          Option.map(Option.fromNullable(process.env[name]), (value) => ({ value, origin: "the environment" })),
          () => Option.map(Option.fromNullable(inFile[name]), (value) => ({ value, origin: path }))
        )
    }
  })

/** None where it is nowhere, and nobody can be asked. */
const readSecret = (
  given: Given,
  variables: Variables,
  mayAsk: boolean
): Effect.Effect<Option.Option<Found<Redacted.Redacted>>, Fault, FileSystem.FileSystem> => {
  const secret = (text: string, origin: string) =>
    Option.some({ value: Redacted.make(text.replace(/\r?\n$/, "")), origin })
  if (given["secret-stdin"]) {
    return isTerminal("stdin")
      ? usage("--secret-stdin reads a pipe or a file; on a terminal the secret is asked for without it.")
      : Effect.map(readStdin, (text) => secret(text, "standard input"))
  }
  if (Option.isSome(given["secret-file"])) {
    const path = given["secret-file"].value
    return Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFileString(path)).pipe(
      Effect.mapBoth({
        onFailure: () => configuration(`The file of --secret-file, ${path}, cannot be read.`),
        onSuccess: (text) => secret(text, path)
      })
    )
  }
  const found = variables.find(secretName)
  if (Option.isSome(found)) return Effect.succeed(secret(found.value.value, found.value.origin))
  return mayAsk && isTerminal("stdin") && isTerminal("stderr")
    ? Effect.promise(() => import("./askSecret.js")).pipe(
      Effect.flatMap(({ askSecret }) => askSecret),
      Effect.map((value) => Option.some({ value, origin: "the prompt" }))
    )
    : Effect.succeedNone
}

const readStdin: Effect.Effect<string> = Effect.async((resume) => {
  const chunks: Array<Uint8Array> = []
  process.stdin.on("data", (chunk: Uint8Array) => chunks.push(chunk))
  process.stdin.once("end", () => resume(Effect.succeed(Buffer.concat(chunks).toString("utf8"))))
})
