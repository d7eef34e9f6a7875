/** Shows, lists and removes saved profiles. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import { configurationError } from "../../CommandError.js"
import { isNotFound } from "../../files.js"
import * as output from "../../output.js"
import * as profiles from "../../settings/profiles.js"
import { sources } from "../../settings/sources.js"

export const show = (name = profiles.defaultProfile) =>
  Effect.gen(function*() {
    const { path, values } = yield* profiles.readProfile(name, "The name")
    yield* output.line(`profile  ${name}\nfile     ${path}`)
    for (const [variable, value = ""] of Object.entries(values)) {
      const isSecret = variable === sources.clientSecret.variable
      yield* output.line(`${variable}=${isSecret ? "(not shown)" : value}`)
    }
  })

export const list = Effect.flatMap(
  profiles.profileNames,
  (names) =>
    names.length === 0 ? output.note("No profile is saved.") : output.line(names.join("\n"))
)

export const remove = (name: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* profiles.fileOf(name, "The name")
    // A run that was killed may have left this file.
    yield* Effect.ignore(fs.remove(`${path}.part`))
    yield* Effect.catchAll(
      fs.remove(path),
      (error) =>
        isNotFound(error)
          ? profiles.failUnknown(name)
          : configurationError(`Cannot remove ${path}.`)
    )
    yield* output.note(`The profile ${name} is removed.`)
  })
