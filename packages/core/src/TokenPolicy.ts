/**
 * The knobs of the provider, and the arithmetic behind them: pure functions of milliseconds, without a clock and without
 * chance of their own. Chance comes in as a number from 0 (inclusive) to 1 (exclusive).
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"

/**
 * The knobs as a user sets them: durations of Effect (`"5 minutes"`). None is refused: what is out of bounds is put within.
 *
 * @see make
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /**
   * A background renewal starts when less than this is left of the token. Default 5 minutes, at most 25 % of the token's
   * life; each token draws a share between 80 % and 100 % of it, so that many processes do not renew at once.
   */
  readonly refreshAhead?: Duration.DurationInput | undefined
  /** Callers wait for the renewal when less than this is left. Default 30 seconds, at most 5 % of the token's life. */
  readonly leeway?: Duration.DurationInput | undefined
  /** How long no request is sent after a failed acquisition. */
  readonly cooldown?: {
    /** The first pause; it doubles with each further failure. Default 1 second, at least 100 milliseconds. */
    readonly base?: Duration.DurationInput | undefined
    /**
     * The longest pause. Default 60 seconds, at most 1 hour. While callers fail for want of a token it is 5 seconds, unless
     * the base is longer or the endpoint refused the credentials.
     */
    readonly max?: Duration.DurationInput | undefined
  } | undefined
}

/**
 * The knobs in whole milliseconds, within their bounds.
 *
 * @see make
 *
 * @since 0.1.0
 * @category models
 */
export interface TokenPolicy {
  /** A renewal starts when less is left, in milliseconds; a part of the token's life may be less. */
  readonly refreshAhead: number
  /** Callers wait when less is left, in milliseconds; a part of the token's life may be less. */
  readonly leeway: number
  /** The first pause after a failure, in milliseconds, from 100. */
  readonly cooldownBase: number
  /** The longest pause, in milliseconds, at most an hour's. */
  readonly cooldownMax: number
}

/**
 * The longest life of a token, by the specification ("Limits"): 60 minutes. In milliseconds.
 *
 * @see TokenResponse.lifeOf
 *
 * @since 0.1.0
 * @category constants
 */
export const maxLife = 60 * 60_000

/**
 * The longest wait that a `Retry-After` (RFC 9110 §10.2.3) may ask for: 1 hour. In milliseconds.
 *
 * @see pauses
 *
 * @since 0.1.0
 * @category constants
 */
export const maxRetryAfter = 60 * 60_000

/**
 * While a token is valid, no renewal starts within this time after it arrived, however short its life is. In milliseconds.
 *
 * @see AccessTokenProvider.make
 *
 * @since 0.1.0
 * @category constants
 */
export const minRenewalInterval = 1000

/** Without any pause, callers that fail would make a loop of requests. */
const shortestPause = 100

/** While callers fail for want of a token, no pause is longer: an outage's end reaches them soon. */
const maxPauseOfFailingCallers = 5000

/** The first interval between effective rejections, and the longest. */
const rejectionBase = 1000
const rejectionMax = 60_000

/**
 * The knobs with their defaults, put within their bounds. A fraction of a millisecond is rounded up.
 *
 * @example
 * ```ts
 * import { TokenPolicy } from "@store-api/core"
 *
 * const policy = TokenPolicy.make({ refreshAhead: "2 minutes", cooldown: { max: "2 hours" } })
 * // { refreshAhead: 120000, leeway: 30000, cooldownBase: 1000, cooldownMax: 3600000 }
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): TokenPolicy => {
  const cooldownMax = within(shortestPause, wholeMillis(options.cooldown?.max ?? "60 seconds"), maxRetryAfter)
  return {
    refreshAhead: wholeMillis(options.refreshAhead ?? "5 minutes"),
    leeway: wholeMillis(options.leeway ?? "30 seconds"),
    cooldownBase: within(shortestPause, wholeMillis(options.cooldown?.base ?? "1 second"), cooldownMax),
    cooldownMax
  }
}

const within = (least: number, value: number, most: number): number => Math.min(Math.max(least, value), most)

/** Not less than asked for, and no fraction, which the wall clock could not tell. */
const wholeMillis = (duration: Duration.DurationInput): number => Math.ceil(Duration.toMillis(duration))

/**
 * Where a held token stands in its life: `Fresh`; `RefreshSoon`, less than `refreshAhead` left; `MustWait`, less than
 * `leeway` left; `Expired`, nothing left (the specification, "States and transitions").
 *
 * @see zone
 *
 * @since 0.1.0
 * @category models
 */
export type Zone = "Fresh" | "RefreshSoon" | "MustWait" | "Expired"

/**
 * A token's own margins: parts of its life, in milliseconds.
 *
 * @see margins
 *
 * @since 0.1.0
 * @category models
 */
