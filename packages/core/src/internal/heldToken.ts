/**
 * A token in the provider's hands, and what both clocks say of it.
 */
import * as DateTime from "effect/DateTime"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import type { AccessToken } from "../AccessToken.js"
import { TokenExpiredError } from "../AccessTokenError.js"
import * as tokenPolicy from "./tokenPolicy.js"

/** A reading of both clocks in milliseconds: the wall clock since the epoch, the monotonic one since whenever. */
export interface Instant {
  readonly wall: number
  readonly monotonic: number
}

/** When the cached path may answer: all that it compares, and its answer, made once. */
export interface FreshWindow {
  readonly from: number
  readonly until: number
  readonly untilNanos: bigint
  readonly answer: Exit.Exit<AccessToken>
}

/** A token and the moment it expires by the monotonic clock. */
export interface Held {
  readonly token: AccessToken
  readonly margins: tokenPolicy.Margins
  readonly diesAt: number
  readonly window: FreshWindow
}

/** Of no token: no clock reads within it, so its answer is never given. */
export const neverFresh: FreshWindow = {
  from: Infinity,
  until: 0,
  untilNanos: 0n,
  answer: Exit.interrupt(FiberId.none)
}

/**
 * A received token. By the monotonic clock it lives as long as the wall clock, read before the request and now, gives it,
 * never longer than its whole life from now, and no longer than before if it is the last one again: whichever way the wall
 * clock jumped meanwhile, it dies too early, not too late.
 */
export const hold = (
  policy: tokenPolicy.TokenPolicy,
  token: AccessToken,
  startedAt: Instant,
  now: Instant,
  chance: number,
  last: Option.Option<Held>
): Held => {
  const expiresAt = token.expiresAt.epochMillis
  const life = expiresAt - token.acquiredAt.epochMillis
  const margins = tokenPolicy.margins(policy, life, chance)
  const margin = Math.max(margins.refreshAhead, margins.leeway)
  const diesAt = Math.min(
    startedAt.monotonic + (expiresAt - startedAt.wall),
    now.monotonic + (expiresAt - now.wall),
    now.monotonic + life,
    ...Option.toArray(last)
      .filter((last) => sameValue(last.token, token) && !diesLater(token, last.token))
      .map((last) => last.diesAt)
  )
  return {
    token,
    margins,
    diesAt,
    window: {
      from: token.acquiredAt.epochMillis - tokenPolicy.clockTolerance,
      until: expiresAt - margin,
      untilNanos: BigInt(Math.floor((diesAt - margin) * 1e6)),
      answer: Exit.succeed(token)
    }
  }
}

const remaining = ({ diesAt, token }: Held, now: Instant): number =>
  Math.min(token.expiresAt.epochMillis - now.wall, diesAt - now.monotonic)

/** The state of a token by both clocks. */
export const stateOf = (held: Held, now: Instant): tokenPolicy.TokenState =>
  Option.isSome(tokenPolicy.expiredReason(held.token, now.wall))
    ? "Expired"
    : tokenPolicy.stateOf(held.margins, remaining(held, now))

export const isLive = (held: Held, now: Instant): boolean => stateOf(held, now) !== "Expired"

/** Half of what is left of a token, at most 20 s, in whole milliseconds: no caller waits longer for its renewal. */
export const halfOfRemaining = (held: Held, now: Instant): number =>
  Math.min(Math.floor(remaining(held, now) / 2), 20_000)

/** The error of a token that one of the clocks says has expired. `elapsed`: the reason, unless the wall clock moved back. */
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

export const diesLater = (a: AccessToken, b: AccessToken): boolean => a.expiresAt.epochMillis > b.expiresAt.epochMillis
