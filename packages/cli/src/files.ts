/** Files that only this user can read. */
import { parseEnv } from "node:util"
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type CommandError, configurationError } from "./CommandError.js"

export const isNotFound = (error: PlatformError): boolean =>
  error._tag === "SystemError" && error.reason === "NotFound"

const remove = (path: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => fs.remove(path, { force: true }))

/** Writes a file that only this user can read. It is created with its mode, and renamed when it is complete. */
export const write = (path: string, text: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const part = `${path}.part`
    const former = yield* Effect.option(fs.stat(path))
    // The rename would replace a device or a pipe by a file.
    if (Option.exists(former, ({ type }) => type !== "File")) {
      return yield* configurationError(`Cannot write ${path}: it is not a regular file.`)
    }
    yield* remove(part).pipe(
      Effect.zipRight(fs.writeFileString(part, text, { mode: 0o600, flag: "wx" })),
      Effect.zipRight(fs.rename(part, path)),
      Effect.mapError(() => configurationError(`Cannot write ${path}.`)),
      Effect.ensuring(Effect.ignore(remove(part)))
    )
  })

/** Returns a line for a file of variables. Chooses quotes that keep the value as it is. */
export const assignment = (
  variable: string,
  value: string | undefined
): Effect.Effect<string, CommandError> => {
  if (value === undefined) return Effect.succeed("")
  const line = ["'", "`", "\""].map((quote) => `${variable}=${quote}${value}${quote}\n`)
    .find((line) => parseEnv(line)[variable] === value)
  return line === undefined
    ? configurationError(`${variable} has too many kinds of quotes for a file.`)
    : Effect.succeed(line)
}
