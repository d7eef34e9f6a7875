/**
 * A token that the emulator has issued.
 *
 * @since 1.0.0
 */
import * as Schema from "effect/Schema"

/**
 * The schema of an issued token, with which a file can keep the tokens for another emulator.
 *
 * @example
 * ```ts
 * import { Emulator, IssuedToken } from "@store-api/emulator"
 * import { Effect, Schema } from "effect"
 *
 * const SavedTokens = Schema.parseJson(Schema.Array(IssuedToken.IssuedToken))
 *
 * const next = (saved: string) =>
 *   Effect.flatMap(Schema.decode(SavedTokens)(saved), (tokens) => Emulator.make({ tokens }))
 * ```
 *
 * @since 1.0.0
 * @category schemas
 */
export const IssuedToken = Schema.Struct({
  /** The number of the token, from 1 in the order of issue. Logs and the page show it instead of the value. */
  id: Schema.Number,
  /** 32 random bytes in base64. */
  value: Schema.Redacted(Schema.String),
  /** The id with which its client requested it. */
  clientId: Schema.String,
  /** The granted scope. It is empty if none was requested, and always with `"specification"`. */
  scope: Schema.String,
  /** The thumbprint of the key to which it is bound (RFC 7638), if it is. */
  thumbprint: Schema.optional(Schema.String),
  /** The time of issue, by the emulator's clock. */
  issuedAt: Schema.DateTimeUtc,
  /** The time of issue plus `tokenLife`. */
  expiresAt: Schema.DateTimeUtc,
  /** When it was revoked before it expired, by the emulator's clock. */
  revokedAt: Schema.OptionFromNullOr(Schema.DateTimeUtc)
})

/**
 * An issued token. The API accepts it until it is revoked or the emulator's clock reaches `expiresAt`.
 *
 * @see Emulator.Emulator
 *
 * @since 1.0.0
 * @category models
 */
export interface IssuedToken extends Schema.Schema.Type<typeof IssuedToken> {}
