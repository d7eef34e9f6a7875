/** How long: the limits and options of the provider, the margins of a token and the lengths of cooldowns. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { ConfigurationError } from "../../AccessTokenError.js"
import * as backoff from "../backoff.js"
import { defaultLeeway, leewayOf } from "../lifetime.js"
import { checkKinds, durationOf } from "../options.js"
import { longestAhead } from "../repeatedToken.js"

/** The time limit of an acquisition, in case its source never ends. */
export const longestAcquisition = "2 minutes"

/** How long closing the scope waits for the finalizers of an acquisition, such as the release of a lease. */
export const longestClosing = "10 seconds"

// All other times are in milliseconds.

/** The longest wait for the renewal of a valid token. */
export const longestWait = 20_000

/** The shortest time between a new token and its renewal, for tokens with a very short lifetime. */
export const shortestRenewalInterval = 1000

/**
 * How old a renewal may be for callers without a valid token, and callers of `refresh`, to wait for it. `TokenEndpoint`
 * needs no longer by default. A renewal that is older hangs, or the process was frozen.
 */
export const oldestRenewal = 30_000

/** What each rejection that takes effect costs, and how much a rejection budget holds. */
export const rejectionCost = 60_000
export const fullBudget = 5 * rejectionCost

/** Without a minimum, failing callers could loop requests. */
const cooldownRange = { least: 100, most: backoff.maxRetryAfter }

/** The longest cooldown without a valid token, so that callers soon notice the end of an outage. */
const longestWithoutToken = 5000

/** See `AccessTokenProvider.Options`. */
export interface Options {
  readonly refreshAhead?: Duration.DurationInput | undefined
  readonly leeway?: Duration.DurationInput | undefined
  readonly cooldown?: {
    readonly base?: Duration.DurationInput | undefined
    readonly max?: Duration.DurationInput | undefined
  } | undefined
}

/** The options of the provider in whole milliseconds, within their limits. */
export interface TokenPolicy {
  readonly refreshAhead: number
  readonly leeway: number
  readonly cooldownBase: number
  readonly cooldownMax: number
}

/** Adds the defaults, and clamps values outside their limits. Fails for a value that is not a duration. */
export const make = (options: Options = {}): Effect.Effect<TokenPolicy, ConfigurationError> =>
  Effect.gen(function*() {
    yield* checkKinds("provider", options, { cooldown: "object" })
    const { cooldown = {}, leeway = defaultLeeway, refreshAhead = "5 minutes" } = options
    const { base = "1 second", max = "60 seconds" } = cooldown
    const cooldownMax = yield* durationOf("provider.cooldown.max", max, cooldownRange)
    const cooldownBase = yield* durationOf("provider.cooldown.base", base, cooldownRange)
    return {
      refreshAhead: yield* durationOf("provider.refreshAhead", refreshAhead),
      leeway: yield* durationOf("provider.leeway", leeway),
      cooldownBase: Math.min(cooldownBase, cooldownMax),
      cooldownMax
    }
  })

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

/** While a valid token is cached, and without one. */
export interface CooldownLengths {
  readonly withToken: number
  readonly withoutToken: number
}

/**
 * The lengths of the cooldown after a failure. Without a valid token it is at most 5 seconds, or `cooldownBase` if that
 * is longer, unless the endpoint refused the request. `retryAfter` lengthens both.
 *
 * The failure of a renewal may be old, as in a process that was frozen. So it causes no cooldown without a valid token,
 * unless the endpoint sent a `Retry-After`.
 */
export const cooldownLengths = (
  { cooldownBase, cooldownMax }: TokenPolicy,
  { chance, failures, isRefusal, isRenewal, retryAfter }: {
    /** The number of failures in a row, including this one. */
    readonly failures: number
    readonly isRefusal: boolean
    readonly isRenewal: boolean
    readonly retryAfter: number
    readonly chance: number
  }
): CooldownLengths => {
  const pause = (max: number) => backoff.pause({ base: cooldownBase, max }, failures, chance)
  const least = Math.min(Math.max(retryAfter, 0), backoff.maxRetryAfter)
  const longest = isRefusal
    ? cooldownMax
    : Math.min(cooldownMax, Math.max(cooldownBase, longestWithoutToken))
  return {
    withToken: Math.max(pause(cooldownMax), least),
    withoutToken: isRenewal ? least : Math.max(pause(longest), least)
  }
}
