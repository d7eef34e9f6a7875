/** A cached token, and its lifetime by both clocks. */
import * as DateTime from "effect/DateTime"
import * as Exit from "effect/Exit"
import type { AccessToken } from "../../AccessToken.js"
import { TokenExpiredError } from "../../AccessTokenError.js"
import { elapsed, type Instant } from "../instant.js"
import * as lifetime from "../lifetime.js"
import * as repeatedToken from "../repeatedToken.js"
import * as tokenPolicy from "./tokenPolicy.js"

export interface Held {
  readonly token: AccessToken
  /** When its lifetime started, by both clocks, and how long it is, in milliseconds. */
  readonly since: Instant
  readonly life: number
  /** When it expires by the monotonic clock. */
  readonly end: number
  readonly arrivedAt: Instant
  /** The source made no progress: it returned the valid token before it again, or another one that expires no later. */
  readonly repeated: boolean
  readonly margins: tokenPolicy.Margins
  /** The times between which the token is `Fresh`, and the result of `get`, calculated in advance for the hot path. */
  readonly fresh: {
    readonly from: number
    readonly until: number
    readonly untilNanos: bigint
  }
  readonly exit: Exit.Exit<AccessToken>
}

/** Creates the cached token. The margins of a repeated token are fractions of what is left of it. */
export const hold = (
  policy: tokenPolicy.TokenPolicy,
  received: AccessToken,
  { chance, last, now, startedAt }: {
    readonly startedAt: Instant
    readonly now: Instant
    readonly chance: number
    /** The token before it. */
    readonly last: Held | undefined
  }
): Held => {
  const repeated = last !== undefined && isValid(last, now) &&
    repeatedToken.isRepeated(last.token, received)
  const start = repeatedToken.startOf(received, last, startedAt, now)
  const isSame = repeated && repeatedToken.sameValue(last.token, received)
  const { token } = repeatedToken.endingOf(received, start, isSame ? last.end : undefined)
  const life = repeatedToken.lifeOf(token)
  const since = { wall: token.acquiredAt.epochMillis, monotonic: start }
  const margins = tokenPolicy.margins(
    policy,
    repeated ? repeatedToken.lifeOfRepeated(life - elapsed(since, now)) : life,
    chance
  )
  const freshFor = life - Math.max(margins.refreshAhead, margins.leeway)
  return {
    token,
    since,
    life,
    end: start + life,
    arrivedAt: now,
    repeated,
    margins,
    fresh: {
      from: since.wall - lifetime.clockTolerance,
      until: since.wall + freshFor,
      untilNanos: BigInt(Math.floor((since.monotonic + freshFor) * 1e6))
    },
    exit: Exit.succeed(token)
  }
}

/** Whether the wall clock moved back before its start, so that its age is unknown. */
const isBefore = (now: Instant, { since }: Held): boolean =>
  now.wall < since.wall - lifetime.clockTolerance

/** The remaining lifetime by the clock that advanced further. */
const remaining = (held: Held, now: Instant): number =>
  isBefore(now, held) ? 0 : held.life - elapsed(held.since, now)

export const isValid = (held: Held, now: Instant): boolean => remaining(held, now) > 0

/** The state of a token by its remaining lifetime (the specification, "States and transitions"). */
export const stateOf = (
  held: Held,
  now: Instant
): "Fresh" | "RefreshSoon" | "MustWait" | "Expired" => {
  const left = remaining(held, now)
  if (left <= 0) return "Expired"
  if (left < held.margins.leeway) return "MustWait"
  return left < held.margins.refreshAhead ? "RefreshSoon" : "Fresh"
}

/** The longest wait for the renewal of a valid token: half of what is left of it, or less. */
export const longestWaitFor = (held: Held, now: Instant): number =>
  Math.min(Math.floor(remaining(held, now) / 2), tokenPolicy.longestWait)

/** The error of an expired token. `reason` counts unless the wall clock moved back. */
export const expiredError = (
  held: Held,
  now: Instant,
  reason: "Elapsed" | "DeadOnArrival",
  retryAt?: DateTime.Utc
): TokenExpiredError =>
  new TokenExpiredError({
    reason: isBefore(now, held) ? "ClockMovedBack" : reason,
    expiredAt: held.token.expiresAt,
    checkedAt: DateTime.unsafeMake(now.wall),
    retryAt
  })
