/** Finds the client secret in a variable, a file or a pipe, or asks for it. */
import * as consumers from "node:stream/consumers"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import { configurationError, usageError } from "../CommandError.js"
import { Host, isAttended } from "../Host.js"
import { note } from "../output.js"
import { ask, checkText } from "./ask.js"
import type { FoundSetting } from "./variables.js"

/** Windows has no modes. */
const warnIfWritable = (path: string) =>
  Effect.gen(function*() {
    const { mode } = yield* (yield* FileSystem.FileSystem).stat(path)
    if (process.platform === "win32" || (mode & 0o022) === 0) return
    yield* note(`Other users may change ${path}, the file of --secret-file.`)
  }).pipe(Effect.ignore)

/**
 * The effect that reads the secret runs only once the address is known to be the user's. Returns `undefined` if no
 * source has the secret and nobody can be asked.
 */
export const locateSecret = (setting: FoundSetting | undefined) =>
  Effect.gen(function*() {
    const host = yield* Host
    if (setting === undefined) {
      const read = ask("Client secret (not shown): ", checkText, true)
      return isAttended(host)
        ? { name: "client secret", origin: "the prompt", isImplicit: false, read }
        : undefined
    }
    const { name, value } = setting
    if (name !== "--secret-file") return { ...setting, read: Effect.succeed(value) }
    const isPipe = value === "-"
    if (isPipe && host.process.stdin.isTTY === true) {
      return yield* usageError(
        "--secret-file - reads a pipe or a file. On a terminal, leave it out to be asked."
      )
    }
    const origin = isPipe ? "standard input" : value
    const text: Effect.Effect<string, unknown> = isPipe
      ? Effect.tryPromise(() => consumers.text(host.process.stdin))
      : (yield* FileSystem.FileSystem).readFileString(host.pathOf(value))
    const problem = configurationError(`Cannot read ${origin}, the file of --secret-file.`)
    const read = text.pipe(
      Effect.mapError(() => problem),
      // Editors and `echo` end a file with a line break. A variable with one fails in an application too.
      Effect.map((text) => text.replace(/\r?\n$/, "")),
      Effect.zipLeft(isPipe ? Effect.void : warnIfWritable(host.pathOf(value)))
    )
    return { ...setting, origin, read }
  })
