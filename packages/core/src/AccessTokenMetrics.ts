/**
 * The metrics of a provider, as values for any exporter of Effect's metrics. They never contain a client id, a secret
 * or a token. A `get` from the cache updates none of them.
 *
 * They have the labels with which the layer of the provider was built (`Effect.tagMetrics`), and not those of a
 * caller. Labels therefore distinguish several stores in one process.
 *
 * @since 1.0.0
 */
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"

/**
 * Counts acquisitions that have ended, by `outcome`: `Success`, the tag of the error, or `Defect` if the source failed
 * with a defect. Does not count an acquisition that the closing scope interrupted.
 *
 * @example
 * ```ts
 * import { AccessTokenMetrics } from "@store-api/core"
 * import { Metric } from "effect"
 *
 * const acquired = Metric.value(Metric.tagged(AccessTokenMetrics.acquisitions, "outcome", "Success"))
 * ```
 *
 * @since 1.0.0
 * @category metrics
 */
export const acquisitions: Metric.Metric.Counter<number> = Metric.counter(
  "store_api_token_acquisitions",
  {
    description: "Acquisitions that have ended, by outcome",
    incremental: true
  }
)

/**
 * The duration of acquisitions, including retries and the delays between them, in seconds. Includes failed
 * acquisitions.
 *
 * @example
 * ```ts
 * import { AccessTokenMetrics } from "@store-api/core"
 * import { Effect, Metric } from "effect"
 *
 * const mean = Effect.map(Metric.value(AccessTokenMetrics.acquisitionDuration), ({ count, sum }) => sum / count)
 * ```
 *
 * @since 1.0.0
 * @category metrics
 */
export const acquisitionDuration: Metric.Metric.Histogram<number> = Metric.histogram(
  "store_api_token_acquisition_duration_seconds",
  MetricBoundaries.fromIterable([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
  "Duration of acquisitions, in seconds"
).pipe(Metric.tagged("unit", "s"))

/**
 * Counts callers that waited for an acquisition that another caller had started. Each is a token request that was
 * saved.
 *
 * @example
 * ```ts
 * import { AccessTokenMetrics } from "@store-api/core"
 * import { Metric } from "effect"
 *
 * const saved = Metric.value(AccessTokenMetrics.callersJoined)
 * ```
 *
 * @since 1.0.0
 * @category metrics
 */
export const callersJoined: Metric.Metric.Counter<number> = Metric.counter(
  "store_api_token_callers_joined",
  {
    description: "Callers that joined an acquisition in flight",
    incremental: true
  }
)

/**
 * Counts rejections of the cached token, by `outcome`: `Dropped`, or `Kept` if too many tokens were rejected before.
 * Does not count the rejection of a token that is no longer cached.
 *
 * @example
 * ```ts
 * import { AccessTokenMetrics } from "@store-api/core"
 * import { Metric } from "effect"
 *
 * const kept = Metric.value(Metric.tagged(AccessTokenMetrics.rejections, "outcome", "Kept"))
 * ```
 *
 * @since 1.0.0
 * @category metrics
 */
export const rejections: Metric.Metric.Counter<number> = Metric.counter(
  "store_api_token_rejections",
  {
    description: "Rejections of the cached token, by outcome",
    incremental: true
  }
)

/**
 * Counts cooldowns, by `cause`: `Failure` of an acquisition, or `NoProgress` if a renewal returned a token that does
 * not expire later.
 *
 * @example
 * ```ts
 * import { AccessTokenMetrics } from "@store-api/core"
 * import { Metric } from "effect"
 *
 * const withoutProgress = Metric.value(Metric.tagged(AccessTokenMetrics.cooldowns, "cause", "NoProgress"))
 * ```
 *
 * @since 1.0.0
 * @category metrics
 */
export const cooldowns: Metric.Metric.Counter<number> = Metric.counter(
  "store_api_token_cooldowns",
  {
    description: "Cooldowns, by cause",
    incremental: true
  }
)

/**
 * When the cached token expires, in seconds since the epoch, or 0 without a token. Providers with the same labels share
 * the series, which then shows one of their tokens. Subtract the current time to get the remaining lifetime, which a
 * metric could not show correctly without constant updates.
 *
 * @example
 * ```ts
 * import { AccessTokenMetrics } from "@store-api/core"
 * import { Clock, Effect, Metric } from "effect"
 *
 * const secondsLeft = Effect.zipWith(
 *   Metric.value(AccessTokenMetrics.expiry),
 *   Clock.currentTimeMillis,
 *   ({ value }, now) => value - now / 1000
 * )
 * ```
 *
 * @since 1.0.0
 * @category metrics
 */
export const expiry: Metric.Metric.Gauge<number> = Metric.gauge(
  "store_api_token_expiry_timestamp_seconds",
  {
    description: "Expiry of the cached token, in seconds since the epoch, or 0"
  }
).pipe(Metric.tagged("unit", "s"))
