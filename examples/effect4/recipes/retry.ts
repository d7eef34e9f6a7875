import { AuthorizedHttpClient } from "@store-api/core"
import { Effect, Schedule } from "effect"
import { HttpClient } from "effect/http"

/**
 * The authorized client with retries after a broken connection, a 408, a 429 or most 5xx of the API. Use it only for
 * requests that may arrive twice, such as GET. Each attempt has the token that is valid then.
 */
export const retryingClient = Effect.map(
  AuthorizedHttpClient.AuthorizedHttpClient,
  HttpClient.retryTransient({ schedule: Schedule.exponential("200 millis"), times: 3 })
)
