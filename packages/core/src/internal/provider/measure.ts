import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Metric from "effect/Metric"
import * as metrics from "../../AccessTokenMetrics.js"
import type { Instant } from "../instant.js"
import type { Landed } from "./tokenState.js"

const outcomes = [
  "Success",
  "CredentialsError",
  "TokenExpiredError",
  "TokenRefusedError",
  "TokenRequestError",
  "TokenResponseError",
  "Defect"
]

export type Measure = Effect.Effect.Success<ReturnType<typeof make>>

/**
 * Sets the gauge, for each provider of this process that has a token. Metrics belong to the process, so providers that
 * know nothing of one another share this set.
 */
const withToken = new Set<() => void>()

/**
 * Updates the metrics with the labels of the fiber that builds the layer. With the labels of callers, the counts of one
 * provider would be split.
 */
export const make = (now: () => Instant) =>
  Effect.map(FiberRef.get(FiberRef.currentMetricLabels), (labels) => {
    const count = (
      counter: Metric.Metric.Counter<number>,
      key: string,
      value: string,
      by = 1
    ) => Metric.tagged(counter, key, value).unsafeUpdate(by, labels)
    let expiry = 0
    const showExpiry = () => metrics.expiry.unsafeUpdate(expiry, labels)
    /** No token is cached. Providers with the same labels share the gauge, so the others set theirs again. */
    const clearExpiry = () => {
      withToken.delete(showExpiry)
      expiry = 0
      for (const show of [showExpiry, ...withToken]) show()
    }

    // Creates all counters with 0, because `increase` of Prometheus does not count the first value of a series.
    for (const outcome of outcomes) count(metrics.acquisitions, "outcome", outcome, 0)
    for (const outcome of ["Dropped", "Kept"]) count(metrics.rejections, "outcome", outcome, 0)
    for (const cause of ["Failure", "NoProgress"]) count(metrics.cooldowns, "cause", cause, 0)
    metrics.callersJoined.unsafeValue(labels)
    metrics.acquisitionDuration.unsafeValue(labels)
    metrics.expiry.unsafeValue(labels)

    return {
      clearExpiry,
      recordEnd: ({ failure, held, inFlight }: Landed) => {
        count(metrics.acquisitions, "outcome", failure?.error ?? "Success")
        metrics.acquisitionDuration.unsafeUpdate(
          (now().monotonic - inFlight.startedAt.monotonic) / 1000,
          labels
        )
        if (failure !== undefined) count(metrics.cooldowns, "cause", "Failure")
        if (failure !== undefined || held === undefined) return
        // No cooldown in the state: the smaller margins of a repeated token delay its next renewal.
        if (held.repeated) count(metrics.cooldowns, "cause", "NoProgress")
        expiry = held.token.expiresAt.epochMillis / 1000
        withToken.add(showExpiry)
        showExpiry()
      },
      /** A caller joins an acquisition that another caller started. */
      countJoin: () => metrics.callersJoined.unsafeUpdate(1, labels),
      countRejection: (outcome: "Dropped" | "Kept") => {
        count(metrics.rejections, "outcome", outcome)
        if (outcome === "Dropped") clearExpiry()
      }
    }
  })
