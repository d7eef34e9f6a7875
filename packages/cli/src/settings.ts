/** Reads the settings from flags, variables and prompts, in this order. */
import { Writable } from "node:stream"
import * as consumers from "node:stream/consumers"
import * as FileSystem from "@effect/platform/FileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { make as credentialsOf } from "@store-api/core/ClientCredentials"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import { configuration, type Fault, fromLibrary, listed, usage } from "./Fault.js"
import type * as flags from "./flags.js"
import { Host, isAttended } from "./Host.js"
import {
  type Found,
  hasDefault,
  read as readVariables,
  service,
  type Setting,
  sources,
  type Variables
} from "./variables.js"

export type Settings = Effect.Effect.Success<ReturnType<typeof read>>

/**
 * Reads all that a token needs. Asks for the secret if it is missing. `api`: whether the command needs its URL; if that
 * is optional, any missing setting is asked for.
 */
export const read = (given: flags.Values<typeof flags.common>, api: "required" | "ignored" | "optional" = "ignored") =>
  Effect.gen(function*() {
    const host = yield* Host
    const asks = api === "optional"
    const known = yield* readVariables(given, !asks)
    const findOrAsk = (setting: Setting, prompt: string, isOptional = false) =>
      Effect.gen(function*() {
        const found = known.find(setting)
        if (found !== undefined || !asks || !isAttended(host)) return found
        const value = yield* ask(`${prompt}: `, { isOptional })
        const name = `--${sources[setting].flag}`
        return value === "" ? undefined : { name, value, origin: "the prompt", isImplicit: false }
      })
    const authUrl = yield* findOrAsk("authUrl", "URL of the token service")
    const apiUrl = yield* findOrAsk("apiUrl", "URL of the API (optional)", true)
    const clientId = yield* findOrAsk("clientId", "Client id")
    const cacheDir = known.find("cacheDir")
    const secret = yield* locateSecret(known.find("clientSecret"))
    const found = { authUrl, clientId, apiUrl, clientSecret: secret, cacheDir }
    if (!authUrl || !clientId || !secret || (api === "required" && !apiUrl)) {
      const missing = service.filter((one) => found[one] === undefined && (one !== "apiUrl" || api === "required"))
      return yield* isMissing(missing, known, asks, yield* hasDefault)
    }
    const used = api === "ignored" ? [authUrl] : [authUrl, apiUrl]
    const addresses = used.flatMap((found) => found?.isImplicit === true ? [found.name] : [])
    if (addresses.length > 0 && !secret.isImplicit) return yield* isUntrusted(addresses, secret.origin)
    if (cacheDir?.value === "") return yield* configuration(`${cacheDir.name} is empty: name a folder.`)
    const names = Record.map(found, (about) => about?.name)
    const request = "an application with TokenRequest.clientSecretPost"
    const explain = fromLibrary({ ...names, allowInsecure: "--allow-insecure", "endpoint.request": request })
    const clientSecret = Redacted.make((yield* secret.read).replace(/\r?\n$/, ""))
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
      store: yield* Effect.provide(Effect.mapError(FileTokenStore.make({ folder }), explain), NodePath.layer),
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
const originsOf = (found: ReadonlyArray<Pick<Found, "name" | "origin"> | undefined>): string => {
  const groups = Object.entries(Arr.groupBy(found.filter((one) => one !== undefined), ({ origin }) => origin))
  return groups.map(([origin, some]) => {
    const names = listed(some.map(({ name }) => name)).replace("--secret-file", "the secret")
    return `${groups.length === 1 ? "all" : names} from ${origin}`
  }).join("; ")
}

const isMissing = (
  missing: ReadonlyArray<Setting>,
  { place, profile }: Variables,
  asks: boolean,
  hasDefault: boolean
) => {
  const [verb, them] = missing.length === 1 ? ["is", "it"] : ["are", "them"]
  const flags = listed(missing.map((setting) => `--${sources[setting].flag}`))
  const [add, hint] = profile !== undefined || asks ? ["", ""] : hasDefault
    ? ["", " The default profile is not used beside other settings. To select it, use --profile default."]
    : ["with store-api profile add, ", " To try without a service, run store-api emulator."]
  const names = listed(missing.map((setting) => sources[setting].variable))
  return configuration(`${names} ${verb} not set. Set ${them} ${add}${place}, or use ${flags}.${hint}`)
}

/** A `.env` in somebody else's folder must not direct the user's secret to an address of theirs. */
const isUntrusted = (names: ReadonlyArray<string>, secret: string): Fault => {
  const unused = `${listed(names)} of a .env that you did not name ${names.length === 1 ? "is" : "are"} not used`
  const remedy = "If you trust the file, use --dotenv .env; if not, give the address by flag or in the environment."
  return configuration(`${unused} with the secret from ${secret}. ${remedy}`)
}

/**
 * The effect that reads the secret runs only once the address is known to be the user's. Returns `undefined` if no
 * source has the secret and nobody can be asked.
 */
const locateSecret = (found: Found | undefined) =>
  Effect.gen(function*() {
    const host = yield* Host
    const { stdin } = host.process
    if (found === undefined) {
      const read = ask("Client secret (not shown): ", { isSecret: true })
      return isAttended(host) ? { name: "client secret", origin: "the prompt", isImplicit: false, read } : undefined
    }
    const { name, value } = found
    if (name !== "--secret-file") return { ...found, read: Effect.succeed(value) }
    if (value === "-" && stdin.isTTY === true) {
      return yield* usage("--secret-file - reads a pipe or a file. On a terminal, leave it out to be asked.")
    }
    const origin = value === "-" ? "standard input" : value
    const text: Effect.Effect<string, unknown> = value === "-"
      ? Effect.tryPromise(() => consumers.text(stdin))
      : (yield* FileSystem.FileSystem).readFileString(host.pathOf(value))
    const problem = configuration(`Cannot read ${origin}, the file of --secret-file.`)
    return { ...found, origin, read: Effect.mapError(text, () => problem) }
  })

/**
 * Reads a line, and asks again until it can be used. Standard output stays free for the result. The terminal shows what
 * is typed, unless it is a secret. `isOptional`: the line may be empty.
 */
const ask = (prompt: string, { isOptional = false, isSecret = false }): Effect.Effect<string> =>
  Effect.gen(function*() {
    const { stderr, stdin } = (yield* Host).process
    // Loaded only to ask, so that the command starts sooner.
    const { createInterface } = yield* Effect.promise(() => import("node:readline"))
    return yield* Effect.async<string>((resume) => {
      const output = isSecret ? new Writable({ write: (_text, _encoding, done) => done() }) : stderr
      // In raw mode, so that the terminal itself never shows a secret that is typed or pasted too early.
      const lines = createInterface({ input: stdin, output, terminal: true, historySize: 0, prompt })
      const show = (problem = "") => {
        stderr.write(isSecret ? `${problem}${prompt}` : problem)
        lines.prompt(true)
      }
      // Ctrl+C and Ctrl+D close the interface without an answer.
      let answer: Effect.Effect<string> = Effect.interrupt
      lines.on("line", (text) => {
        const problem = text === ""
          ? isOptional ? undefined : "is empty"
          : /[^\x20-\x7e]/.test(text)
          ? "contains characters that cannot be sent"
          : prompt.startsWith("URL") && !/^https?:/.test(text)
          ? "must start with https://"
          : undefined
        if (problem === undefined) {
          answer = Effect.succeed(text)
          lines.close()
        } else show(`${isSecret ? "\nThe secret" : "The value"} ${problem}.\n`)
      })
      // After Ctrl+Z and fg, Node leaves the input paused.
      lines.on("SIGCONT", () => show())
      lines.once("close", () => {
        if (isSecret || answer === Effect.interrupt) stderr.write("\n")
        resume(answer)
      })
      show()
      return Effect.sync(() => lines.close())
    })
  })
