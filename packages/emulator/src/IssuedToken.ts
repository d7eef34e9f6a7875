/**
 * A token that the emulator has issued.
 *
 * @since 1.0.0
 */
import type * as DateTime from "effect/DateTime"
import type * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"

/**
 * An issued token. The API accepts it until it is revoked or the emulator's clock reaches `expiresAt`.
 *
 * @see Emulator.Emulator
 *
 * @since 1.0.0
 * @category models
 */
export interface IssuedToken {
  /** The number of the token, from 1 in the order of issue. Logs and the page show it instead of the value. */
  readonly id: number
  /** 32 random bytes in base64. */
  readonly value: Redacted.Redacted
  /** The id with which its client requested it. */
  readonly clientId: string
  /** The granted scope. It is empty if none was requested, and always with `"specification"`. */
  readonly scope: string
  /** The time of issue, by the emulator's clock. */
  readonly issuedAt: DateTime.Utc
  /** The time of issue plus `tokenLife`. */
  readonly expiresAt: DateTime.Utc
  /** When it was revoked before it expired, by the emulator's clock. */
  readonly revokedAt: Option.Option<DateTime.Utc>
}
