/** Acquires tokens. `token` loads it only if the cached token cannot be used. */
import type { AccessToken } from "@store-api/core/AccessToken"
import * as AccessTokenProvider from "@store-api/core/AccessTokenProvider"
import * as TokenEndpoint from "@store-api/core/TokenEndpoint"
import * as TokenSource from "@store-api/core/TokenSource"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as flags from "../flags.js"
import * as output from "../output.js"
import type { Settings } from "../settings/settings.js"
import { forget } from "./cache.js"
import * as cachedSource from "./cachedSource.js"
import { layerHttp } from "./httpClient.js"
import { requestOf } from "./request.js"

type CacheFlags = flags.Values<typeof flags.cacheFlags>

/** A provider over the cached token and the endpoint, and the HTTP client of both. */
export const make = (settings: Settings, cacheFlags: CacheFlags) =>
  Effect.gen(function*() {
    const http = yield* Layer.build(layerHttp(settings))
    const endpoint = yield* TokenEndpoint.make({
      ...settings,
      request: requestOf(settings)
    }).pipe(Effect.provide(http))
    const source = cacheFlags["no-cache"] || settings.assertionPath !== undefined
      ? endpoint
      : yield* cachedSource.make(settings, endpoint, cacheFlags["force-refresh"])
    // No early renewal, because the end of the run would interrupt it.
    const provider = yield* AccessTokenProvider.make({ refreshAhead: 0 }).pipe(
      Effect.provideService(TokenSource.TokenSource, source)
    )
    const forgetCached = (token: AccessToken) =>
      cacheFlags["no-cache"] ? Effect.void : Effect.ignore(forget(settings, token))
    return {
      http,
      provider: {
        ...provider,
        get: output.whileWaiting("a token", provider.get),
        // Also removes the token from the cache, because this run may end without another one.
        invalidate: (token: AccessToken) =>
          Effect.zipRight(forgetCached(token), provider.invalidate(token))
      }
    }
  })

/** Acquires a token for a run that needs nothing else. */
export const acquireToken = (settings: Settings, cacheFlags: CacheFlags) =>
  make(settings, cacheFlags).pipe(
    Effect.flatMap(({ provider }) => provider.get),
    Effect.scoped,
    Effect.mapError((error) => error._tag === "CommandError" ? error : settings.explain(error))
  )
