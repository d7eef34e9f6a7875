/** Tokens that are kept between runs. */
import type { AccessToken } from "@store-api/core/AccessToken"
import { type AccessTokenError, type ConfigurationError, TokenRequestError } from "@store-api/core/AccessTokenError"
import * as SharedTokenSource from "@store-api/core/SharedTokenSource"
import * as TokenSource from "@store-api/core/TokenSource"
import { TokenStore } from "@store-api/core/TokenStore"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { type Fault, fromLibrary } from "./Fault.js"
import type { Settings } from "./settings.js"

/** The endpoint; its HTTP client is loaded when it is asked. */
const endpoint = (settings: Settings): TokenSource.Service =>
  TokenSource.make((replacing) =>
    Effect.flatMap(Effect.promise(() => import("./endpoint.js")), ({ acquire }) => acquire(settings, replacing)).pipe(
      // A source has no such error. It is caught again by `orFault`.
      Effect.catchTag("ConfigurationError", (error) => Effect.die(error))
    )
  )

/** A source that shares tokens with other runs. */
export const shared = ({ authUrl, credentials }: Settings, maxWait?: number) =>
  // A home folder may be far away, and a machine that starts many runs at once is slow: nobody else is kept waiting.
  SharedTokenSource.make({ authUrl, credentials: Effect.succeed(credentials), storeTimeout: "5 seconds", maxWait })

/** The source of a run: the endpoint behind the tokens of earlier runs, or the endpoint alone. */
export const source = (
  settings: Settings,
  stored: boolean
): Effect.Effect<TokenSource.Service, ConfigurationError> =>
  stored
    ? shared(settings).pipe(
      Effect.provideService(TokenSource.TokenSource, endpoint(settings)),
      Effect.provide(keepingStore(settings))
    )
    : Effect.succeed(endpoint(settings))

/**
 * A token that is to be replaced stays until another comes, and is no answer for the run that replaces it. If none comes, the
 * next run still has what is left of it.
 */
const keepingStore = ({ folder }: Settings): Layer.Layer<TokenStore> =>
  Layer.effect(
    TokenStore,
    Effect.map(TokenStore, (store) => ({ ...store, remove: () => Effect.succeed(true) }))
  ).pipe(Layer.provide(storeIn(folder)))

const storeIn = (folder: Settings["folder"]) => FileTokenStore.layer({ folder: Option.getOrUndefined(folder) })

/** Takes a token that an API rejected out of the store, and asks for no other. What cannot be taken out stays. */
export const forget = (settings: Settings, token: AccessToken): Effect.Effect<void> =>
  shared(settings, 0).pipe(
    Effect.flatMap(({ acquire }) => acquire(Option.some(token))),
    Effect.provideService(TokenSource.TokenSource, nobody),
    Effect.provide(storeIn(settings.folder)),
    Effect.ignore
  )

const nobody = TokenSource.make(() => Effect.fail(new TokenRequestError({ reason: "Closed", attempts: 0 })))

/** A token that lives long enough to be used; a new one if it is to be `refreshed`. */
export const get = (
  settings: Settings,
  { refreshed, stored }: { readonly refreshed: boolean; readonly stored: boolean }
): Effect.Effect<AccessToken, Fault> =>
  orFault(Effect.flatMap(source(settings, stored), ({ acquire }) => refreshed ? renewed(acquire) : lasting(acquire)))

/** The source of a run in which a provider asks: what it finds at first lasts, as with `get`. */
export const lastingSource = (
  settings: Settings,
  stored: boolean
): Effect.Effect<TokenSource.Service, ConfigurationError> =>
  Effect.map(
    source(settings, stored),
    ({ acquire }) => TokenSource.make((replacing) => Option.isNone(replacing) ? lasting(acquire) : acquire(replacing))
  )

type Acquire = TokenSource.Service["acquire"]

/** The token that is stored, and whether it is new: of this run, or of another that began no earlier. */
const found = (acquire: Acquire) =>
  Effect.gen(function*() {
    const startedAt = yield* Clock.currentTimeMillis
    const token = yield* acquire(Option.none())
    return { token, isNew: token.acquiredAt.epochMillis >= startedAt }
  })

const renewed = (acquire: Acquire) =>
  Effect.flatMap(found(acquire), ({ isNew, token }) => isNew ? Effect.succeed(token) : acquire(Option.some(token)))

/** As the provider has it: an old token is waited for, at most half of what is left of it; then, or if that fails, it serves. */
const lasting = (acquire: Acquire) =>
  Effect.gen(function*() {
    const { isNew, token } = yield* found(acquire)
    const { isOld, left } = yield* ageOf(token)
    if (isNew || !isOld) return token
    return yield* acquire(Option.some(token)).pipe(
      Effect.timeoutTo({ duration: left / 2, onSuccess: (other) => other, onTimeout: () => token }),
      Effect.catchAll((error) =>
        Effect.flatMap(ageOf(token), ({ left }) => left > 0 ? Effect.succeed(token) : Effect.fail(error))
      )
    )
  })

/** A token is old when less than the default `leeway` of the provider is left. In milliseconds. */
const ageOf = (token: AccessToken) => {
  const life = token.expiresAt.epochMillis - token.acquiredAt.epochMillis
  const leeway = Math.min(30_000, life * 0.05)
  return Effect.map(Clock.currentTimeMillis, (now) => {
    const left = token.expiresAt.epochMillis - now
    return { left, isOld: left < leeway }
  })
}

const isConfigurationError = (defect: unknown): defect is ConfigurationError =>
  Predicate.isTagged(defect, "ConfigurationError")

export const withConfigurationError = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | ConfigurationError, R> =>
  Effect.catchSomeDefect(
    effect,
    (defect) => isConfigurationError(defect) ? Option.some(Effect.fail(defect)) : Option.none()
  )

export const orFault = <A, R>(
  effect: Effect.Effect<A, AccessTokenError | ConfigurationError, R>
): Effect.Effect<A, Fault, R> => Effect.mapError(withConfigurationError(effect), fromLibrary)
