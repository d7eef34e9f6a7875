/** The time after a failure in which no request is sent. Lengths are in milliseconds. */
import * as Cause from "effect/Cause"
import * as Option from "effect/Option"
import { type AccessTokenError, TokenRequestError } from "../../AccessTokenError.js"
import * as backoff from "../backoff.js"
import type { Instant } from "./instant.js"
import type { TokenPolicy } from "./tokenPolicy.js"

/** A cooldown has two lengths: while a valid token is cached, and without one. */
export interface Cooldown {
  readonly since: Instant
  readonly withToken: number
  readonly withoutToken: number
  readonly error: AccessTokenError
}

/** The longest cooldown without a valid token, so that callers soon notice the end of an outage. */
const longestWithoutToken = 5000

/**
 * The lengths of the cooldown after a failure. Without a valid token it is at most 5 seconds, or `cooldownBase` if that
 * is longer, unless the endpoint refused the request. `retryAfter` lengthens both.
 *
 * The failure of a renewal may be old, as in a process that was frozen. So it causes no cooldown without a valid token,
 * unless the endpoint sent a `Retry-After`.
 */
export const lengths = (
  { cooldownBase, cooldownMax }: TokenPolicy,
  { chance, failures, isRefusal, isRenewal, retryAfter }: {
    /** The number of failures in a row, including this one. */
    readonly failures: number
    readonly isRefusal: boolean
    readonly isRenewal: boolean
    readonly retryAfter: number
    readonly chance: number
  }
): Pick<Cooldown, "withToken" | "withoutToken"> => {
  const pause = (max: number) => backoff.pause({ base: cooldownBase, max }, failures, chance)
  const least = Math.min(Math.max(retryAfter, 0), backoff.maxRetryAfter)
  const longest = isRefusal ? cooldownMax : Math.min(cooldownMax, Math.max(cooldownBase, longestWithoutToken))
  return {
    withToken: Math.max(pause(cooldownMax), least),
    withoutToken: isRenewal ? least : Math.max(pause(longest), least)
  }
}

/**
 * Whether the endpoint, or an API at its URL, refused the credentials, or limits the rate. Another attempt soon does
 * not help.
 */
export const isRefusal = (error: AccessTokenError): boolean =>
  error._tag === "TokenRefusedError" &&
  (error.reason === "InvalidClient" || error.reason === "RateLimited" || error.status === 401)

/** The error of an acquisition that failed. A source may also interrupt itself, or fail with a defect. */
export const errorOf = (cause: Cause.Cause<AccessTokenError>): AccessTokenError => {
  const code = Cause.isInterruptedOnly(cause) ? "SOURCE_INTERRUPTED" : "SOURCE_DEFECT"
  return Option.getOrElse(
    Cause.failureOption(cause),
    () => new TokenRequestError({ reason: "Transport", attempts: 0, code: Option.some(code) })
  )
}
