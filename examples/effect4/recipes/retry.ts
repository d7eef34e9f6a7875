import { AccessTokenError, AuthorizedHttpClient } from "@store-api/core"
import { Clock, Effect, Option, Schedule } from "effect"
import { HttpClient } from "effect/http"

/** Up to `times` retries of transient errors, each at the error's `retryAt`, or after a second without one. */
export const atRetryAt = (times: number) =>
  Schedule.recurs(times).pipe(
    Schedule.passthrough,
    Schedule.addDelay(({ output: error }) =>
      Effect.map(Clock.currentTimeMillis, (now) =>
        Option.match(AccessTokenError.retryAt(error), {
          onNone: () =>
            1000,
          onSome: (at) => Math.max(at.epochMilliseconds - now, 0)
        }))
    ),
    Schedule.while(({ input }) =>
      AccessTokenError.isTransient(input)
    )
  )

/**
 * The authorized client with retries after a broken connection, a 408, a 429 or most 5xx of the API. Use it only for
 * requests that may arrive twice, such as GET. Each attempt has the token that is valid then.
 */
export const retryingClient = Effect.map(
  AuthorizedHttpClient.AuthorizedHttpClient,
  HttpClient.retryTransient({ schedule: Schedule.exponential("200 millis"), times: 3 })
)
