/** `store-api profile`: settings under a name. */
import { dirname, resolve } from "node:path"
import { parseEnv } from "node:util"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { checkSettings } from "../check/responses.js"
import { configuration, usage } from "../Fault.js"
import type * as flags from "../flags.js"
import { secretVariable } from "../flags.js"
import { Host } from "../Host.js"
import * as output from "../output.js"
import * as profiles from "../profile.js"
import { read } from "../settings.js"
import { cacheVariable } from "../variables.js"

export const add = (given: flags.Values<typeof flags.profileAdd>, name: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const { pathOf } = yield* Host
    const path = yield* profiles.fileOf(name, "The name")
    if (!given.force && (yield* Effect.orElseSucceed(fs.exists(path), () => false))) {
      return yield* usage(`The profile ${name} exists. Use --force to replace it.`)
    }
    const { apiUrl, authUrl, cacheDir, credentials, origins } = yield* Effect.tap(
      read(given, "optional"),
      checkSettings
    )
    const lines = yield* Effect.all([
      assignment("STORE_API_AUTH_URL", authUrl),
      assignment("STORE_API_URL", apiUrl),
      assignment("STORE_API_CLIENT_ID", credentials.clientId),
      assignment(secretVariable, Redacted.value(credentials.clientSecret)),
      // The profile is used in other folders too.
      assignment(cacheVariable, cacheDir && resolve(pathOf(cacheDir)))
    ])
    // Created with its mode, and renamed when it is complete.
    const part = `${path}.part`
    yield* fs.makeDirectory(dirname(path), { recursive: true, mode: 0o700 }).pipe(
      Effect.zipRight(fs.remove(part, { force: true })),
      Effect.zipRight(fs.writeFileString(part, lines.join(""), { mode: 0o600, flag: "wx" })),
      Effect.zipRight(fs.rename(part, path)),
      Effect.mapError(() => configuration(`Cannot write ${path}.`)),
      Effect.ensuring(Effect.ignore(fs.remove(part)))
    )
    yield* output.note(`The profile ${name} is saved in ${path}: ${origins}.`)
  })

/** In the quotes that keep the value as it is. */
const assignment = (variable: string, value: string | undefined) => {
  if (value === undefined) return Effect.succeed("")
  const line = ["'", "`", "\""].map((quote) => `${variable}=${quote}${value}${quote}\n`)
    .find((line) => parseEnv(line)[variable] === value)
  return line === undefined
    ? configuration(`${variable} has too many kinds of quotes for a file.`)
    : Effect.succeed(line)
}

export const list = Effect.flatMap(
  profiles.names,
  (names) => names.length === 0 ? output.note("No profile is saved.") : output.line(names.join("\n"))
)

export const remove = (name: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* profiles.fileOf(name, "The name")
    // A run that was killed may have left it.
    yield* Effect.ignore(fs.remove(`${path}.part`))
    yield* Effect.catchAll(
      fs.remove(path),
      (error) => profiles.isNotFound(error) ? profiles.isUnknown(name) : configuration(`Cannot remove ${path}.`)
    )
    yield* output.note(`The profile ${name} is removed.`)
  })
