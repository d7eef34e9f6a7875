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
 * @since 0.1.0
 * @category models
 */
export interface IssuedToken {
  readonly value: Redacted.Redacted
  readonly clientId: string
  readonly issuedAt: DateTime.Utc
  readonly expiresAt: DateTime.Utc
  readonly revoked: boolean
}
