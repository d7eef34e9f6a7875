import type * as Effect from "effect/Effect"
import type { RecordedRequest } from "../RecordedRequest.js"

export interface ObserverService {
  /** The number of requests to keep in `requests`. Default: all. */
  readonly keep: number
  /** Runs when a request has ended, with or without a response. */
  readonly onEnd: (request: RecordedRequest) => Effect.Effect<void>
}
