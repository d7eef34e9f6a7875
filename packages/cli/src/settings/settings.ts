/** Reads the settings from flags, variables and prompts, in this order. */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as ClientCredentials from "@store-api/core/ClientCredentials"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import { type CommandError, configurationError, fromLibrary } from "../CommandError.js"
import type * as flags from "../flags.js"
import { Host, isAttended } from "../Host.js"
import { listInWords } from "../output.js"
import { ask, checkOptionalUrl, checkText, checkUrl } from "./ask.js"
import { locateAssertion } from "./assertion.js"
import { hasDefault } from "./profiles.js"
import { locateSecret } from "./secret.js"
import { type Setting, sources } from "./sources.js"
import {
  type FoundSetting,
  readVariables,
  readVariablesOrDefault,
  type Variables
} from "./variables.js"

export type Settings = Effect.Effect.Success<ReturnType<typeof readForToken>>

type FlagValues = flags.Values<typeof flags.commonFlags>

/** Reads the settings for a token. Asks for the secret if it is missing. */
export const readForToken = (flagValues: FlagValues) =>
  readFor(flagValues, tokenSettings, ["authUrl"])

/** Reads the settings for a token and a call of the API. */
export const readForApi = (flagValues: FlagValues) =>
  readFor(flagValues, apiSettings, ["authUrl", "apiUrl"])

const readFor = (
  flagValues: FlagValues,
  required: Requirements["required"],
  destinations: Requirements["destinations"]
) =>
  Effect.flatMap(
    readVariablesOrDefault(flagValues),
    (variables) =>
      resolve(flagValues, variables, findAll(variables), {
        required,
        destinations,
        explainMissing: (missing) => explainMissing(missing, variables)
      })
  )

/** Reads the settings of a new profile. On a terminal, asks for each one that is missing. */
export const readForProfile = (flagValues: FlagValues) =>
  Effect.gen(function*() {
    const variables = yield* readVariables(flagValues)
    const settings = findAll(variables)
    const isAsking = isAttended(yield* Host)
    const answerFor = (setting: Setting, prompt: string, check: Parameters<typeof ask>[1]) =>
      settings[setting] !== undefined || !isAsking
        ? Effect.succeed(settings[setting])
        : Effect.map(ask(`${prompt}: `, check), (value): FoundSetting | undefined => {
          const name = `--${sources[setting].flag}`
          return value === ""
            ? undefined
            : { name, value, origin: "the prompt", isImplicit: false }
        })
    const authUrl = yield* answerFor("authUrl", "URL of the token service", checkUrl)
    const apiUrl = yield* answerFor("apiUrl", "URL of the API (optional)", checkOptionalUrl)
    const clientId = yield* answerFor("clientId", "Client id", checkText)
    // A `.env` that the user did not name must not choose where a profile keeps its tokens.
    const cacheDir = settings.cacheDir?.isImplicit === true ? undefined : settings.cacheDir
    const located = { ...settings, authUrl, apiUrl, clientId, cacheDir }
    return yield* resolve(flagValues, variables, located, {
      required: tokenSettings,
      destinations: ["authUrl", "apiUrl"],
      explainMissing: (missing) => Effect.succeed(describeMissing(missing, variables.place))
    })
  })

const tokenSettings = ["authUrl", "clientId", "clientSecret"] as const

/** In the order of messages. */
const apiSettings = ["authUrl", "clientId", "apiUrl", "clientSecret"] as const

type FoundSettings = Readonly<Record<Setting, FoundSetting | undefined>>

const findAll = ({ find }: Variables): FoundSettings =>
  Record.map(sources, (_, setting) => find(setting))

/** What a command does with its settings. */
interface Requirements {
  /** The settings that it cannot do without. */
  readonly required: ReadonlyArray<Setting>
  /** Where it sends a secret or a token. */
  readonly destinations: ReadonlyArray<"authUrl" | "apiUrl">
  readonly explainMissing: (
    missing: ReadonlyArray<Setting>
  ) => Effect.Effect<string, never, FileSystem.FileSystem>
}

