/** `store-api logout`, which sends nothing. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { configurationError } from "../../CommandError.js"
import type * as flags from "../../flags.js"
import * as output from "../../output.js"
import { forget, readCached } from "../../token/cache.js"
import { describeMiss, readWithCache } from "../../token/checkedCache.js"

export const logOut = (flagValues: flags.Values<typeof flags.commonFlags>) =>
  Effect.gen(function*() {
    const settings = yield* readWithCache(flagValues)
    const token = yield* readCached(settings)
    yield* Effect.transposeMapOption(token, (token) => forget(settings, token))
    if (Option.isSome(yield* readCached(settings))) {
      return yield* configurationError(
        `Cannot remove the token from ${settings.folder}. Check that you may write to it.`
      )
    }
    yield* output.note(
      Option.isSome(token) ? "The cached token is removed." : describeMiss(settings)
    )
  })
