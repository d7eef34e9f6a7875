import type { AccessTokenError } from "../AccessTokenError.js"

/** The time until `retryAt`, in milliseconds. Zero without one. */
export const untilRetry = ({ retryAt }: AccessTokenError, now: number): number =>
  retryAt === undefined ? 0 : retryAt.epochMillis - now

/** The limit of a `Retry-After`, in milliseconds (RFC 9110 §10.2.3). */
export const maxRetryAfter = 60 * 60_000

/**
 * The pause after a number of failures in a row, in whole milliseconds: `base`, which doubles with each failure up to
 * `max`, times 75 % to 100 % by `chance`, a random number from 0 (inclusive) to 1 (exclusive).
 */
export const pause = (
  { base, max }: { readonly base: number; readonly max: number },
  failures: number,
  chance: number
): number =>
  Math.ceil(Math.min(base * 2 ** (failures - 1), max) * (0.75 + 0.25 * chance))
