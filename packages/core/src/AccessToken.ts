/**
 * The access token as a value: what is sent, when it dies, and a typed error when it has.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { TokenExpiredError } from "./AccessTokenError.js"
import { expiredReason } from "./internal/tokenPolicy.js"

const optional = <A>(schema: Schema.Schema<A>) =>
  Schema.propertySignature(Schema.OptionFromSelf(schema)).pipe(Schema.withConstructorDefault(() => Option.none<A>()))

/**
 * An access token and what the endpoint told about it (the specification, "Token response"). Two tokens are equal when all
 * their fields are. Times are the wall clock's.
 *
 * The constructor is public, for sources of your own and for tests; it throws Effect's `ParseError` when a field is of
 * another type. `value`, `acquiredAt` and `expiresAt` have to be given.
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
 * @since 0.1.0
 * @category models
 */
export class AccessToken extends Schema.Class<AccessToken>("@store-api/core/AccessToken")({
  /** The opaque token; only `Redacted.value` shows it. `TokenEndpoint` takes a `b64token` only (RFC 6750 §2.1). */
  value: Schema.RedactedFromSelf(Schema.String),
  /** What goes into the header before the token: always, and by default, `Bearer` (RFC 6750 §2.1). */
  tokenType: Schema.propertySignature(Schema.Literal("Bearer")).pipe(
    Schema.withConstructorDefault(() => "Bearer" as const)
  ),
  /** What the token may be used for, in the endpoint's words (RFC 6749 §3.3). May be empty. Default `""`. */
  scope: Schema.propertySignature(Schema.String).pipe(Schema.withConstructorDefault(() => "")),
  /** When its token request was sent, or a moment before: its life counts from here. */
  acquiredAt: Schema.DateTimeUtcFromSelf,
  /** The end of its life; at most 60 minutes after `acquiredAt` when it came from the token endpoint. */
  expiresAt: Schema.DateTimeUtcFromSelf,
  /** `application_name`: the client application's name. Default none. */
  applicationName: optional(Schema.String),
  /** `developer.email`: the developer's address. Default none. */
  developerEmail: optional(Schema.RedactedFromSelf(Schema.String)),
  /** `issued_at`: its digits as they came, since the specification does not show their time base. Default none. */
  issuedAt: optional(Schema.String),
  /** `client_id`: whom the endpoint issued it to, in its words. Default none. */
  clientId: optional(Schema.String)
}) {}

/**
 * Tells whether the token is past its life by the wall clock of the `Clock` in use (the specification, "Authentication":
 * the client checks before it uses a token). Never fails. `AccessTokenProvider` checks the monotonic clock too.
 *
 * @example
 * ```ts
 * import { AccessToken } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const usable = (tokens: ReadonlyArray<AccessToken.AccessToken>) =>
 *   Effect.filter(tokens, (token) => AccessToken.isExpired(token), { negate: true })
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const isExpired = (token: AccessToken): Effect.Effect<boolean> =>
  Effect.map(Clock.currentTimeMillis, (now) => Option.isSome(expiredReason(token, now)))

/**
 * What is left of the token's life by the wall clock; zero when it has expired. Never fails.
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
 * @since 0.1.0
 * @category combinators
 */
export const remaining = (token: AccessToken): Effect.Effect<Duration.Duration> =>
  Effect.map(
    Clock.currentTimeMillis,
    (now) =>
      Option.isSome(expiredReason(token, now)) ? Duration.zero : Duration.millis(token.expiresAt.epochMillis - now)
  )

/**
 * The token itself while it lives by the wall clock. Fails with `TokenExpiredError`, `Elapsed` or `ClockMovedBack`, when
 * it does not: get another one.
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
 * @since 0.1.0
 * @category combinators
 */
export const ensureValid = (token: AccessToken): Effect.Effect<AccessToken, TokenExpiredError> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Option.match(expiredReason(token, now), {
      onNone: () => Effect.succeed(token),
      onSome: (reason) =>
        new TokenExpiredError({ reason, expiredAt: token.expiresAt, checkedAt: DateTime.unsafeMake(now) })
    }))

/**
 * The value of the `Authorization` header, `Bearer <token>` (RFC 6750 §2.1), for clients that are not an `HttpClient`: gRPC
 * metadata, a WebSocket, a generated client. It does not check whether the token is valid: take it from
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
 * @since 0.1.0
 * @category conversions
 */
export const authorization = (token: AccessToken): Redacted.Redacted =>
  Redacted.make(`Bearer ${Redacted.value(token.value)}`)
