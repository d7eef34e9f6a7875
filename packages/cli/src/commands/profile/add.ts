/** `store-api profile add`: saves the settings under a name. */
import { dirname, resolve } from "node:path"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { CommandError, usageError } from "../../CommandError.js"
import { assignment, write } from "../../files.js"
import type { Values } from "../../flags.js"
import { Host } from "../../Host.js"
import * as output from "../../output.js"
import { checkFolder, defaultProfile, fileOf } from "../../settings/profiles.js"
import { readForProfile } from "../../settings/settings.js"
import { sources } from "../../settings/sources.js"
import { acquireToken } from "../../token/provider.js"
import { checkSettings } from "../check/responses.js"
import type { addFlags } from "./flags.js"

export const add = (flagValues: Values<typeof addFlags>, name = defaultProfile) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const { pathOf } = yield* Host
    const path = yield* fileOf(name, "The name")
    if (!flagValues.force && (yield* Effect.orElseSucceed(fs.exists(path), () => false))) {
      return yield* usageError(`The profile ${name} exists. Use --force to replace it.`)
    }
    const settings = yield* Effect.tap(readForProfile(flagValues), checkSettings)
    const { apiUrl, assertionPath, authUrl, cacheDir, client, origins } = settings
    const values = {
      authUrl,
      apiUrl,
      clientId: client.clientId,
      clientSecret: assertionPath === undefined
        ? Redacted.value(client.clientSecret)
        : undefined,
      assertionFile: assertionPath && resolve(assertionPath),
      // The profile is used in other folders too.
      cacheDir: cacheDir && resolve(pathOf(cacheDir.value))
    }
    const lines = yield* Effect.forEach(
      Object.entries(values),
      ([option, value]) => assignment(sources[option as keyof typeof values].variable, value)
    )
    if (!flagValues["no-verify"]) {
      // The token is cached for the next command.
      yield* Effect.mapError(
        acquireToken(settings, { "force-refresh": true, "no-cache": false }),
        ({ code, message }) =>
          new CommandError({
            code,
            message: `${message} Nothing is saved, unless you add --no-verify.`
          })
      )
    }
    yield* Effect.ignore(fs.makeDirectory(dirname(path), { recursive: true, mode: 0o700 }))
    yield* checkFolder
    yield* write(path, lines.join(""))
    const verification = flagValues["no-verify"] ? "" : " The service issued a token."
    const ofFolder = cacheDir === undefined ? "" : `; ${cacheDir.name} from ${cacheDir.origin}`
    yield* output.note(
      `The profile ${name} is saved in ${path}: ${origins}${ofFolder}.${verification}`
    )
  })
