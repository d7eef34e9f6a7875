/** The token that is cached between runs. */
import type { AccessToken } from "@store-api/core/AccessToken"
import { TokenRequestError } from "@store-api/core/AccessTokenError"
import * as SharedTokenSource from "@store-api/core/SharedTokenSource"
import * as TokenSource from "@store-api/core/TokenSource"
import { type Service as Store, TokenStore } from "@store-api/core/TokenStore"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import type { Settings } from "../settings/settings.js"

/** The time limit of one operation on the cache, whose folder may be on a network. */
export const storeTimeout = "5 seconds"

/** What a cached token is for. The folder belongs to one user. */
const purposeOf = ({ authUrl, credentials }: Settings) =>
  Effect.map(credentials, ({ clientId, clientSecret }): TokenSource.Purpose => ({
    name: [authUrl, clientId],
    secret: clientSecret,
    maxLifetime: "60 minutes"
  }))

/** A source that shares the tokens of another one with other runs. */
export const share = (
  settings: Settings,
  acquire: TokenSource.Service["acquire"],
  store: Store
) =>
  SharedTokenSource.make({ storeTimeout }).pipe(
    Effect.provideService(TokenStore, store),
    Effect.provideService(
      TokenSource.TokenSource,
      TokenSource.make(acquire, purposeOf(settings))
    ),
    Effect.mapBoth({
      onFailure: settings.explain,
      onSuccess: (source) => (acquisition: TokenSource.Acquisition) =>
        Effect.annotateLogs(source.acquire(acquisition), "folder", settings.folder)
    })
  )

/** A placeholder that callers never see. */
const noToken = new TokenRequestError({ reason: "Closed", attempts: 0 })

/** The token that the next run would use. Nothing is sent or written. */
export const readCached = (settings: Settings) => acquireFrom(settings, TokenSource.missing)

/** Removes this token from the cache, unless another run has replaced it. */
export const forget = (settings: Settings, token: AccessToken) =>
  acquireFrom(settings, { reason: "Rejected", replacing: Option.some(token) })

/** Reads the cache through a shared source that cannot acquire, and removes the token that is to be replaced. */
const acquireFrom = (settings: Settings, acquisition: TokenSource.Acquisition) =>
  Effect.gen(function*() {
    const acquire = yield* share(settings, () => noToken, {
      ...settings.store,
      lease: () => Effect.succeedSome({ extend: Effect.succeed(true), release: Effect.void })
    })
    // The acquisition that follows warns about an unusable cache.
    return yield* Logger.withMinimumLogLevel(
      Effect.option(acquire(acquisition)),
      LogLevel.None
    )
  })
