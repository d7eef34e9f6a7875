import type * as Effect from "effect/Effect"
import type { RecordedRequest } from "../RecordedRequest.js"

export interface Observing {
  /** The number of requests to remember. Default all. */
  readonly keep: number
  /** Runs when a request has been answered, or has ended without an answer. */
  readonly onEnd: (request: RecordedRequest) => Effect.Effect<void>
}
