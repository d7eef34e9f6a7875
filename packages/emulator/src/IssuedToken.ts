/**
 * The tokens that the emulator has issued.
 *
 * @since 0.1.0
 */
import type * as DateTime from "effect/DateTime"
import type * as Redacted from "effect/Redacted"

/**
 * A token as the emulator remembers it. It is good while it is not revoked and the layer's clock stands before
 * `expiresAt`.
 *
 * @see Emulator.Emulator
 *
 * @since 0.1.0
 * @category models
 */
export interface IssuedToken {
  /** The token itself: 32 random bytes in base64. */
  readonly value: Redacted.Redacted
  /** The client that it was issued to. */
  readonly clientId: string
  /** When it was issued, by the clock of the layer. */
  readonly issuedAt: DateTime.Utc
  /** The end of its life: `tokenLife` later. */
  readonly expiresAt: DateTime.Utc
  /** Whether it was revoked; one that had expired before cannot be. */
  readonly revoked: boolean
}
