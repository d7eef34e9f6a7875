/** Reads the settings from flags, variables and prompts, in this order. */
import * as consumers from "node:stream/consumers"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Terminal from "@effect/platform/Terminal"
import * as NodePath from "@effect/platform-node/NodePath"
import { make as credentialsOf } from "@store-api/core/ClientCredentials"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { configuration, type Fault, fromLibrary, listed, usage } from "./Fault.js"
import type * as flags from "./flags.js"
import { Host, isAttended } from "./Host.js"
import { write } from "./output.js"
import { defaultName, type Found, read as readVariables, sources, type Variables } from "./variables.js"

export type Settings = Effect.Effect.Success<ReturnType<typeof read>>

/**
 * Reads all that a token needs. `api`: whether the command needs the API's URL, can use it, or ignores it. `asks`:
 * whether to ask for any missing setting. Otherwise, only the secret is asked for.
 */
export const read = (
  given: flags.Values<typeof flags.common>,
  api: "required" | "optional" | "ignored" = "ignored",
  asks = false
) =>
  Effect.gen(function*() {
    const needsApi = api === "required"
    const known = yield* readVariables(given, !asks)
    const host = yield* Host
    const mayAsk = asks && isAttended(host)
    const find = (option: Exclude<keyof typeof sources, "clientSecret">, prompt = "", isOptional = false) => {
      const { flag, variable } = sources[option]
      const name = `--${flag}`
      const value = given[flag]
      const found = value === undefined ? known.find(variable) : { name, value, origin: "the flags", isImplicit: false }
      if (found !== undefined || !mayAsk || prompt === "") return Effect.succeed(found)
      return Effect.map(ask(`${prompt}: `, { isOptional }), (value): Found | undefined =>
        value === "" ? undefined : { name, value, origin: "the prompt", isImplicit: false })
    }
    const authUrl = yield* find("authUrl", "URL of the token service")
    const apiUrl = yield* find("apiUrl", "URL of the API (optional)", true)
    const clientId = yield* find("clientId", "Client id")
    const cacheDir = yield* find("cacheDir")
    const secret = yield* locateSecret(given["secret-file"], known)
    if (authUrl === undefined || clientId === undefined || secret === undefined || (needsApi && apiUrl === undefined)) {
      const needed = { authUrl, clientId, ...(needsApi && { apiUrl }), clientSecret: secret }
      return yield* isMissing(needed, known, asks, yield* defaultName)
    }
    const addresses = [authUrl, api === "ignored" ? undefined : apiUrl].filter((found) =>
      found?.isImplicit === true
    )
    if (addresses.length > 0 && !secret.isImplicit) {
      return yield* isUntrusted(addresses.map((found) => found?.name ?? ""), secret.origin)
    }
    if (cacheDir?.value === "") return yield* configuration(`${cacheDir.name} is empty: name a folder.`)
    const found = { authUrl, clientId, apiUrl, cacheDir, clientSecret: secret }
    const names = Object.fromEntries(Object.entries(found).map(([option, about]) => [option, about?.name]))
    const request = "an application with TokenRequest.clientSecretPost"
    const explain = fromLibrary({ ...names, allowInsecure: "--allow-insecure", request })
    const clientSecret = yield* secret.read
    const client = yield* Effect.mapError(credentialsOf({ clientId: clientId.value, clientSecret }), explain)
    const folder = cacheDir === undefined ? yield* FileTokenStore.defaultFolder : host.pathOf(cacheDir.value)
    return {
      authUrl: authUrl.value,
      apiUrl: apiUrl?.value,
      client,
      credentials: Effect.succeed(client),
      cacheDir: cacheDir?.value,
      /** The folder of the cache. */
      folder,
      store: yield* Effect.provide(FileTokenStore.make({ folder }), NodePath.layer),
      allowInsecure: given["allow-insecure"],
      verbose: given.verbose,
      profile: known.profile,
      /** The flag or the variable of a setting. */
      nameOf: (option: keyof typeof sources) => found[option]?.name ?? sources[option].variable,
      /** Errors of the library, with these names. */
      explain,
      /** Where the settings were found, for people. */
      origins: originsOf([authUrl, clientId, apiUrl, secret])
    }
  })

/** "all from .env", or each origin with its settings. */
const originsOf = (found: ReadonlyArray<Pick<Found, "name" | "origin"> | undefined>): string => {
  const given = found.filter((one) => one !== undefined)
  const origins = [...new Set(given.map(({ origin }) => origin))]
  return origins.length < 2 ? `all from ${origins.join()}` : origins.map((origin) => {
    const names = given.filter((one) => one.origin === origin).map(({ name }) => name)
    return `${listed(names).replace("--secret-file", "the secret")} from ${origin}`
  }).join("; ")
}

