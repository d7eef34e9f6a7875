/** A source of the cached token, or of a new one that is then cached. */
import { remaining } from "@store-api/core/AccessToken"
import * as TokenSource from "@store-api/core/TokenSource"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Settings } from "../settings/settings.js"
import { readCached, share } from "./cache.js"

/** `force`: acquires a new token, whatever is cached. */
export const make = (settings: Settings, endpoint: TokenSource.Service, force: boolean) =>
  Effect.gen(function*() {
    const acquire = yield* share(settings, endpoint.acquire, {
      ...settings.store,
      // A token stays until its replacement is stored, because other runs may have no other meanwhile.
      remove: () => Effect.succeed(true)
    })
    return TokenSource.make((acquisition) =>
      Effect.gen(function*() {
        const cachedToken = Option.flatten(yield* Effect.option(readCached(settings)))
        if (Option.isNone(cachedToken)) return yield* acquire(TokenSource.missing)
        if (force) return yield* acquire({ reason: "Refresh", replacing: cachedToken })
        if (Option.isSome(acquisition.replacing)) return yield* acquire(acquisition)
        // A new token, if this one expires soon. As in the provider, it may take half of the remaining lifetime.
        const longestWait = Duration.times(yield* remaining(cachedToken.value), 0.5)
        const inTime = Effect.timeout(acquire(acquisition), longestWait)
        return yield* Effect.orElse(inTime, () => Effect.succeed(cachedToken.value))
      })
    )
  })
