/** The settings of `status` and `logout`, which are about the cache alone. */
import * as Effect from "effect/Effect"
import { configurationError } from "../CommandError.js"
import type * as flags from "../flags.js"
import { readForToken, type Settings } from "../settings/settings.js"
import { storeTimeout } from "./cache.js"

/** Says why there is no token in the cache. */
export const describeMiss = ({ assertionPath }: Pick<Settings, "assertionPath">): string =>
  assertionPath === undefined
    ? "No valid token is cached for this service, client and secret."
    : "Tokens of a client with an assertion are not cached."

/** A cache that cannot be read is a failure here, and a miss elsewhere. */
export const readWithCache = (flagValues: flags.Values<typeof flags.commonFlags>) =>
  Effect.tap(readForToken(flagValues), ({ folder, store }) =>
    store.get("").pipe(
      Effect.timeoutFail({
        duration: storeTimeout,
        onTimeout: () => ({ reason: "no response in time" })
      }),
      Effect.mapError(({ reason }) =>
        configurationError(`Cannot use the cache in ${folder} (${reason}).`)
      )
    ))
