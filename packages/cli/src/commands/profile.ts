/** `store-api profile`: settings under a name. */
import { dirname, resolve } from "node:path"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { checkSettings } from "../check/responses.js"
import { configuration, Fault, usage } from "../Fault.js"
import type * as flags from "../flags.js"
import { Host } from "../Host.js"
import * as output from "../output.js"
import { acquireToken } from "../provider.js"
import { read } from "../settings.js"
import * as variables from "../variables.js"

export const add = (given: flags.Values<typeof flags.profileAdd>, name = variables.defaultProfile) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const { pathOf } = yield* Host
    const path = yield* variables.fileOf(name, "The name")
    if (!given.force && (yield* Effect.orElseSucceed(fs.exists(path), () => false))) {
      return yield* usage(`The profile ${name} exists. Use --force to replace it.`)
    }
    const settings = yield* Effect.tap(read(given, "optional"), checkSettings)
    const { apiUrl, authUrl, cacheDir, client: { clientId, clientSecret }, origins } = settings
    const values = {
      ...{ authUrl, apiUrl, clientId, clientSecret: Redacted.value(clientSecret) },
      // The profile is used in other folders too.
      cacheDir: cacheDir && resolve(pathOf(cacheDir))
    }
    const lines = yield* Effect.forEach(
      Object.entries(values),
      ([option, value]) => variables.assignment(variables.sources[option as keyof typeof values].variable, value)
    )
    if (!given["no-verify"]) {
      // The token is cached for the next command.
      yield* Effect.mapError(
        acquireToken(settings, { "force-refresh": true, "no-cache": false }),
        ({ code, message }) => new Fault({ code, message: `${message} Nothing is saved, unless you add --no-verify.` })
      )
    }
    yield* Effect.ignore(fs.makeDirectory(dirname(path), { recursive: true, mode: 0o700 }))
    yield* variables.write(path, lines.join(""))
    const verified = given["no-verify"] ? "" : " The service issued a token."
    yield* output.note(`The profile ${name} is saved in ${path}: ${origins}.${verified}`)
  })

export const show = (name = variables.defaultProfile) =>
  Effect.gen(function*() {
    const { path, values } = yield* variables.readProfile(name, "The name")
    yield* output.line(`profile  ${name}\nfile     ${path}`)
    for (const [variable, value = ""] of Object.entries(values)) {
      const isSecret = variable === variables.sources.clientSecret.variable
      yield* output.line(output.visible(`${variable}=${isSecret ? "(not shown)" : value}`))
    }
  })

export const list = Effect.flatMap(
  variables.profileNames,
  (names) => names.length === 0 ? output.note("No profile is saved.") : output.line(names.join("\n"))
)

export const remove = (name: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* variables.fileOf(name, "The name")
    // A run that was killed may have left this file.
    yield* Effect.ignore(fs.remove(`${path}.part`))
    yield* Effect.catchAll(
      fs.remove(path),
      (error) => variables.isNotFound(error) ? variables.isUnknown(name) : configuration(`Cannot remove ${path}.`)
    )
    yield* output.note(`The profile ${name} is removed.`)
  })
