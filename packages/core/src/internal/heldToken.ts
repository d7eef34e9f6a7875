/** A cached token, and its expiry by both clocks. */
import * as DateTime from "effect/DateTime"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import { AccessToken } from "../AccessToken.js"
import { TokenExpiredError } from "../AccessTokenError.js"
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

/** By how much the expiry of a repeated token may differ, in milliseconds: a second, and the time of the request. */
const expiryTolerance = 2000

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
  const token = withKnownExpiry(Option.map(repeated, ({ token }) => token), received)
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
    progress ? life : tokenPolicy.lifeOfRepeated(expiresAtMonotonic - now.monotonic),
    chance
  )
  const margin = Math.max(margins.refreshAhead, margins.leeway)
  return {
    token,
    progress,
    margins,
    expiresAtMonotonic,
    window: {
      from: token.acquiredAt.epochMillis - tokenPolicy.clockTolerance,
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
  Option.isSome(tokenPolicy.expiredReason(held.token, now.wall))
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
  const reason = Option.filter(tokenPolicy.expiredReason(token, now.wall), (reason) => reason === "ClockMovedBack")
  return new TokenExpiredError({
    reason: Option.getOrElse(reason, () => elapsed),
    expiredAt: token.expiresAt,
    checkedAt: DateTime.unsafeMake(now.wall),
    retryAt
  })
}

export const sameValue = (a: AccessToken, b: AccessToken): boolean => Equal.equals(a.value, b.value)

/** Whether an acquisition brought no progress: the same token again, or one that expires no later. */
export const isRepeated = (last: AccessToken, token: AccessToken): boolean =>
  sameValue(last, token) || !expiresLater(token, last)

/**
 * Keeps the known expiry of a token that the endpoint returned again. `expires_in` is in whole seconds, so that token
 * would expire up to a second too early, while the endpoint still returns it with an `expires_in` of zero.
 */
export const withKnownExpiry = (last: Option.Option<AccessToken>, token: AccessToken): AccessToken => {
  const known = Option.filter(
    last,
    (last) =>
      sameValue(last, token) && Math.abs(last.expiresAt.epochMillis - token.expiresAt.epochMillis) < expiryTolerance
  )
  return Option.isSome(known) ? new AccessToken({ ...token, expiresAt: known.value.expiresAt }) : token
}

export const expiresLater = (a: AccessToken, b: AccessToken): boolean =>
  a.expiresAt.epochMillis > b.expiresAt.epochMillis
