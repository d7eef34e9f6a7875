/**
 * The interface for one uncached acquisition. `TokenEndpoint` implements it over HTTP, and `SharedTokenSource` over
 * another source and a store. Write your own for tests or for another endpoint.
 *
 * @since 1.0.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import type { AccessToken } from "./AccessToken.js"
import type { AccessTokenError, CredentialsError } from "./AccessTokenError.js"

/**
 * Why a token is acquired, and which token it replaces.
 *
 * @see missing
 *
 * @since 1.0.0
 * @category models
 */
export interface Acquisition {
  /**
   * - `Missing`: there is no token yet.
   * - `Expired`: the token has expired, by a clock of this process.
   * - `Renewal`: the token is still valid, but expires soon.
   * - `Rejected`: an API rejected the token.
   * - `Refresh`: a caller of `refresh` wants another token than the valid one.
   */
  readonly reason: "Missing" | "Expired" | "Renewal" | "Rejected" | "Refresh"
  /** The token that the new one replaces. None only if the reason is `Missing`. */
  readonly replacing: Option.Option<AccessToken>
}

/**
 * The acquisition of a process that has no token yet.
 *
 * @example
 * ```ts
 * import { TokenSource } from "@store-api/core"
 *
 * const first = (source: TokenSource.Service) => source.acquire(TokenSource.missing)
 * ```
 *
 * @since 1.0.0
 * @category constants
 */
export const missing: Acquisition = {
  reason: "Missing",
  replacing: /* @__PURE__ */ Option.none()
}

/**
 * What the tokens of a source are for. Processes share tokens only if they agree on it, and know the secret.
 *
 * @see make
 *
 * @since 1.0.0
 * @category models
 */
export interface Purpose {
  /**
   * Everything that tells these tokens from others: the URL of the endpoint, the client id, the scope. The order
   * counts. A part that is secret is `Redacted`. The store sees a hash.
   */
  readonly name: ReadonlyArray<string | Redacted.Redacted>
  /**
   * Stored tokens are encrypted with a key that is derived from it (HKDF-SHA-256, RFC 5869, and AES-256-GCM). It must
   * be hard to guess, such as a client secret.
   */
  readonly secret: Redacted.Redacted
  /** The longest lifetime of a token. It also limits the tokens that other processes have stored. */
  readonly maxLifetime: Duration.DurationInput
}

/**
 * The functions of a source. Your own source must follow the rules of `acquire`.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Service {
  /**
   * Acquires one token and caches nothing. Its `acquiredAt` is when the request began, and its `expiresAt` when the
   * token ends, both by this process's wall clock as it reads when `acquire` returns. It must end within a deadline,
   * because callers without a token wait for it.
   *
   * A source that keeps tokens, or shares them, may return one that it already has:
   * - for `Missing`, any valid token;
   * - for `Expired`, any but the expired one (compared by value), unless the endpoint has extended its lifetime;
   * - for `Renewal`, one that expires later, or the same one if the endpoint returned it again;
   * - for `Rejected` and `Refresh`, any but the one to be replaced, which it must remove.
   */
  readonly acquire: (acquisition: Acquisition) => Effect.Effect<AccessToken, AccessTokenError>
  /** Tells its tokens from others, and is read at each shared acquisition. None if they cannot be shared. */
  readonly purpose: Option.Option<Effect.Effect<Purpose, CredentialsError>>
}

/**
 * The tag of the source that `AccessTokenProvider` uses. Applications use the provider instead.
 *
 * @example
 * ```ts
 * import { TokenSource } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const uncached = Effect.flatMap(TokenSource.TokenSource, (source) => source.acquire(TokenSource.missing))
 * ```
 *
 * @since 1.0.0
 * @category tags
 */
export class TokenSource
  extends Context.Tag("@store-api/core/TokenSource")<TokenSource, Service>()
{}

/**
 * Creates a source from its function. With a purpose, its tokens can be shared through `SharedTokenSource`. Without
 * one, they cannot. To decorate another source, copy it instead, so that it keeps its purpose.
 *
 * @example
 * ```ts
 * import { AccessTokenError, TokenSource } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const unreachable = TokenSource.make(() =>
 *   new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 })
 * )
 *
 * const logged = (source: TokenSource.Service): TokenSource.Service => ({
 *   ...source,
 *   acquire: (acquisition) =>
 *     Effect.tap(source.acquire(acquisition), () => Effect.logInfo(`another token: ${acquisition.reason}`))
 * })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  acquire: Service["acquire"],
  purpose?: Effect.Effect<Purpose, CredentialsError>
): Service => TokenSource.of({ acquire, purpose: Option.fromNullable(purpose) })

/**
 * Provides your own source as a layer. For the purpose, see `make`.
 *
 * @example
 * ```ts
 * import { AccessToken, TokenSource } from "@store-api/core"
 * import { DateTime, Effect, Redacted } from "effect"
 *
 * const scripted = TokenSource.layer(
 *   () =>
 *     Effect.map(DateTime.now, (acquiredAt) =>
 *       new AccessToken.AccessToken({
 *         value: Redacted.make("an-invented-token"),
 *         acquiredAt,
 *         expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
 *       })),
 *   // Only so that processes can share it.
 *   Effect.succeed({
 *     name: ["scripted"],
 *     secret: Redacted.make("an-invented-secret"),
 *     maxLifetime: "60 minutes"
 *   })
 * )
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (
  acquire: Service["acquire"],
  purpose?: Effect.Effect<Purpose, CredentialsError>
): Layer.Layer<TokenSource> => Layer.succeed(TokenSource, make(acquire, purpose))
