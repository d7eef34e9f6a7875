import type * as Effect from "effect/Effect"
import type { RecordedRequest } from "../RecordedRequest.js"

export interface ObserverService {
  /** The number of requests to keep in `requests`. Default: all. */
  readonly keep: number
  /** Runs before the response is sent, or when the client has gone. `sentBytes` is still 0. */
  readonly onEnd: (request: RecordedRequest) => Effect.Effect<void>
}
