/** Reads the settings from flags, variables and prompts, in this order. */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { make as credentialsOf } from "@store-api/core/ClientCredentials"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import { configuration, type Fault, fromLibrary, listed } from "../Fault.js"
import type * as flags from "../flags.js"
import { Host, isAttended } from "../Host.js"
import { ask, checkOptionalUrl, checkText, checkUrl } from "./ask.js"
import { hasDefault } from "./profiles.js"
import { locateSecret } from "./secret.js"
import { service, type Setting, sources } from "./sources.js"
import {
  type Found,
  readVariables,
  readVariablesOrDefault,
  type Variables
} from "./variables.js"

export type Settings = Effect.Effect.Success<ReturnType<typeof read>>

type Given = flags.Values<typeof flags.common>

/** Reads the settings for a token. Asks for the secret if it is missing. */
export const read = (given: Given) => readFor(given, forToken, ["authUrl"])

/** Reads the settings for a token and a call of the API. */
export const readForApi = (given: Given) => readFor(given, service, ["authUrl", "apiUrl"])

const readFor = (given: Given, required: Need["required"], addresses: Need["addresses"]) =>
  Effect.flatMap(
    readVariablesOrDefault(given),
    (known) =>
      settle(given, known, findAll(known), {
        required,
        addresses,
        explainMissing: (missing) => explainMissing(missing, known)
      })
  )

/** Reads the settings of a new profile. On a terminal, asks for each one that is missing. */
export const readForProfile = (given: Given) =>
  Effect.gen(function*() {
    const known = yield* readVariables(given)
    const found = findAll(known)
    const isAsking = isAttended(yield* Host)
    const answerFor = (setting: Setting, prompt: string, check: Parameters<typeof ask>[1]) =>
      found[setting] !== undefined || !isAsking
        ? Effect.succeed(found[setting])
        : Effect.map(ask(`${prompt}: `, check), (value): Found | undefined => {
          const name = `--${sources[setting].flag}`
          return value === ""
            ? undefined
            : { name, value, origin: "the prompt", isImplicit: false }
        })
    const authUrl = yield* answerFor("authUrl", "URL of the token service", checkUrl)
    const apiUrl = yield* answerFor("apiUrl", "URL of the API (optional)", checkOptionalUrl)
    const clientId = yield* answerFor("clientId", "Client id", checkText)
    return yield* settle(given, known, { ...found, authUrl, apiUrl, clientId }, {
      required: forToken,
      addresses: ["authUrl", "apiUrl"],
      explainMissing: (missing) => Effect.succeed(missingSentence(missing, known.place))
    })
  })

const forToken = ["authUrl", "clientId", "clientSecret"] as const

type FoundSettings = Readonly<Record<Setting, Found | undefined>>

const findAll = ({ find }: Variables): FoundSettings =>
  Record.map(sources, (_, setting) => find(setting))

/** What a command does with its settings. */
interface Need {
  /** The settings that it cannot do without. */
  readonly required: ReadonlyArray<Setting>
  /** Where it sends a secret or a token. */
  readonly addresses: ReadonlyArray<"authUrl" | "apiUrl">
  readonly explainMissing: (
    missing: ReadonlyArray<Setting>
  ) => Effect.Effect<string, never, FileSystem.FileSystem>
}

/** Checks the settings, and reads the secret. */
const settle = (given: Given, known: Variables, located: FoundSettings, need: Need) =>
  Effect.gen(function*() {
    const host = yield* Host
    const { apiUrl, authUrl, cacheDir, clientId } = located
    const secret = yield* locateSecret(located.clientSecret)
    const found = { authUrl, clientId, apiUrl, clientSecret: secret, cacheDir }
    const missing = service.filter((setting) =>
      need.required.includes(setting) && found[setting] === undefined
    )
    // The last three conditions are part of the first one, which the compiler does not know.
    if (missing.length > 0 || !authUrl || !clientId || !secret) {
      return yield* configuration(yield* need.explainMissing(missing))
    }
    const foreign = need.addresses.flatMap((address) => {
      const about = found[address]
      return about?.isImplicit === true ? [about.name] : []
    })
    if (foreign.length > 0 && !secret.isImplicit) {
      return yield* isUntrusted(foreign, secret.origin)
    }
    if (cacheDir?.value === "") {
      return yield* configuration(`${cacheDir.name} is empty: name a folder.`)
    }
    const names = Record.map(found, (about) => about?.name)
    const request = "an application with TokenRequest.clientSecretPost"
    const explain = fromLibrary({
      ...names,
      allowInsecure: "--allow-insecure",
      "endpoint.request": request
    })
    const clientSecret = Redacted.make((yield* secret.read).replace(/\r?\n$/, ""))
    const client = yield* Effect.mapError(
      credentialsOf({ clientId: clientId.value, clientSecret }),
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
      cacheDir: cacheDir?.value,
      /** The folder of the cache. */
      folder,
      store: yield* Effect.provide(
        Effect.mapError(FileTokenStore.make({ folder }), explain),
        NodePath.layer
      ),
      allowInsecure: given["allow-insecure"],
      verbose: given.verbose,
      profile: known.profile,
      /** The flag or the variable of a setting. */
      nameOf: (option: Setting) => names[option] ?? sources[option].variable,
      /** Errors of the library, with these names. */
      explain,
      /** Where the settings were found, for people. */
      origins: originsOf([authUrl, clientId, apiUrl, secret])
    }
  })

/** "all from .env", or each origin with its settings. */
const originsOf = (
  found: ReadonlyArray<Pick<Found, "name" | "origin"> | undefined>
): string => {
  const groups = Object.entries(
    Arr.groupBy(found.filter((one) => one !== undefined), ({ origin }) => origin)
  )
  return groups.map(([origin, some]) => {
    const names = listed(some.map(({ name }) => name)).replace("--secret-file", "the secret")
    return `${groups.length === 1 ? "all" : names} from ${origin}`
  }).join("; ")
}

/** "A and B are not set", and where to set them. */
const missingSentence = (missing: ReadonlyArray<Setting>, place: string): string => {
  const [verb, them] = missing.length === 1 ? ["is", "it"] : ["are", "them"]
  const names = listed(missing.map((setting) => sources[setting].variable))
  const flags = listed(missing.map((setting) => `--${sources[setting].flag}`))
  return `${names} ${verb} not set. Set ${them} ${place}, or use ${flags}.`
}

const explainMissing = (missing: ReadonlyArray<Setting>, { place, profile }: Variables) =>
  Effect.gen(function*() {
    if (profile !== undefined) return missingSentence(missing, place)
    if (yield* hasDefault) {
      return `${
        missingSentence(missing, place)
      } The default profile is not used beside other ` +
        "settings. To select it, use --profile default."
    }
    return `${
      missingSentence(missing, `with store-api profile add, ${place}`)
    } To try without a ` +
      "service, run store-api emulator."
  })

/** A `.env` in somebody else's folder must not direct the user's secret to an address of theirs. */
const isUntrusted = (names: ReadonlyArray<string>, secret: string): Fault => {
  const unused = `${listed(names)} of a .env that you did not name ${
    names.length === 1 ? "is" : "are"
  } not used`
  const remedy =
    "If you trust the file, use --dotenv .env; if not, give the address by flag or in the environment."
  return configuration(`${unused} with the secret from ${secret}. ${remedy}`)
}
