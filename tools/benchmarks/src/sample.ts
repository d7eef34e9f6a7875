/** Invented tokens and credentials. */
import { AccessToken } from "@store-api/core"
import { DateTime, Effect, Redacted } from "effect"

export const clientId = "invented-client"
export const clientSecret = "invented-secret"

let made = 0

/** A new token that expires in the given number of milliseconds. */
export const token = (life: number): Effect.Effect<AccessToken.AccessToken> =>
  Effect.map(DateTime.now, (acquiredAt) =>
    new AccessToken.AccessToken({
      value: Redacted.make(`invented-token-${++made}`),
      acquiredAt,
      expiresAt: DateTime.addDuration(acquiredAt, life)
    }))
