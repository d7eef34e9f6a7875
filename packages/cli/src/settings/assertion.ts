/** Finds the file of an assertion, which proves who the client is without a secret. */
import * as Effect from "effect/Effect"
import { configurationError } from "../CommandError.js"
import { Host } from "../Host.js"
import type { FoundSetting } from "./variables.js"

/** Its file may be replaced at any time, so each token request reads it again. */
export const locateAssertion = (file: FoundSetting, secret: FoundSetting | undefined) =>
  Effect.gen(function*() {
    const { pathOf } = yield* Host
    if (secret !== undefined) {
      return yield* configurationError(
        `${file.name} and ${secret.name} are both set: use only one of them.`
      )
    }
    if (file.value === "") {
      return yield* configurationError(`${file.name} is empty: name a file.`)
    }
    return { ...file, path: pathOf(file.value) }
  })
