/**
 * The arithmetic of expiry, renewals and cooldowns: pure functions of milliseconds. The parameter `chance` is a random
 * number from 0 (inclusive) to 1 (exclusive).
 */
import * as Duration from "effect/Duration"
import * as backoff from "../backoff.js"
import { longestAhead } from "../repeatedToken.js"

/** The options of the provider in whole milliseconds, within their limits. */
export interface TokenPolicy {
  readonly refreshAhead: number
  readonly leeway: number
  readonly cooldownBase: number
  readonly cooldownMax: number
}

/** The shortest time between a new token and its renewal, for tokens with a very short lifetime. */
export const minRenewalInterval = 1000

/** Without a minimum, failing callers could loop requests. */
const shortestPause = 100

/** The longest cooldown without a valid token, so that callers soon notice the end of an outage. */
const maxPauseOfFailingCallers = 5000

const shortestRejectionInterval = 1000
const longestRejectionInterval = 60_000

/** Adds the defaults, and clamps values outside their limits. */
export const make = (options: {
  readonly refreshAhead?: Duration.DurationInput | undefined
  readonly leeway?: Duration.DurationInput | undefined
  readonly cooldown?: {
    readonly base?: Duration.DurationInput | undefined
    readonly max?: Duration.DurationInput | undefined
  } | undefined
} = {}): TokenPolicy => {
  const cooldownMax = within(shortestPause, wholeMillis(options.cooldown?.max ?? "60 seconds"), backoff.maxRetryAfter)
  return {
    refreshAhead: wholeMillis(options.refreshAhead ?? "5 minutes"),
    leeway: wholeMillis(options.leeway ?? "30 seconds"),
    cooldownBase: within(shortestPause, wholeMillis(options.cooldown?.base ?? "1 second"), cooldownMax),
    cooldownMax
  }
}

export const within = (least: number, value: number, most: number): number => Math.min(Math.max(least, value), most)

/** Whole milliseconds, as the wall clock counts. */
const wholeMillis = (duration: Duration.DurationInput): number => Math.max(Math.ceil(Duration.toMillis(duration)), 0)

/** The state of a cached token by its remaining lifetime (the specification, "States and transitions"). */
export type TokenState = "Fresh" | "RefreshSoon" | "MustWait" | "Expired"

/** When less than `refreshAhead` is left, a renewal starts. When less than `leeway` is left, callers wait. */
export interface Margins {
  readonly refreshAhead: number
  readonly leeway: number
}

/** `refreshAhead` is at most 25 % of the lifetime, times 80 % to 100 % by `chance`. `leeway` is at most 5 %. */
export const margins = (policy: TokenPolicy, life: number, chance: number): Margins => ({
  refreshAhead: Math.min(policy.refreshAhead, life * longestAhead) * (0.8 + 0.2 * chance),
  leeway: Math.min(policy.leeway, life * 0.05)
})

export const stateOf = (margins: Margins, remaining: number): TokenState => {
  if (remaining <= 0) return "Expired"
  if (remaining < margins.leeway) return "MustWait"
  return remaining < margins.refreshAhead ? "RefreshSoon" : "Fresh"
}

/**
 * The lengths of the cooldown after a failure: `holding` with a valid token, and `failing` without one. The latter is
 * at most 5 seconds, or `cooldownBase` if that is longer, unless the endpoint `refused` the request. `retryAfter`
 * lengthens both, up to an hour.
 */
export const pauses = (
  policy: TokenPolicy,
  { chance, failures, refused, retryAfter }: {
    /** The number of failures in a row, including this one. */
    readonly failures: number
    readonly refused: boolean
    readonly retryAfter: number
    readonly chance: number
  }
): { readonly holding: number; readonly failing: number } => {
  const failingMax = refused ? policy.cooldownMax : Math.max(policy.cooldownBase, maxPauseOfFailingCallers)
  const base = policy.cooldownBase
  const bounded = Math.min(retryAfter, backoff.maxRetryAfter)
  const pause = (max: number) => Math.max(backoff.pause({ base, max }, failures, chance), bounded)
  return { holding: pause(policy.cooldownMax), failing: pause(Math.min(policy.cooldownMax, failingMax)) }
}

/**
 * The time after an acquisition caused by a rejection in which further rejections have no effect: 1 second if there was
 * no rejection for a minute, otherwise twice the `previous` interval, up to a minute.
 */
export const rejectionInterval = (previous: number, sinceLast: number): number =>
  sinceLast >= longestRejectionInterval
    ? shortestRejectionInterval
    : Math.min(previous * 2, longestRejectionInterval)
