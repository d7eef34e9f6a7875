/** The settings of `status` and `logout`, which are about the cache alone. */
import * as Effect from "effect/Effect"
import { configuration } from "../Fault.js"
import type * as flags from "../flags.js"
import { read } from "../settings/settings.js"
import { storeTimeout } from "./cache.js"

export const noneCached = "No valid token is cached for this service, client and secret."

/** A cache that cannot be read is a failure here, and a miss elsewhere. */
export const readWithCache = (given: flags.Values<typeof flags.common>) =>
  Effect.tap(read(given), ({ folder, store }) =>
    store.get("").pipe(
      Effect.timeoutFail({
        duration: storeTimeout,
        onTimeout: () => ({ reason: "no response in time" })
      }),
      Effect.mapError(({ reason }) =>
        configuration(`Cannot use the cache in ${folder} (${reason}).`)
      )
    ))
