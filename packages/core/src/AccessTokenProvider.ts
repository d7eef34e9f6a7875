/**
 * Caches one access token, renews it before it expires, and shares one acquisition among all callers. Checks the token
 * against the wall clock and the monotonic clock before each use.
 *
 * @since 1.0.0
 */
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Context from "effect/Context"
import type * as DateTime from "effect/DateTime"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import type * as Scope from "effect/Scope"
import { type AccessToken, ensureValid } from "./AccessToken.js"
import type {
  AccessTokenError,
  ConfigurationError,
  TokenExpiredError
} from "./AccessTokenError.js"
import { expiredReason } from "./internal/lifetime.js"
import * as driver from "./internal/provider/driver.js"
import { sameValue } from "./internal/repeatedToken.js"
import { TokenSource } from "./TokenSource.js"

/**
 * The functions of the provider. Any number of fibers may call them at the same time, and be interrupted: there is at
 * most one acquisition, and interrupting a caller does not affect it.
 *
 * @see AccessTokenProvider
 *
 * @since 1.0.0
 * @category models
 */
export interface Service {
  /**
   * Returns a valid token, from the cache or newly acquired (the specification, "Authentication"). Waits only if no
   * valid token is cached, or if the cached token expires within `leeway`.
   *
   * If the cached token is still valid, it waits for at most half of the remaining lifetime, never longer than 20
   * seconds, and not at all during a cooldown. Without a valid token, it waits until the acquisition has ended. If that
   * is a renewal that has been in flight for 30 seconds, callers start another acquisition, which they share.
   * `TokenEndpoint` ends an acquisition after 30 seconds by default, and the provider ends any acquisition after 2
   * minutes. So `get` takes at most 2.5 minutes: 30 seconds for a renewal that hangs, and 2 minutes for another
   * acquisition.
   *
   * Without a valid token, fails with the error of the acquisition, but not with that of a background renewal, unless
   * the endpoint sent a `Retry-After`. During a cooldown it fails immediately, with the last error and its `retryAt`.
   * After the scope of the layer has closed, it fails with `TokenRequestError`, `Closed`.
   */
  readonly get: Effect.Effect<AccessToken, AccessTokenError>
  /**
   * Returns the cached token without sending a request. Fails with `TokenExpiredError` if it has expired. Returns none
   * if there is no token.
   */
  readonly current: Effect.Effect<Option.Option<AccessToken>, TokenExpiredError>
  /**
   * Acquires a new token, even if a valid token is cached. Joins an acquisition in flight, and ends a cooldown. Fails
   * with the error of the acquisition. If that is a renewal that has been in flight for 30 seconds, it starts another
   * acquisition instead.
   */
  readonly refresh: Effect.Effect<AccessToken, AccessTokenError>
  /**
   * Removes a token that an API rejected, if it is still the cached one (compared by value). Sends no request. The next
   * acquisition also removes it from a shared store. Five rejections may take effect at once, and one more per minute.
   * Any further rejection has no effect, and `get` returns the token again. An API that rejects every token can cause
   * at most 15 extra acquisitions in 10 minutes, not counting those that fail.
   */
  readonly invalidate: (token: AccessToken) => Effect.Effect<void>
  /** Returns the current status, for a health check or a dashboard. Contains no secret, and sends no request. */
  readonly status: Effect.Effect<ProviderStatus>
}

/**
 * The status of a provider. It contains no secret.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const isHealthy = ({ state }: AccessTokenProvider.ProviderStatus) => state !== "Closed"
 *
 * const health = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.status).pipe(
 *   Effect.map(isHealthy)
 * )
 * ```
 *
 * @since 1.0.0
 * @category models
 */
export interface ProviderStatus {
  /**
   * The state of the cached token: `Fresh`, `RefreshSoon` (less than `refreshAhead` left), `MustWait` (less than
   * `leeway` left) or `Expired`. `Empty` without a token, and `Closed` after the scope of the layer has closed.
   */
  readonly state: "Empty" | "Fresh" | "RefreshSoon" | "MustWait" | "Expired" | "Closed"
  /** When the cached token expires, by the wall clock. None without a token. */
  readonly expiresAt: Option.Option<DateTime.Utc>
  /** Whether an acquisition is in flight. */
  readonly acquiring: boolean
  /** The end of the cooldown after a failure, and the tag of that failure. None without a cooldown. */
  readonly cooldown: Option.Option<
    { readonly until: DateTime.Utc; readonly error: AccessTokenError["_tag"] }
  >
}

/**
 * The tag of the provider. Use it to read the token. To call the store's APIs, use `AuthorizedHttpClient`, which adds
 * the token automatically.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const expiry = Effect.gen(function*() {
 *   const provider = yield* AccessTokenProvider.AccessTokenProvider
 *   const token = yield* provider.get
 *   return token.expiresAt
 * })
 * ```
 *
 * @since 1.0.0
 * @category tags
 */
export class AccessTokenProvider
  extends Context.Tag("@store-api/core/AccessTokenProvider")<AccessTokenProvider, Service>()
{}

