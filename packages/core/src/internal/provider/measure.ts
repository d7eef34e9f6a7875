import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberRef from "effect/FiberRef"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import type { AccessTokenError } from "../../AccessTokenError.js"
import * as metrics from "../../AccessTokenMetrics.js"
import type { Held } from "./heldToken.js"
import type { Instant } from "./instant.js"
import type { Landed } from "./tokenState.js"

type Outcome = "Success" | AccessTokenError["_tag"] | "Defect"

const outcomes: ReadonlyArray<Outcome> = [
  "Success",
  "CredentialsError",
  "TokenExpiredError",
  "TokenRefusedError",
  "TokenRequestError",
  "TokenResponseError",
  "Defect"
]

/** The providers of this process that have a token. Each sets the gauge. */
const withToken = new Map<object, () => void>()

/**
 * Updates the metrics with the labels of the fiber that builds the layer. With the labels of callers, the counts of one
 * provider would be split.
 */
export const make = (now: () => Instant) =>
  Effect.map(FiberRef.get(FiberRef.currentMetricLabels), (labels) => {
    const count: Count = (counter, key, value, by = 1) => Metric.tagged(counter, key, value).unsafeUpdate(by, labels)
    const own = {}
    /** No token is cached. Providers with the same labels share the gauge, so the others set theirs again. */
    const clearExpiry = () => {
      withToken.delete(own)
      metrics.expiry.unsafeUpdate(0, labels)
      for (const showAgain of withToken.values()) showAgain()
    }

    createCounters(count)
    metrics.callersJoined.unsafeValue(labels)
    metrics.acquisitionDuration.unsafeValue(labels)
    metrics.expiry.unsafeValue(labels)

    return {
      clearExpiry,
      landed: ({ acquisition, exit }: Landed) => {
        count(metrics.acquisitions, "outcome", outcomeOf(exit))
        metrics.acquisitionDuration.unsafeUpdate((now().monotonic - acquisition.startedAt.monotonic) / 1000, labels)
        if (Exit.isFailure(exit)) {
          count(metrics.cooldowns, "cause", "Failure")
          return
        }
        // No cooldown in the state: the smaller margins of a repeated token delay its next renewal.
        if (exit.value.repeated) count(metrics.cooldowns, "cause", "NoProgress")
        const seconds = exit.value.token.expiresAt.epochMillis / 1000
        const showExpiry = () => metrics.expiry.unsafeUpdate(seconds, labels)
        withToken.set(own, showExpiry)
        showExpiry()
      },
      /** A caller joins an acquisition that another caller started. */
      joined: () => metrics.callersJoined.unsafeUpdate(1, labels),
      rejected: (outcome: "Dropped" | "Kept") => {
        count(metrics.rejections, "outcome", outcome)
        if (outcome === "Dropped") clearExpiry()
      }
    }
  })

type Count = (counter: Metric.Metric.Counter<number>, key: string, value: string, by?: number) => void

/** Creates all counters with 0, because `increase` of Prometheus does not count the first value of a series. */
const createCounters = (count: Count) => {
  for (const outcome of outcomes) count(metrics.acquisitions, "outcome", outcome, 0)
  for (const outcome of ["Dropped", "Kept"]) count(metrics.rejections, "outcome", outcome, 0)
  for (const cause of ["Failure", "NoProgress"]) count(metrics.cooldowns, "cause", cause, 0)
}

const outcomeOf = (exit: Exit.Exit<Held, AccessTokenError>): Outcome =>
  Exit.match(exit, {
    onSuccess: () => "Success",
    onFailure: (cause) =>
      Option.match(Cause.failureOption(cause), { onNone: () => "Defect", onSome: ({ _tag }) => _tag })
  })
