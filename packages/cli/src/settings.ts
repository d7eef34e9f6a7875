/** The settings by flags and variables, in this order. */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { type ClientCredentials, make as credentialsOf } from "@store-api/core/ClientCredentials"
import type { Service as TokenStore } from "@store-api/core/TokenStore"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as Effect from "effect/Effect"
import { configuration, type Fault, fromLibrary, type LibraryError, listed } from "./Fault.js"
import * as flags from "./flags.js"
import { Host, isAttended } from "./Host.js"
import * as secrets from "./secret.js"
import * as variables from "./variables.js"

export interface Settings {
  readonly authUrl: string
  readonly apiUrl: string | undefined
  readonly credentials: ClientCredentials
  readonly cacheDir: string | undefined
  /** The cache, and its folder. */
  readonly folder: string
  readonly store: TokenStore
  readonly allowInsecure: boolean
  readonly verbose: boolean
  readonly profile: string | undefined
  /** The flag or the variable of each setting. */
  readonly nameOf: (option: keyof typeof sources) => string
  /** Errors of the library, with these names. */
  readonly explain: (error: LibraryError) => Fault
  /** Where the settings were found, for people. */
  readonly origins: string
}

type Flags = flags.Values<typeof flags.common>

/** The secret has no flag for its value: others on the machine can read flags. */
const sources = {
  authUrl: { flag: "auth-url", variable: "STORE_API_AUTH_URL" },
  clientId: { flag: "client-id", variable: "STORE_API_CLIENT_ID" },
  apiUrl: { flag: "api-url", variable: "STORE_API_URL" },
  cacheDir: { flag: "cache-dir", variable: variables.cacheVariable },
  clientSecret: { flag: "secret-file", variable: flags.secretVariable }
} as const

type Source = typeof sources[keyof typeof sources]

/**
 * All that a token needs. `api`: whether the command needs the base of the API, can use it, or ignores it. `asks`: a
 * person is asked for what is missing. Otherwise that is only so for the secret.
 */
export const read = (
  given: Flags,
  api: "required" | "optional" | "ignored" = "ignored",
  asks = false
): Effect.Effect<Settings, Fault, FileSystem.FileSystem> =>
  Effect.gen(function*() {
    const needsApi = api === "required"
    const known = yield* variables.read(given, !asks)
    const host = yield* Host
    const { pathOf } = host
    const prompts = asks && isAttended(host) ? yield* Effect.promise(() => import("./ask.js")) : undefined
    const find = ({ flag, variable }: Exclude<Source, typeof sources.clientSecret>, prompt = "", isOptional = false) =>
      Effect.gen(function*() {
        const found = known.find(variable)
        const value = given[flag]
        if (value !== undefined) return { name: `--${flag}`, value, origin: `--${flag}`, isImplicit: false }
        if (found !== undefined || prompts === undefined || prompt === "") return found && { ...found, name: variable }
        const typed = yield* prompts.ask(`${prompt}: `, { isOptional })
        return typed === "" ? undefined : { name: `--${flag}`, value: typed, origin: "the prompt", isImplicit: false }
      })
    const authUrl = yield* find(sources.authUrl, "URL of the token service")
    const apiUrl = yield* find(sources.apiUrl, "URL of the API, if it is known", true)
    const clientId = yield* find(sources.clientId, "Client id")
    const cacheDir = yield* find(sources.cacheDir)
    const secret = yield* secrets.locate(given["secret-file"], known)
    if (authUrl === undefined || clientId === undefined || secret === undefined || (needsApi && apiUrl === undefined)) {
      const needed = { authUrl, clientId, ...(needsApi ? { apiUrl } : {}), clientSecret: secret }
      const missing = Object.entries(sources).filter(([option]) =>
        option in needed && !needed[option as keyof typeof needed]
      )
      return yield* isMissing(missing.map(([, source]) => source), known)
    }
    const addresses = [authUrl, api === "ignored" ? undefined : apiUrl].filter((found) => found?.isImplicit === true)
    if (addresses.length > 0 && !secret.isImplicit) {
      return yield* isUntrusted(addresses.map((found) => found?.name ?? ""), secret.origin)
    }
    if (cacheDir?.value === "") return yield* configuration(`${cacheDir.name} is empty: name a folder.`)
    const found = { authUrl, clientId, apiUrl, cacheDir, clientSecret: secret }
    const names = Object.fromEntries(Object.entries(found).map(([option, about]) => [option, about?.name]))
    const explain = fromLibrary({ ...names, allowInsecure: "--allow-insecure" })
    const clientSecret = yield* secret.read
    const folder = cacheDir === undefined ? yield* FileTokenStore.defaultFolder : pathOf(cacheDir.value)
    return {
      authUrl: authUrl.value,
      apiUrl: apiUrl?.value,
      credentials: yield* Effect.mapError(credentialsOf({ clientId: clientId.value, clientSecret }), explain),
      cacheDir: cacheDir?.value,
      folder,
      store: yield* Effect.provide(FileTokenStore.make({ folder }), NodePath.layer),
      allowInsecure: given["allow-insecure"],
      verbose: given.verbose,
      profile: known.profile,
      nameOf: (option) => found[option]?.name ?? sources[option].variable,
      explain,
      origins: originsOf([authUrl, clientId, apiUrl, secret])
    }
  })

/** "all from .env", or each origin with its settings. */
const originsOf = (found: ReadonlyArray<{ readonly name: string; readonly origin: string } | undefined>): string => {
  const given = found.filter((one) => one !== undefined)
  const origins = [...new Set(given.map(({ origin }) => origin))]
  const [first = ""] = origins
  return origins.length < 2 ? `all from ${first}` : origins.map((origin) => {
    const names = given.filter((one) => one.origin === origin && one.name !== origin).map(({ name }) => name)
    return names.length === 0 ? origin : `${listed(names)} from ${origin}`
  }).join("; ")
}

const isMissing = (missing: ReadonlyArray<Source>, { place, profile }: variables.Variables): Fault => {
  const hint = profile === undefined ? " To try without a service, run store-api emulator." : ""
  const [verb, them] = missing.length === 1 ? ["is", "it"] : ["are", "them"]
  const flags = listed(missing.map(({ flag }) => `--${flag}`))
  return configuration(
    `${listed(missing.map(({ variable }) => variable))} ${verb} not set. Set ${them} ${place}, or use ${flags}.${hint}`
  )
}

/** A `.env` in a folder of another person must not lead the user's secret to its address. */
const isUntrusted = (names: ReadonlyArray<string>, secret: string): Fault =>
  configuration(
    `${listed(names)} of a .env that you did not name ${
      names.length === 1 ? "is" : "are"
    } not used with the secret from ` +
      `${secret}. If the file is right, use --dotenv .env; if not, give the address by flag or in the environment.`
  )
