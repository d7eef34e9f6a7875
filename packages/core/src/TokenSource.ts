/**
 * The interface for one uncached acquisition. `TokenEndpoint` implements it over HTTP, and `SharedTokenSource` over
 * another source and a store. Write your own for tests or for another endpoint.
 *
 * @since 1.0.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type { AccessToken } from "./AccessToken.js"
import type { AccessTokenError } from "./AccessTokenError.js"

/**
 * The function of a source. Your own source must follow the rules of `acquire`.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Service {
  /**
   * Acquires a token once and caches nothing. `replacing` is the token to replace, because it expires soon or an API
   * rejected it. A source that shares tokens must not return that token (compared by value), nor one that does not
   * expire later. It must end within a deadline, because callers without a token wait for it.
   */
  readonly acquire: (replacing: Option.Option<AccessToken>) => Effect.Effect<AccessToken, AccessTokenError>
}

/**
 * The tag of the source that `AccessTokenProvider` uses. Applications use the provider instead.
 *
 * @example
 * ```ts
 * import { TokenSource } from "@store-api/core"
 * import { Effect, Option } from "effect"
 *
 * const uncached = Effect.flatMap(TokenSource.TokenSource, (source) => source.acquire(Option.none()))
 * ```
 *
 * @since 1.0.0
 * @category tags
 */
export class TokenSource extends Context.Tag("@store-api/core/TokenSource")<TokenSource, Service>() {}

/**
 * Creates a source from its function, for example to decorate another source.
 *
 * @example
 * ```ts
 * import { TokenSource } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const logged = (source: TokenSource.Service) =>
 *   TokenSource.make((replacing) => Effect.tap(source.acquire(replacing), () => Effect.logInfo("another token")))
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (acquire: Service["acquire"]): Service => TokenSource.of({ acquire })

/**
 * Provides your own source as a layer.
 *
 * @example
 * ```ts
 * import { AccessToken, TokenSource } from "@store-api/core"
 * import { DateTime, Effect, Redacted } from "effect"
 *
 * const scripted = TokenSource.layer(() =>
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
export const layer = (acquire: Service["acquire"]): Layer.Layer<TokenSource> =>
  Layer.succeed(TokenSource, make(acquire))
