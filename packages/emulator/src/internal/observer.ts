/** How the command line sees requests pass. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { RecordedRequest } from "../RecordedRequest.js"

export interface Observing {
  /** How many requests to remember: all in a test, few in a process that runs for days. */
  readonly keep: number
  /** Runs when a request has been answered, or has ended without. */
  readonly onEnd: (request: RecordedRequest) => Effect.Effect<void>
}

/** Read once, when an emulator starts. */
export class Observer extends Context.Reference<Observer>()("@store-api/emulator/Observer", {
  defaultValue: (): Observing => ({ keep: Infinity, onEnd: () => Effect.void })
}) {}