/**
 * How early a token is renewed, and how long the cooldown after a failure is. Each option has a default, and a duration
 * outside its limits is clamped.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /**
   * A background renewal starts when less than this is left of the token. Default 5 minutes, at most 25 % of the
   * lifetime. The provider uses a random 80 % to 100 % of it for each token, so that many processes do not renew at the
   * same time.
   */
  readonly refreshAhead?: Duration.DurationInput | undefined
  /** Callers wait for the renewal when less than this is left. Default 30 seconds, at most 5 % of the lifetime. */
  readonly leeway?: Duration.DurationInput | undefined
  /** The time after a failed acquisition in which `get` sends no request. Each is multiplied by a random 0.75 to 1. */
  readonly cooldown?: {
    /**
     * The first cooldown, which doubles with each further failure. Default 1 second, at least 100 milliseconds, at most
     * `max`.
     */
    readonly base?: Duration.DurationInput | undefined
    /**
     * The longest cooldown. Default 60 seconds, at least 100 milliseconds, at most 1 hour. While no valid token is
     * cached it is 5 seconds, unless `base` is longer, the endpoint or a proxy refused the credentials, or the endpoint
     * limits the rate.
     */
    readonly max?: Duration.DurationInput | undefined
  } | undefined
}

/**
 * Creates a provider over the `TokenSource` in the context. It sends no request before the first call, keeps the token
 * only in memory, and runs no timer while no caller waits. After the scope has closed, it fails with
 * `TokenRequestError`, `Closed`. Fails with `ConfigurationError` if an option is not a duration from zero.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const expiry = Effect.scoped(Effect.gen(function*() {
 *   const provider = yield* AccessTokenProvider.make({ leeway: "10 seconds" })
 *   const token = yield* provider.get
 *   return token.expiresAt
 * }))
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  options: Options = {}
): Effect.Effect<Service, ConfigurationError, TokenSource | Scope.Scope> =>
  Effect.flatMap(TokenSource, (source) => driver.make(source, options))

/**
 * Provides the provider over the `TokenSource` in the context. Bind the result to a constant: each call of `layer`
 * creates another cache with its own token. Fails with `ConfigurationError` like `make`.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 *
 * const ProviderLive = AccessTokenProvider.layer({ refreshAhead: "2 minutes" })
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (
  options: Options = {}
): Layer.Layer<AccessTokenProvider, ConfigurationError, TokenSource> =>
  Layer.scoped(AccessTokenProvider, make(options))

/**
 * Like `layer`, with options from the configuration: one `Config` for all options, or one for each. Fails with Effect's
 * `ConfigError` when a variable is missing or unreadable.
 *
 * Each option is a `Config`: pass plain values to `layer`, or wrap them with `Config.succeed`.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Config } from "effect"
 *
 * const ProviderLive = AccessTokenProvider.layerConfig({
 *   refreshAhead: Config.duration("STORE_API_REFRESH_AHEAD").pipe(Config.withDefault("5 minutes"))
 * })
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerConfig = (
  config: Config.Config.Wrap<Options>
): Layer.Layer<
  AccessTokenProvider,
  ConfigurationError | ConfigError.ConfigError,
  TokenSource
> => Layer.unwrapEffect(Effect.map(Config.unwrap(config), layer))

/**
 * Provides a provider for tests with a fixed token, or with an effect that runs at each `get` and `refresh`. It uses no
 * source and stores only the last token, for `current`, `invalidate` and `status`.
 *
 * @example
 * ```ts
 * import { AccessToken, AccessTokenProvider } from "@store-api/core"
 * import { DateTime, Effect, Redacted } from "effect"
 *
 * const ProviderTest = AccessTokenProvider.layerTest(
 *   Effect.map(DateTime.now, (acquiredAt) =>
 *     new AccessToken.AccessToken({
 *       value: Redacted.make("an-invented-token"),
 *       acquiredAt,
 *       expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
 *     }))
 * )
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerTest = (
  token: AccessToken | Effect.Effect<AccessToken, AccessTokenError>
): Layer.Layer<AccessTokenProvider> =>
  Layer.effect(
    AccessTokenProvider,
    Effect.map(
      Ref.make(Effect.isEffect(token) ? Option.none<AccessToken>() : Option.some(token)),
      (last) => {
        const acquire = Effect.tap(
          Effect.isEffect(token) ? token : Effect.succeed(token),
          (token) => Ref.set(last, Option.some(token))
        )
        return AccessTokenProvider.of({
          get: acquire,
          refresh: acquire,
          current: Effect.flatMap(Ref.get(last), Effect.transposeMapOption(ensureValid)),
          invalidate: (token) =>
            Ref.update(last, Option.filter((last) => !sameValue(last, token))),
          status: Effect.map(
            Effect.all([Ref.get(last), Clock.currentTimeMillis]),
            ([last, now]) => ({
              state: Option.match(last, {
                onNone: () => "Empty",
                onSome: (token) =>
                  expiredReason(token, now) !== undefined ? "Expired" : "Fresh"
              }),
              expiresAt: Option.map(last, ({ expiresAt }) => expiresAt),
              acquiring: false,
              cooldown: Option.none()
            })
          )
        })
      }
    )
  )
