/**
 * The knobs of the provider, and the arithmetic behind them: pure functions of milliseconds, without a clock and without
 * chance of their own. Chance comes in as a number from 0 (inclusive) to 1 (exclusive).
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"

/**
 * - `refreshAhead`: a background renewal starts when less than this is left of the token. Default 5 minutes, at most
 *   25 % of the token's life; each token draws a share between 80 % and 100 % of it.
 * - `leeway`: callers wait for the renewal when less than this is left. Default 30 seconds, at most 5 % of the life.
 * - `cooldown.base`: the first pause after a failed acquisition. Default 1 second, at least 100 milliseconds; doubles with
 *   each further failure.
 * - `cooldown.max`: the longest pause. Default 60 seconds, at most 1 hour. While callers fail for want of a token it is
 *   5 seconds, unless the base is longer.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly refreshAhead?: Duration.DurationInput | undefined
  readonly leeway?: Duration.DurationInput | undefined
  readonly cooldown?: {
    readonly base?: Duration.DurationInput | undefined
    readonly max?: Duration.DurationInput | undefined
  } | undefined
}

/**
 * The knobs in milliseconds, within their bounds.
 *
 * @since 0.1.0
 * @category models
 */
export interface TokenPolicy {
  readonly refreshAhead: number
  readonly leeway: number
  readonly cooldownBase: number
  readonly cooldownMax: number
}

/**
 * The longest life of a token, by the specification: 60 minutes. In milliseconds.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxLife = 60 * 60_000

/**
 * The longest wait that a `Retry-After` may ask for: 1 hour. In milliseconds.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxRetryAfter = 60 * 60_000

/**
 * While a token lives, no renewal begins within this time after the last token came: a source whose tokens are short, or
 * old when they come, is not asked without end. In milliseconds.
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
 * Where a held token stands in its life, from its remaining milliseconds and its margins.
 *
 * @since 0.1.0
 * @category models
 */
export type Zone = "Fresh" | "RefreshSoon" | "MustWait" | "Expired"

/**
 * A token's own margins: parts of its life.
 *
 * @since 0.1.0
 * @category models
 */
export interface Margins {
  readonly refreshAhead: number
  readonly leeway: number
}

/**
 * @since 0.1.0
 * @category combinators
 */
export const margins = (policy: TokenPolicy, life: number, chance: number): Margins => ({
  refreshAhead: Math.min(policy.refreshAhead, life * 0.25) * (0.8 + 0.2 * chance),
  leeway: Math.min(policy.leeway, life * 0.05)
})

/**
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
 * The two lengths of one cool-down: while a live token is held, and while callers fail for want of one.
 *
 * @since 0.1.0
 * @category models
 */
export interface Pauses {
  readonly holding: number
  readonly failing: number
}

/**
 * How long no request is sent after the `failures`-th failure in a row (counted from 1). `retryAfter`, what the endpoint
 * asked for, lengthens both pauses, up to an hour, and never shortens them.
 *
 * @since 0.1.0
 * @category combinators
 */
export const pauses = (policy: TokenPolicy, options: {
  readonly failures: number
  readonly refusedCredentials: boolean
  readonly retryAfter: number
  readonly chance: number
}): Pauses => {
  const jitter = 0.75 + 0.25 * options.chance
  const doubled = policy.cooldownBase * 2 ** Math.min(options.failures - 1, 30)
  const asked = Math.min(options.retryAfter, maxRetryAfter)
  const failingMax = options.refusedCredentials
    ? policy.cooldownMax
    : Math.min(policy.cooldownMax, Math.max(policy.cooldownBase, maxPauseOfFailingCallers))
  return {
    holding: Math.max(Math.ceil(Math.min(doubled, policy.cooldownMax) * jitter), asked),
    failing: Math.max(Math.ceil(Math.min(doubled, failingMax) * jitter), asked)
  }
}

/**
 * How long after an acquisition caused by a rejection further rejections do nothing: doubled when the token rejected now
 * had been rejected in vain before, else the shortest.
 *
 * @since 0.1.0
 * @category combinators
 */
export const rejectionInterval = (previous: number, disputed: boolean): number =>
  disputed ? Math.min(Math.max(previous, rejectionBase) * 2, rejectionMax) : rejectionBase
