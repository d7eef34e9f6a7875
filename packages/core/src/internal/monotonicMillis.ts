import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Reads the monotonic clock, in milliseconds. */
export const monotonicMillis = /* @__PURE__ */ Effect.map(
  Clock.currentTimeNanos,
  (nanos) => Number(nanos) / 1e6
)
