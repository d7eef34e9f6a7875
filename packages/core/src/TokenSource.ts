/**
 * The port: one uncached acquisition. `TokenEndpoint` implements it over HTTP; a shared store or a script for tests
 * decorates or replaces it, and nothing above changes.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type { AccessToken } from "./AccessToken.js"
import type { AccessTokenError } from "./AccessTokenError.js"

/**
 * What a source does. Who writes one has to keep the rules of `acquire`.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface Service {
  /**
   * Gets a token, once, with nothing remembered. `replacing` is the token that the caller no longer wants: it is ageing, or
   * an API rejected it. A source that shares tokens must not answer with that token (compared by value), nor with one that
   * dies no later. It must end by itself, as `TokenEndpoint` does within its deadline: who has no token waits for it.
   */
  readonly acquire: (replacing: Option.Option<AccessToken>) => Effect.Effect<AccessToken, AccessTokenError>
}

/**
 * The source as a service: what `AccessTokenProvider` asks. Applications rather ask the provider.
 *
 * @example
 * ```ts
 * import { TokenSource } from "@store-api/core"
 * import { Effect, Option } from "effect"
 *
 * const uncached = Effect.flatMap(TokenSource.TokenSource, (source) => source.acquire(Option.none()))
 * ```
 *
 * @since 0.1.0
 * @category tags
 */
export class TokenSource extends Context.Tag("@store-api/core/TokenSource")<TokenSource, Service>() {}

/**
 * A source from its one function. It can decorate another source.
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
 * @since 0.1.0
 * @category constructors
 */
export const make = (acquire: Service["acquire"]): Service => TokenSource.of({ acquire })

/**
 * A source of your own as a layer.
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
 * @since 0.1.0
 * @category layers
 */
export const layer = (acquire: Service["acquire"]): Layer.Layer<TokenSource> =>
  Layer.succeed(TokenSource, make(acquire))
