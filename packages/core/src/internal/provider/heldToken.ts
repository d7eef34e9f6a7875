/** A cached token, and its expiry by both clocks. */
import * as DateTime from "effect/DateTime"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import type { AccessToken } from "../../AccessToken.js"
import { TokenExpiredError } from "../../AccessTokenError.js"
import * as lifetime from "../lifetime.js"
import { expiresLater, isRepeated, lifeOfRepeated, sameValue, withKnownExpiry } from "../repeatedToken.js"
import * as tokenPolicy from "./tokenPolicy.js"

/** Both clocks in milliseconds: the wall clock since the epoch, the monotonic clock since an arbitrary time. */
export interface Instant {
  readonly wall: number
  readonly monotonic: number
}

/** The times between which `get` returns the token at once, and the result, which is created in advance. */
export interface FreshWindow {
  readonly from: number
  readonly until: number
  readonly untilNanos: bigint
  readonly result: Exit.Exit<AccessToken>
}

/** A token, and when it expires by the monotonic clock. */
export interface Held {
  readonly token: AccessToken
  /** Whether it is another token than the valid one before it, and expires later. */
  readonly progress: boolean
  readonly margins: tokenPolicy.Margins
  readonly expiresAtMonotonic: number
  readonly window: FreshWindow
}

/** A window that contains no time, so that its result is never used. */
export const neverFresh: FreshWindow = {
  from: Infinity,
  until: 0,
  untilNanos: 0n,
  result: Exit.interrupt(FiberId.none)
}

/**
 * Creates the cached token. Its expiry by the monotonic clock is the earliest of: that by the wall clock when the
 * request was sent, that by the wall clock now, its whole lifetime from now, and its former expiry if it is the same
 * token again. Whichever way the wall clock jumped during the request, the token expires too early rather than too
 * late. The margins of a token that brings no progress are fractions of what is left of it.
 */
export const hold = (
  policy: tokenPolicy.TokenPolicy,
  received: AccessToken,
  startedAt: Instant,
  now: Instant,
  chance: number,
  last: Option.Option<Held>
): Held => {
  const repeated = Option.filter(last, (last) => isValid(last, now) && isRepeated(last.token, received))
  const token = withKnownExpiry(Option.getOrUndefined(repeated)?.token, received)
  const expiresAt = token.expiresAt.epochMillis
  const life = expiresAt - token.acquiredAt.epochMillis
  const expiresAtMonotonic = Math.min(
    startedAt.monotonic + (expiresAt - startedAt.wall),
    now.monotonic + (expiresAt - now.wall),
    now.monotonic + life,
    ...Option.toArray(last)
      .filter((last) => sameValue(last.token, token) && !expiresLater(token, last.token))
      .map((last) => last.expiresAtMonotonic)
  )
  const progress = Option.isNone(repeated)
  const margins = tokenPolicy.margins(
    policy,
    progress ? life : lifeOfRepeated(expiresAtMonotonic - now.monotonic),
    chance
  )
  const margin = Math.max(margins.refreshAhead, margins.leeway)
  return {
    token,
    progress,
    margins,
    expiresAtMonotonic,
    window: {
      from: token.acquiredAt.epochMillis - lifetime.clockTolerance,
      until: expiresAt - margin,
      untilNanos: BigInt(Math.floor((expiresAtMonotonic - margin) * 1e6)),
      result: Exit.succeed(token)
    }
  }
}

const remaining = ({ expiresAtMonotonic, token }: Held, now: Instant): number =>
  Math.min(token.expiresAt.epochMillis - now.wall, expiresAtMonotonic - now.monotonic)

/** The state of a token by both clocks. */
export const stateOf = (held: Held, now: Instant): tokenPolicy.TokenState =>
  lifetime.expiredReason(held.token, now.wall) !== undefined
    ? "Expired"
    : tokenPolicy.stateOf(held.margins, remaining(held, now))

export const isValid = (held: Held, now: Instant): boolean => stateOf(held, now) !== "Expired"

/** Half of the remaining lifetime, at most 20 s, in whole milliseconds: the longest wait for a renewal. */
export const halfOfRemaining = (held: Held, now: Instant): number =>
  Math.min(Math.floor(remaining(held, now) / 2), 20_000)

/** The error of an expired token. `elapsed` is the reason, unless the wall clock moved back. */
export const expiredError = (
  { token }: Held,
  now: Instant,
  elapsed: "Elapsed" | "DeadOnArrival",
  retryAt: Option.Option<DateTime.Utc> = Option.none()
): TokenExpiredError => {
  return new TokenExpiredError({
    reason: lifetime.expiredReason(token, now.wall) === "ClockMovedBack" ? "ClockMovedBack" : elapsed,
    expiredAt: token.expiresAt,
    checkedAt: DateTime.unsafeMake(now.wall),
    retryAt
  })
}
