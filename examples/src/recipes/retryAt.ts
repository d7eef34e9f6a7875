import { AccessTokenError } from "@store-api/core"
import { Clock, Effect, Option, Schedule } from "effect"

/** Up to `times` retries of transient errors, each at the error's `retryAt`, or after a second without one. */
export const atRetryAt = (times: number) =>
  Schedule.identity<unknown>().pipe(
    Schedule.addDelayEffect((error) =>
      Effect.map(Clock.currentTimeMillis, (now) =>
        Option.match(AccessTokenError.retryAt(error), {
          onNone: () => 1000,
          onSome: (at) => Math.max(at.epochMillis - now, 0)
        }))
    ),
    Schedule.whileInput(AccessTokenError.isTransient),
    Schedule.intersect(Schedule.recurs(times))
  )
