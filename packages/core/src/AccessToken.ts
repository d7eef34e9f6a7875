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
import * as Schema from "effect/Schema"
import { TokenExpiredError } from "./AccessTokenError.js"

const optional = <A>(schema: Schema.Schema<A>) =>
  Schema.propertySignature(Schema.OptionFromSelf(schema)).pipe(Schema.withConstructorDefault(() => Option.none<A>()))

/**
 * An access token and what the endpoint told about it. Two tokens are equal when all their fields are.
 *
 * - `value`: the opaque token; only `Redacted.value` shows it, encoding does not.
 * - `tokenType`: always `Bearer`, the literal that goes into the header.
 * - `scope`: may be empty. Default `""`.
 * - `acquiredAt`: the wall clock before the token request was sent; its life counts from here.
 * - `expiresAt`: the end of its life, at most 60 minutes later when it came from the token endpoint.
 * - `applicationName`, `developerEmail`, `issuedAt` (the digits as sent), `clientId`: what the endpoint told, if it did.
 *
 * The constructor is public, for sources of your own and for tests.
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
  value: Schema.RedactedFromSelf(Schema.String),
  tokenType: Schema.propertySignature(Schema.Literal("Bearer")).pipe(
    Schema.withConstructorDefault(() => "Bearer" as const)
  ),
  scope: Schema.propertySignature(Schema.String).pipe(Schema.withConstructorDefault(() => "")),
  acquiredAt: Schema.DateTimeUtcFromSelf,
  expiresAt: Schema.DateTimeUtcFromSelf,
  applicationName: optional(Schema.String),
  developerEmail: optional(Schema.RedactedFromSelf(Schema.String)),
  issuedAt: optional(Schema.String),
  clientId: optional(Schema.String)
}) {}

/**
 * How far the wall clock may stand before `acquiredAt` until the age of the token counts as unknown. In milliseconds.
 *
 * @since 0.1.0
 * @category constants
 */
export const clockTolerance = 1000

/**
 * Why a token is past its life at a moment of the wall clock (milliseconds since the epoch), if it is.
 *
 * @since 0.1.0
 * @category combinators
 */
export const expiredReason = (token: AccessToken, now: number): Option.Option<"Elapsed" | "ClockMovedBack"> =>
  now >= token.expiresAt.epochMillis
    ? Option.some("Elapsed")
    : now < token.acquiredAt.epochMillis - clockTolerance
    ? Option.some("ClockMovedBack")
    : Option.none()

/**
 * Tells whether the token is past its life by the wall clock. `AccessTokenProvider` checks the monotonic clock too.
 *
 * @since 0.1.0
 * @category combinators
 */
export const isExpired = (token: AccessToken): Effect.Effect<boolean> =>
  Effect.map(Clock.currentTimeMillis, (now) => Option.isSome(expiredReason(token, now)))

/**
 * What is left of the token's life by the wall clock; zero when it is past it.
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
 * The token itself while it lives by the wall clock, else `TokenExpiredError`.
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
