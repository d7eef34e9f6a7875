/** The script of faults: appended to by a test, used up by requests. */
import { validateHeaderName, validateHeaderValue } from "node:http"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Fault from "../Fault.js"
import type { Kind } from "../RecordedRequest.js"
import type { Settings } from "./settings.js"

export interface FaultQueue {
  readonly append: (script: Fault.Script) => Effect.Effect<void>
  /** The next step for this place; one for a connection that was used before only if this one was. */
  readonly take: (place: Kind | "connection", reused?: boolean) => Option.Option<Fault.Fault>
  readonly pending: Effect.Effect<ReadonlyArray<Fault.Fault>>
  readonly clear: Effect.Effect<void>
}

/** A step that could not be sent is a mistake in a test, and is told where it was made, not where it would act. */
const check = (settings: Settings) => (fault: Fault.Fault): Effect.Effect<void> => {
  if (fault.times !== Infinity && !(Number.isInteger(fault.times) && fault.times > 0)) {
    return Effect.dieMessage("The `times` of a fault must be a whole number from 1, or Infinity.")
  }
  if (fault._tag === "Tls" && !settings.tls) {
    return Effect.dieMessage("This fault is one of TLS: start the emulator with `tls: true`.")
  }
  if (fault._tag === "Drip" && !Duration.greaterThan(fault.every, 0)) {
    return Effect.dieMessage("The time between two bytes must be more than zero.")
  }
  if (fault._tag === "Flood" && !(fault.bytes >= 0)) {
    return Effect.dieMessage("The `bytes` of a flood must be a number from 0, or Infinity.")
  }
  const [lowest, highest] = fault._tag === "Redirect" ? [300, 399] : [200, 999]
  if ("status" in fault && (!Number.isInteger(fault.status) || fault.status < lowest || fault.status > highest)) {
    return Effect.dieMessage(`The \`status\` of this fault must be a whole number from ${lowest} to ${highest}.`)
  }
  return Effect.sync(() => {
    const headers = headersOf(fault)
    for (const [name, values] of Object.entries(headers)) {
      validateHeaderName(name)
      for (const value of typeof values === "string" ? [values] : values) validateHeaderValue(name, value)
    }
  })
}

const headersOf = (fault: Fault.Fault): Fault.Headers => {
  if (fault._tag === "Answer" || fault._tag === "Amend") return fault.headers
  return fault._tag === "Redirect" && typeof fault.to === "object" && fault.to.location !== undefined
    ? { Location: fault.to.location }
    : {}
}

export const make = (settings: Settings): FaultQueue => {
  let queue: ReadonlyArray<Fault.Fault> = []

  const take: FaultQueue["take"] = (place, reused = false) => {
    const index = queue.findIndex((fault) => fault.on === place && (reused || fault._tag !== "Stale"))
    const fault = queue[index]
    if (fault === undefined) return Option.none()
    const rest = fault.times > 1 ? [{ ...fault, times: fault.times - 1 }] : []
    queue = [...queue.slice(0, index), ...rest, ...queue.slice(index + 1)]
    return Option.some(fault)
  }

  return {
    append: (script) => {
      const steps = "_tag" in script ? [script] : script
      return Effect.zipRight(
        Effect.forEach(steps, check(settings), { discard: true }),
        Effect.sync(() => {
          queue = [...queue, ...steps]
        })
      )
    },
    take,
    pending: Effect.sync(() => queue),
    clear: Effect.sync(() => {
      queue = []
    })
  }
}
