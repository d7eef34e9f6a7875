/** When a token expires, in the names of the JSON that commands print. */
import type { AccessToken } from "@store-api/core/AccessToken"
import * as DateTime from "effect/DateTime"

export const formatExpiry = ({ expiresAt }: AccessToken, now: number) => ({
  expires_at: DateTime.formatIso(expiresAt),
  expires_in: Math.max(0, Math.floor((expiresAt.epochMillis - now) / 1000))
})
