/** The options of the provider, and the margins of a token, in milliseconds. */
import * as Duration from "effect/Duration"
import * as backoff from "../backoff.js"
import { leewayOf } from "../lifetime.js"
import { longestAhead } from "../repeatedToken.js"

/** The options of the provider in whole milliseconds, within their limits. */
export interface TokenPolicy {
  readonly refreshAhead: number
  readonly leeway: number
  readonly cooldownBase: number
  readonly cooldownMax: number
}

/** Without a minimum, failing callers could loop requests. */
const shortestCooldown = 100

/** Adds the defaults, and clamps values outside their limits. */
export const make = (options: {
  readonly refreshAhead?: Duration.DurationInput | undefined
  readonly leeway?: Duration.DurationInput | undefined
  readonly cooldown?: {
    readonly base?: Duration.DurationInput | undefined
    readonly max?: Duration.DurationInput | undefined
  } | undefined
} = {}): TokenPolicy => {
  const { base = "1 second", max = "60 seconds" } = options.cooldown ?? {}
  const cooldownMax = Math.min(Math.max(wholeMillis(max), shortestCooldown), backoff.maxRetryAfter)
  return {
    refreshAhead: wholeMillis(options.refreshAhead ?? "5 minutes"),
    leeway: wholeMillis(options.leeway ?? "30 seconds"),
    cooldownBase: Math.min(Math.max(wholeMillis(base), shortestCooldown), cooldownMax),
    cooldownMax
  }
}

/** Whole milliseconds, as the wall clock counts. */
const wholeMillis = (duration: Duration.DurationInput): number => Math.max(Math.ceil(Duration.toMillis(duration)), 0)

/** When less than `refreshAhead` is left, a renewal starts. When less than `leeway` is left, callers wait for it. */
export interface Margins {
  readonly refreshAhead: number
  readonly leeway: number
}

/**
 * `refreshAhead` is at most 25 % of the lifetime, times 80 % to 100 % by `chance`, a random number from 0 to 1.
 * `leeway` is at most 5 %.
 */
export const margins = (policy: TokenPolicy, life: number, chance: number): Margins => ({
  refreshAhead: Math.min(policy.refreshAhead, life * longestAhead) * (0.8 + 0.2 * chance),
  leeway: leewayOf(life, policy.leeway)
})