/** Checks the settings, and reads the secret if there is one. */
const resolve = (
  flagValues: FlagValues,
  variables: Variables,
  located: FoundSettings,
  requirements: Requirements
) =>
  Effect.gen(function*() {
    const host = yield* Host
    const { apiUrl, authUrl, cacheDir, clientId } = located
    const assertion = located.assertionFile === undefined
      ? undefined
      : yield* locateAssertion(located.assertionFile, located.clientSecret)
    const secret = assertion === undefined
      ? yield* locateSecret(located.clientSecret)
      : undefined
    const credential = assertion ?? secret
    // Messages name the file of the assertion where they would name the secret.
    const settings = { authUrl, clientId, apiUrl, clientSecret: credential, cacheDir }
    const missing = apiSettings.filter((setting) =>
      requirements.required.includes(setting) && settings[setting] === undefined
    )
    // The last three conditions are part of the first one, which the compiler does not know.
    if (missing.length > 0 || !authUrl || !clientId || !credential) {
      return yield* configurationError(yield* requirements.explainMissing(missing))
    }
    if (assertion?.isImplicit === true) return yield* refuseForeign([assertion.name])
    const foreignNames = requirements.destinations.flatMap((address) => {
      const setting = settings[address]
      return setting?.isImplicit === true ? [setting.name] : []
    })
    if (foreignNames.length > 0 && !credential.isImplicit) {
      const kind = assertion === undefined ? "secret" : "assertion"
      return yield* refuseForeign(foreignNames, `the ${kind} from ${credential.origin}`)
    }
    if (cacheDir?.value === "") {
      return yield* configurationError(`${cacheDir.name} is empty: name a folder.`)
    }
    const names = Record.map(settings, (setting) => setting?.name)
    const request = "an application with TokenRequest.clientSecretPost"
    const explain = fromLibrary({
      ...names,
      clientAssertion: names.clientSecret,
      allowInsecure: "--allow-insecure",
      "endpoint.request": request
    })
    const client = yield* Effect.mapError(
      secret === undefined
        ? ClientCredentials.withoutSecret(clientId.value)
        : ClientCredentials.make({
          clientId: clientId.value,
          clientSecret: Redacted.make(yield* secret.read)
        }),
      explain
    )
    const folder = cacheDir === undefined
      ? yield* FileTokenStore.defaultFolder
      : host.pathOf(cacheDir.value)
    return {
      authUrl: authUrl.value,
      apiUrl: apiUrl?.value,
      client,
      credentials: Effect.succeed(client),
      /** The file of an assertion. A client with one has no secret, so its tokens are not cached. */
      assertionPath: assertion?.path,
      /** The setting for the folder of the cache, if there is one. */
      cacheDir,
      /** The folder of the cache. */
      folder,
      store: yield* Effect.provide(
        Effect.mapError(FileTokenStore.make({ folder }), explain),
        NodePath.layer
      ),
      allowInsecure: flagValues["allow-insecure"],
      verbose: flagValues.verbose,
      profile: variables.profile,
      /** The flag or the variable of a setting. */
      nameOf: (option: keyof typeof names) => names[option] ?? sources[option].variable,
      /** Errors of the library, with these names. */
      explain,
      /** Where the settings were found, for people. */
      origins: originsOf([authUrl, clientId, apiUrl, credential])
    }
  })

/** "all from .env", or each origin with its settings. */
const originsOf = (
  settings: ReadonlyArray<Pick<FoundSetting, "name" | "origin"> | undefined>
): string => {
  const groups = Object.entries(
    Arr.groupBy(settings.filter((setting) => setting !== undefined), ({ origin }) => origin)
  )
  return groups.map(([origin, members]) => {
    const names = listInWords(members.map(({ name }) => name)).replace(
      "--secret-file",
      "the secret"
    )
    return `${groups.length === 1 ? "all" : names} from ${origin}`
  }).join("; ")
}

/** "A and B are not set", and where to set them. */
const describeMissing = (missing: ReadonlyArray<Setting>, place: string): string => {
  const [verb, them] = missing.length === 1 ? ["is", "it"] : ["are", "them"]
  const names = listInWords(missing.map((setting) => sources[setting].variable))
  const flags = listInWords(missing.map((setting) => `--${sources[setting].flag}`))
  return `${names} ${verb} not set. Set ${them} ${place}, or use ${flags}.`
}

const explainMissing = (missing: ReadonlyArray<Setting>, { place, profile }: Variables) =>
  Effect.gen(function*() {
    if (profile !== undefined) return describeMissing(missing, place)
    if (yield* hasDefault) {
      return `${
        describeMissing(missing, place)
      } The default profile is not used beside other ` +
        "settings. To select it, use --profile default."
    }
    return `${
      describeMissing(missing, `with store-api profile add, ${place}`)
    } To try without a ` +
      "service, run store-api emulator."
  })

/**
 * A `.env` in somebody else's folder must neither direct the user's secret to an address of theirs nor choose a file
 * of the user that is sent.
 */
const refuseForeign = (names: ReadonlyArray<string>, credential?: string): CommandError => {
  const problem = `${listInWords(names)} of a .env that you did not name ${
    names.length === 1 ? "is" : "are"
  } not used`
  if (credential === undefined) {
    return configurationError(`${problem}. If you trust the file, use --dotenv .env.`)
  }
  const remedy =
    "If you trust the file, use --dotenv .env; if not, give the address by flag or in the environment."
  return configurationError(`${problem} with ${credential}. ${remedy}`)
}
