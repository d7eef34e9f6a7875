/** What the flags and the variables say, in this order. */
import type * as FileSystem from "@effect/platform/FileSystem"
import { type ClientCredentials, make as credentialsOf } from "@store-api/core/ClientCredentials"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { configuration, type Fault, fromLibrary } from "./Fault.js"
import type * as flags from "./flags.js"
import { folderName, secretName } from "./names.js"
import * as secrets from "./secret.js"
import { type Found, read as readVariables } from "./variables.js"
import { listed } from "./wording.js"

export interface Settings {
  readonly authUrl: string
  readonly credentials: ClientCredentials
  readonly folder: Option.Option<string>
  readonly allowInsecure: boolean
  readonly profile: Option.Option<string>
  /** Where each of them was found, for people. */
  readonly origins: ReadonlyArray<string>
}

export interface SettingsWithApi extends Settings {
  readonly apiUrl: string
}

type Given = flags.Values<typeof flags.common>

/** A secret is in none of its values: flags can be read by others on the machine. */
const byFlag = {
  STORE_API_AUTH_URL: "auth-url",
  STORE_API_URL: "api-url",
  STORE_API_CLIENT_ID: "client-id",
  [folderName]: "token-folder"
} as const

type Name = keyof typeof byFlag

interface NamedFound extends Found {
  readonly name: Name
}

/** All that a token needs. */
export const read = (given: Given): Effect.Effect<Settings, Fault, FileSystem.FileSystem> =>
  Effect.map(readWith(given, []), ({ settings }) => settings)

/** All that a call of an API needs. */
export const readWithApi = (given: Given): Effect.Effect<SettingsWithApi, Fault, FileSystem.FileSystem> =>
  Effect.map(
    readWith(given, ["STORE_API_URL"]),
    ({ apiUrl, settings }) => ({ ...settings, apiUrl: Option.getOrElse(apiUrl, () => "") })
  )

/** All that a token needs, and the base of the APIs if it is set. */
export const readWithAnyApi = (given: Given) =>
  Effect.map(readWith(given, []), ({ apiUrl, settings }) => ({ ...settings, apiUrl }))

const readWith = (given: Given, more: ReadonlyArray<Name>) =>
  Effect.gen(function*() {
    const variables = yield* readVariables(given)
    const find = (name: Name) =>
      Option.orElse(
        Option.map(given[byFlag[name]], (value): Found => ({ value, origin: `--${byFlag[name]}`, stumbledOn: false })),
        () => variables.find(name)
      )
    const valueOf = (name: Name) => Option.map(find(name), ({ value }) => value)
    const secret = yield* secrets.locate(given, variables)
    const names: ReadonlyArray<Name> = ["STORE_API_AUTH_URL", "STORE_API_CLIENT_ID", ...more]
    const missing = names.filter((name) => Option.isNone(find(name)))
    if (missing.length > 0 || Option.isNone(secret)) {
      const all = [...missing, ...(Option.isNone(secret) ? [secretName] as const : [])]
      return yield* configuration(isMissing(all, variables.place))
    }
    const found = names.flatMap((name) => Option.toArray(find(name)).map((found): NamedFound => ({ ...found, name })))
    const astray = found.filter(({ name, stumbledOn }) => stumbledOn && isAddress(name) && !secret.value.stumbledOn)
    if (astray.length > 0) return yield* configuration(isAstray(astray.map(({ name }) => name), secret.value.origin))
    const folder = valueOf(folderName)
    if (Option.contains(folder, "")) return yield* configuration(`${folderName} is empty: name a folder.`)
    const settings: Settings = {
      authUrl: Option.getOrElse(valueOf("STORE_API_AUTH_URL"), () => ""),
      credentials: yield* Effect.mapError(
        credentialsOf({
          clientId: Option.getOrElse(valueOf("STORE_API_CLIENT_ID"), () => ""),
          clientSecret: yield* secret.value.read
        }),
        fromLibrary
      ),
      folder,
      allowInsecure: given["allow-insecure"],
      profile: variables.profile,
      origins: [
        ...found.map(({ name, origin }) => `${name}: ${origin}`),
        `${secretName}: ${secret.value.origin}`
      ]
    }
    return { settings, apiUrl: valueOf("STORE_API_URL") }
  })

const flagOf = (name: Name | typeof secretName) => name === secretName ? "--secret-file" : `--${byFlag[name]}`

const isMissing = (names: ReadonlyArray<Name | typeof secretName>, place: string): string =>
  `${listed(names)} ${names.length === 1 ? "is" : "are"} not set: set ${
    names.length === 1 ? "it" : "them"
  } ${place}, ` +
  `or use ${listed(names.map(flagOf))}.`

const isAddress = (name: Name): boolean => name === "STORE_API_AUTH_URL" || name === "STORE_API_URL"

/** A file that came with a folder of others must not lead a secret of the user's to its address. */
const isAstray = (names: ReadonlyArray<Name>, secret: string): string =>
  `The secret (from ${secret}) is not sent to where the .env that was found leads by ${
    listed(names)
  }: if that file is ` +
  `right, name it with --dotenv .env, else use ${listed(names.map(flagOf))} or the environment.`
