/**
 * What a provider measures, as values that any exporter of Effect's metrics sees. None holds a client id, a secret or a
 * token. A cached `get` updates none of them.
 *
 * They carry the labels that the provider's layer was built with (`Effect.tagMetrics`), and none of a caller's: that tells
 * several stores in one process apart.
 *
 * @since 0.1.0
 */
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"

/**
 * Counts acquisitions that ended, by `outcome`: `Success`, the tag of the error, or `Defect` for a source that died. One
 * that the end of the layer's scope interrupted is not counted.
 *
 * @example
 * ```ts
 * import { AccessTokenMetrics } from "@store-api/core"
 * import { Metric } from "effect"
 *
 * const bought = Metric.value(Metric.tagged(AccessTokenMetrics.acquisitions, "outcome", "Success"))
 * ```
 *
 * @since 0.1.0
 * @category metrics
 */
export const acquisitions: Metric.Metric.Counter<number> = Metric.counter("store_api_token_acquisitions", {
  description: "Acquisitions that ended, by their outcome",
  incremental: true
})

/**
 * How long acquisitions took, retries and the pauses between them included, in seconds; those that failed too.
 *
 * @example
 * ```ts
 * import { AccessTokenMetrics } from "@store-api/core"
 * import { Effect, Metric } from "effect"
 *
 * const mean = Effect.map(Metric.value(AccessTokenMetrics.acquisitionDuration), ({ count, sum }) => sum / count)
 * ```
 *
 * @since 0.1.0
 * @category metrics
 */
export const acquisitionDuration: Metric.Metric.Histogram<number> = Metric.histogram(
  "store_api_token_acquisition_duration_seconds",
  MetricBoundaries.fromIterable([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
  "How long acquisitions took, in seconds"
).pipe(Metric.tagged("unit", "s"))

/**
 * Counts callers who waited for an acquisition that another caller had started: token requests that were not sent.
 *
 * @example
 * ```ts
 * import { AccessTokenMetrics } from "@store-api/core"
 * import { Metric } from "effect"
 *
 * const spared = Metric.value(AccessTokenMetrics.callersJoined)
 * ```
 *
 * @since 0.1.0
 * @category metrics
 */
export const callersJoined: Metric.Metric.Counter<number> = Metric.counter("store_api_token_callers_joined", {
  description: "Callers who waited for an acquisition that another had started",
  incremental: true
})

/**
 * Counts rejections of the token held, by `outcome`: `Dropped`, or `Kept` when another had been acquired for a rejection
 * only just. A rejection of a token that is not held any more is not counted.
 *
 * @example
 * ```ts
 * import { AccessTokenMetrics } from "@store-api/core"
 * import { Metric } from "effect"
 *
 * const inVain = Metric.value(Metric.tagged(AccessTokenMetrics.rejections, "outcome", "Kept"))
 * ```
 *
 * @since 0.1.0
 * @category metrics
 */
export const rejections: Metric.Metric.Counter<number> = Metric.counter("store_api_token_rejections", {
  description: "Rejections of the token held, by what they did",
  incremental: true
})

/**
 * Counts cooldowns that began, by `cause`: `Failure` of an acquisition, or `NoProgress`, a renewal that brought no token that
 * lives longer.
 *
 * @example
 * ```ts
 * import { AccessTokenMetrics } from "@store-api/core"
 * import { Metric } from "effect"
 *
 * const renewalsInVain = Metric.value(Metric.tagged(AccessTokenMetrics.cooldowns, "cause", "NoProgress"))
 * ```
 *
 * @since 0.1.0
 * @category metrics
 */
export const cooldowns: Metric.Metric.Counter<number> = Metric.counter("store_api_token_cooldowns", {
  description: "Cooldowns after a failure, or after a renewal without progress",
  incremental: true
})

/**
 * When the token held dies, in seconds since the epoch; 0 while none is held. A moment and not what is left, which would
 * be wrong as soon as nobody updates it: whoever looks subtracts the time of looking.
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
 * @since 0.1.0
 * @category metrics
 */
export const expiry: Metric.Metric.Gauge<number> = Metric.gauge("store_api_token_expiry_timestamp_seconds", {
  description: "When the token held dies, in seconds since the epoch; 0 while none is held"
}).pipe(Metric.tagged("unit", "s"))