export interface Margins {
  /** A renewal starts when less is left. */
  readonly refreshAhead: number
  /** Callers wait when less is left. */
  readonly leeway: number
}

/**
 * The margins of a token that lives for so many milliseconds: `refreshAhead`, at most 25 % of `life`, of which `chance`
 * takes 80 % to 100 %; and `leeway`, at most 5 % of `life`.
 *
 * @example
 * ```ts
 * import { TokenPolicy } from "@store-api/core"
 *
 * const anHour = TokenPolicy.margins(TokenPolicy.make(), 60 * 60_000, 0) // { refreshAhead: 240000, leeway: 30000 }
 * const twoSeconds = TokenPolicy.margins(TokenPolicy.make(), 2000, 0) // { refreshAhead: 400, leeway: 100 }
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const margins = (policy: TokenPolicy, life: number, chance: number): Margins => ({
  refreshAhead: Math.min(policy.refreshAhead, life * 0.25) * (0.8 + 0.2 * chance),
  leeway: Math.min(policy.leeway, life * 0.05)
})

/**
 * The zone of a token with these margins of which so many milliseconds remain.
 *
 * @example
 * ```ts
 * import { TokenPolicy } from "@store-api/core"
 *
 * const margins = TokenPolicy.margins(TokenPolicy.make(), 60 * 60_000, 0)
 * const soon = TokenPolicy.zone(margins, 3 * 60_000) // "RefreshSoon"
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const zone = (margins: Margins, remaining: number): Zone =>
  remaining <= 0
    ? "Expired"
    : remaining < margins.leeway
    ? "MustWait"
    : remaining < margins.refreshAhead
    ? "RefreshSoon"
    : "Fresh"

/**
 * The two lengths of one cool-down, in milliseconds.
 *
 * @see pauses
 *
 * @since 0.1.0
 * @category models
 */
export interface Pauses {
  /** While a live token is held, which is served meanwhile. */
  readonly holding: number
  /** While callers fail for want of a token. */
  readonly failing: number
}

/**
 * The length of a cooldown in milliseconds: `cooldownBase`, doubled with each further one in a row, at most `cooldownMax`,
 * and 75 % to 100 % of that by `chance`.
 *
 * @example
 * ```ts
 * import { TokenPolicy } from "@store-api/core"
 *
 * const fifth = TokenPolicy.pause(TokenPolicy.make(), 5, 0) // 12000
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const pause = (policy: TokenPolicy, inARow: number, chance: number): number =>
  Math.ceil(Math.min(policy.cooldownBase * 2 ** Math.min(inARow - 1, 30), policy.cooldownMax) * (0.75 + 0.25 * chance))

/**
 * How long no request is sent after a failure. While callers fail, a cooldown is at most 5 seconds, or `cooldownBase` if that
 * is longer, unless the endpoint refused the request.
 *
 * @example
 * ```ts
 * import { TokenPolicy } from "@store-api/core"
 *
 * const fifth = TokenPolicy.pauses(TokenPolicy.make(), {
 *   failures: 5,
 *   refused: false,
 *   retryAfter: 0,
 *   chance: 0
 * }) // { holding: 12000, failing: 3750 }
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const pauses = (policy: TokenPolicy, options: {
  /** The number of failures in a row, this one included: from 1. */
  readonly failures: number
  /** Whether the endpoint rejected the credentials or answered 429: then callers that fail wait as long as others. */
  readonly refused: boolean
  /** What the endpoint asked for, in milliseconds: lengthens both pauses, up to an hour, and never shortens them. */
  readonly retryAfter: number
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly chance: number
}): Pauses => {
  const failingMax = options.refused ? policy.cooldownMax : Math.max(policy.cooldownBase, maxPauseOfFailingCallers)
  const failing = { ...policy, cooldownMax: Math.min(policy.cooldownMax, failingMax) }
  const asked = Math.min(options.retryAfter, maxRetryAfter)
  return {
    holding: Math.max(pause(policy, options.failures, options.chance), asked),
    failing: Math.max(pause(failing, options.failures, options.chance), asked)
  }
}

/**
 * How long after an acquisition caused by a rejection further rejections have no effect, in milliseconds: 1 second after a
 * minute without a rejection, otherwise twice the `previous` interval, up to a minute.
 *
 * @example
 * ```ts
 * import { TokenPolicy } from "@store-api/core"
 *
 * const first = TokenPolicy.rejectionInterval(0, Infinity) // 1000
 * const second = TokenPolicy.rejectionInterval(first, 5000) // 2000
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const rejectionInterval = (previous: number, sinceLast: number): number =>
  sinceLast >= rejectionMax ? rejectionBase : Math.min(previous * 2, rejectionMax)
