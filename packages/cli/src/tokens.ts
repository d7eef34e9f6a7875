/** Tokens that are cached between runs. */
import type { AccessToken } from "@store-api/core/AccessToken"
import { TokenRequestError } from "@store-api/core/AccessTokenError"
import * as SharedTokenSource from "@store-api/core/SharedTokenSource"
import * as TokenSource from "@store-api/core/TokenSource"
import { TokenStore } from "@store-api/core/TokenStore"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import type { Settings } from "./settings.js"

/** The time limit of one operation on the cache, whose folder may be on a network. */
export const storeTimeout = "5 seconds"

/** A source that shares tokens with other runs. */
export const shared = ({ authUrl, credentials, explain, folder }: Settings) =>
  SharedTokenSource.make({ authUrl, credentials, storeTimeout }).pipe(
    Effect.mapBoth({
      onFailure: explain,
      onSuccess: ({ acquire }) =>
        TokenSource.make((replacing) => Effect.annotateLogs(acquire(replacing), "folder", folder))
    })
  )

/** A placeholder that callers never see. */
const noToken = new TokenRequestError({ reason: "Closed", attempts: 0 })

/** The token that the next run would use. Nothing is sent or written. */
export const cached = (settings: Settings) => readCached(settings, Option.none())

/** Removes this token from the cache, unless another run has replaced it. */
export const forget = (settings: Settings, token: AccessToken) => readCached(settings, Option.some(token))

/** Reads the cache through a shared source that cannot acquire, and removes the token that is to be replaced. */
const readCached = (settings: Settings, replacing: Option.Option<AccessToken>) =>
  Effect.gen(function*() {
    const { acquire } = yield* shared(settings).pipe(
      Effect.provideService(TokenStore, {
        ...settings.store,
        lease: () => Effect.succeedSome({ extend: Effect.succeed(true), release: Effect.void })
      }),
      Effect.provideService(TokenSource.TokenSource, TokenSource.make(() => noToken))
    )
    // The acquisition that follows warns about an unusable cache.
    return yield* Logger.withMinimumLogLevel(Effect.option(acquire(replacing)), LogLevel.None)
  })