const isMissing = (needed: Record<string, unknown>, { place, profile }: Variables, asks: boolean, unused?: string) => {
  const missing = Object.entries(sources).filter(([one]) => one in needed && !needed[one]).map(([, one]) => one)
  const [verb, them] = missing.length === 1 ? ["is", "it"] : ["are", "them"]
  const flags = listed(missing.map(({ flag }) => `--${flag}`))
  const [add, hint] = profile !== undefined || asks ? ["", ""] : unused === undefined
    ? ["with store-api profile add NAME, ", " To try without a service, run store-api emulator."]
    : ["", ` The default profile is not used beside other settings. To select it, use --profile ${unused}.`]
  const names = listed(missing.map(({ variable }) => variable))
  return configuration(`${names} ${verb} not set. Set ${them} ${add}${place}, or use ${flags}.${hint}`)
}

/** A `.env` in somebody else's folder must not direct the user's secret to an address of theirs. */
const isUntrusted = (names: ReadonlyArray<string>, secret: string): Fault => {
  const unused = `${listed(names)} of a .env that you did not name ${names.length === 1 ? "is" : "are"} not used`
  const remedy = "If you trust the file, use --dotenv .env; if not, give the address by flag or in the environment."
  return configuration(`${unused} with the secret from ${secret}. ${remedy}`)
}

/**
 * Finds where the secret comes from. The effect that reads it runs only once the address is known to be the user's.
 * Returns `undefined` if no source has the secret and nobody can be asked.
 */
const locateSecret = (file: string | undefined, known: Variables) =>
  Effect.gen(function*() {
    const host = yield* Host
    const { stdin } = host.process
    const secret = <R>(name: string, origin: string, read: Effect.Effect<string, Fault, R>, isImplicit = false) => ({
      ...{ name, origin, isImplicit },
      read: Effect.map(read, (text) => Redacted.make(text.replace(/\r?\n$/, "")))
    })
    if (file === "-" && stdin.isTTY === true) {
      return yield* usage("--secret-file - reads a pipe or a file. On a terminal, leave it out to be asked.")
    }
    if (file === "-") return secret("--secret-file", "standard input", readAll(stdin))
    if (file !== undefined) {
      const text = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFileString(host.pathOf(file)))
      const problem = configuration(`Cannot read ${file}, the file of --secret-file.`)
      return secret("--secret-file", file, Effect.mapError(text, () => problem))
    }
    const found = known.find(sources.clientSecret.variable)
    if (found !== undefined) return secret(found.name, found.origin, Effect.succeed(found.value), found.isImplicit)
    if (!isAttended(host)) return undefined
    return secret("client secret", "the prompt", ask("Client secret (not shown): ", { isSecret: true }))
  })

const readAll = (stdin: NodeJS.ReadableStream): Effect.Effect<string, Fault> =>
  Effect.filterOrFail(
    Effect.tryPromise({
      try: () => consumers.text(stdin),
      catch: () => configuration("Cannot read standard input, the file of --secret-file.")
    }),
    // A folder is read as empty text as well.
    (text) => text !== "",
    () => configuration("Standard input, the file of --secret-file, is empty.")
  )

/**
 * Asks at the terminal without showing a secret. Standard output stays free for the result. `isOptional`: the answer
 * may be empty.
 */
const ask = (
  prompt: string,
  { isOptional = false, isSecret = false }: { readonly isOptional?: boolean; readonly isSecret?: boolean }
): Effect.Effect<string, Fault> =>
  Effect.gen(function*() {
    const { readInput } = yield* Terminal.Terminal
    const keys = yield* readInput
    const echo = (shown: string) => isSecret ? Effect.void : write("stderr", shown)
    // After `readInput`, which turns the echo of the terminal off.
    yield* write("stderr", prompt)
    let text = ""
    while (true) {
      // Ctrl+C and Ctrl+D end the input.
      const { input, key } = yield* Effect.catchAll(
        keys.take,
        () => Effect.zipRight(write("stderr", "\n"), Effect.interrupt)
      )
      if (key.name === "return" || key.name === "enter") {
        yield* write("stderr", "\n")
        const canBeSent = /^[\x20-\x7e]+$/.test(text)
        if (text === "" ? isOptional : canBeSent && (!prompt.startsWith("URL") || /^https?:/.test(text))) return text
        const problem = canBeSent ? "must start with https://" : "contains characters that cannot be sent"
        yield* write("stderr", `The ${isSecret ? "secret" : "value"} ${text === "" ? "is empty" : problem}.\n${prompt}`)
        text = ""
      } else {
        const kept = key.name === "backspace" ? text.slice(0, -1) : key.ctrl && /^[uw]$/.test(key.name) ? "" : undefined
        const typed = Option.getOrElse(input, () => "")
        yield* echo(kept === undefined ? typed : "\b \b".repeat(text.length - kept.length))
        text = kept ?? text + typed
      }
    }
  }).pipe(
    Effect.scoped,
    Effect.provide(Layer.unwrapEffect(Effect.map(Host, ({ terminal }) => terminal)))
  )
