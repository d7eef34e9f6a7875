/**
 * The access token as a value, with functions that check when it expires.
 *
 * @since 1.0.0
 */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { TokenExpiredError } from "./AccessTokenError.js"
import * as extra from "./internal/extra.js"
import { expiredReason } from "./internal/lifetime.js"

const optional = <A>(schema: Schema.Schema<A>) =>
  Schema.propertySignature(Schema.OptionFromSelf(schema)).pipe(
    Schema.withConstructorDefault(() => Option.none<A>())
  )

/**
 * An access token with the other fields of the response (the specification, "Token response"). Two tokens are equal
 * when all their fields are equal, and `extra` is the same object. Times are those of the wall clock.
 *
 * The constructor is public, for your own `TokenSource` and for tests. `value`, `acquiredAt` and `expiresAt` are
 * required. It throws Effect's `ParseError` when a field has the wrong type.
 *
 * @example
 * ```ts
 * import { AccessToken } from "@store-api/core"
 * import { DateTime, Redacted } from "effect"
 *
 * const acquiredAt = DateTime.unsafeMake("2026-01-01T00:00:00Z")
 * const token = new AccessToken.AccessToken({
 *   value: Redacted.make("an-invented-token"),
 *   acquiredAt,
 *   expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
 * })
 * ```
 *
 * @since 1.0.0
 * @category models
 */
export class AccessToken extends Schema.Class<AccessToken>("@store-api/core/AccessToken")({
  /**
   * The opaque token, which only `Redacted.value` reveals. From `TokenEndpoint` it has up to 16 384 visible ASCII
   * characters.
   */
  value: Schema.RedactedFromSelf(Schema.String),
  /**
   * The scheme in the header: `Bearer` (RFC 6750 §2.1), which is the default, or `DPoP` (RFC 9449 §7.1) for a token
   * that is bound to a key, whose requests need a proof as well.
   */
  tokenType: Schema.propertySignature(Schema.Literal("Bearer", "DPoP")).pipe(
    Schema.withConstructorDefault(() => "Bearer" as const)
  ),
  /** The scope that the endpoint granted, which may be less than requested (RFC 6749 §3.3). Default `""`. */
  scope: Schema.propertySignature(Schema.String).pipe(Schema.withConstructorDefault(() => "")),
  /** When its token request was sent, or shortly before. The lifetime starts here. */
  acquiredAt: Schema.DateTimeUtcFromSelf,
  /** When it expires. If it comes from `TokenEndpoint`, at most `maxLifetime` after `acquiredAt`. */
  expiresAt: Schema.DateTimeUtcFromSelf,
  /** `application_name`: the name of the client application. Default none. */
  applicationName: optional(Schema.String),
  /** `developer.email`: the address of the developer. Default none. */
  developerEmail: optional(Schema.RedactedFromSelf(Schema.String)),
  /**
   * `issued_at`: the digits of the response, unchanged, since the specification does not define their unit. Default
   * none.
   */
  issuedAt: optional(Schema.String),
  /** `client_id`: the client that the endpoint issued it to. Default none. */
  clientId: optional(Schema.String),
  /**
   * The fields of the response that have no field here, such as an `instance_url`, also if the token is shared.
   * `Redacted`, because one of them may be another token. Default none.
   */
  extra: Schema.propertySignature(Schema.declare(extra.isExtra)).pipe(
    Schema.withConstructorDefault(() => extra.none)
  )
}) {}

/**
 * Returns whether the token has expired, by the wall clock of the current `Clock` (the specification,
 * "Authentication"). Never fails. `AccessTokenProvider` also checks the monotonic clock.
 *
 * @example
 * ```ts
 * import { AccessToken } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const usable = (tokens: ReadonlyArray<AccessToken.AccessToken>) =>
 *   Effect.filter(tokens, (token) => Effect.map(AccessToken.isExpired(token), (expired) => !expired))
 * ```
 *
 * @since 1.0.0
 * @category combinators
 */
export const isExpired = (token: AccessToken): Effect.Effect<boolean> =>
  Effect.map(Clock.currentTimeMillis, (now) => expiredReason(token, now) !== undefined)

/**
 * Returns the remaining lifetime by the wall clock, which is zero for an expired token. Never fails.
 *
 * @example
 * ```ts
 * import { AccessToken } from "@store-api/core"
 * import { Duration, Effect } from "effect"
 *
 * const show = (token: AccessToken.AccessToken) =>
 *   Effect.flatMap(AccessToken.remaining(token), (left) => Effect.logInfo(`good for ${Duration.format(left)}`))
 * ```
 *
 * @since 1.0.0
 * @category combinators
 */
export const remaining = (token: AccessToken): Effect.Effect<Duration.Duration> =>
  Effect.map(
    Clock.currentTimeMillis,
    (now) =>
      expiredReason(token, now) !== undefined
        ? Duration.zero
        : Duration.millis(token.expiresAt.epochMillis - now)
  )

/**
 * Returns the token if it is valid by the wall clock. Fails with `TokenExpiredError`, `Elapsed` or `ClockMovedBack`, if
 * it has expired: get another token.
 *
 * @example
 * ```ts
 * import { AccessToken, AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const orAnother = (token: AccessToken.AccessToken) =>
 *   AccessToken.ensureValid(token).pipe(
 *     Effect.catchTag("TokenExpiredError", () =>
 *       Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get))
 *   )
 * ```
 *
 * @since 1.0.0
 * @category combinators
 */
export const ensureValid = (
  token: AccessToken
): Effect.Effect<AccessToken, TokenExpiredError> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const reason = expiredReason(token, now)
    return reason === undefined
      ? Effect.succeed(token)
      : Effect.fail(
        new TokenExpiredError({
          reason,
          expiredAt: token.expiresAt,
          checkedAt: DateTime.unsafeMake(now)
        })
      )
  })

/**
 * Returns the value of the `Authorization` header, `Bearer <token>` (RFC 6750 §2.1), for clients that are not an
 * `HttpClient`: gRPC metadata, a WebSocket, a generated client. For a token of the type DPoP it is `DPoP <token>`,
 * which an API accepts only with a proof. Does not check whether the token is valid, so pass one from
 * `AccessTokenProvider.get`.
 *
 * @example
 * ```ts
 * import { AccessToken, AccessTokenProvider } from "@store-api/core"
 * import { Effect, Redacted } from "effect"
 *
 * const metadata = Effect.gen(function*() {
 *   const provider = yield* AccessTokenProvider.AccessTokenProvider
 *   const token = yield* provider.get
 *   return { authorization: Redacted.value(AccessToken.authorization(token)) }
 * })
 * ```
 *
 * @since 1.0.0
 * @category conversions
 */
export const authorization = (token: AccessToken): Redacted.Redacted =>
  Redacted.make(`${token.tokenType} ${Redacted.value(token.value)}`)
