/** Tokens that are cached between runs. */
import type { AccessToken } from "@store-api/core/AccessToken"
import { TokenRequestError } from "@store-api/core/AccessTokenError"
import * as SharedTokenSource from "@store-api/core/SharedTokenSource"
import * as TokenSource from "@store-api/core/TokenSource"
import { type Service as Store, TokenStore } from "@store-api/core/TokenStore"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import type { Fault } from "./Fault.js"
import type { Settings } from "./settings.js"

/** A source that shares tokens with other runs. A slow home folder does not cause a request. */
export const shared = ({ authUrl, credentials, explain }: Settings) =>
  Effect.mapError(
    SharedTokenSource.make({ authUrl, credentials: Effect.succeed(credentials), storeTimeout: "5 seconds" }),
    explain
  )

export const withStore = <A, E, R>({ cacheDir }: Settings, effect: Effect.Effect<A, E, R | TokenStore>) =>
  Effect.provide(effect, FileTokenStore.layer({ folder: cacheDir }))

/** The token that the next run would use. Nothing is sent or written. */
export const cached = (settings: Settings) => readCached(settings, (store, key) => store.get(key))

/** Removes the cached token, and returns it. */
export const forget = (settings: Settings) =>
  readCached(
    settings,
    (store, key) =>
      Effect.tap(store.get(key), (entry) => Effect.transposeMapOption(entry, (entry) => store.remove(key, entry)))
  )

/** The cached token, by a shared source that cannot acquire and writes nothing. */
const readCached = (
  settings: Settings,
  get: (store: Store, key: string) => ReturnType<Store["get"]>
): Effect.Effect<Option.Option<AccessToken>, Fault> =>
  withStore(
    settings,
    Effect.gen(function*() {
      const store = yield* TokenStore
      const { acquire } = yield* shared(settings).pipe(
        Effect.provideService(TokenStore, {
          get: (key) => get(store, key),
          put: () => Effect.void,
          remove: () => Effect.succeed(false),
          lease: () => Effect.succeedSome({ extend: Effect.succeed(true), release: Effect.void })
        }),
        Effect.provideService(
          TokenSource.TokenSource,
          TokenSource.make(() => Effect.fail(new TokenRequestError({ reason: "Closed", attempts: 0 })))
        )
      )
      // The acquisition warns about an unusable cache.
      return yield* Logger.withMinimumLogLevel(Effect.option(acquire(Option.none())), LogLevel.None)
    })
  )
