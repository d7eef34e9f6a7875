/** The script of faults: appended to by a test, used up by requests. */
import { validateHeaderName, validateHeaderValue } from "node:http"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Fault from "../Fault.js"
import type { Kind } from "../RecordedRequest.js"

export interface FaultQueue {
  readonly append: (script: Fault.Script) => Effect.Effect<void>
  readonly take: (kind: Kind) => Effect.Effect<Option.Option<Fault.Fault>>
  readonly pending: Effect.Effect<ReadonlyArray<Fault.Fault>>
  readonly clear: Effect.Effect<void>
}

/** A step that could not be sent is a mistake in a test, and is told where it was made, not where it would act. */
const check = (fault: Fault.Fault): Effect.Effect<void> => {
  if (fault.times !== Infinity && !(Number.isInteger(fault.times) && fault.times > 0)) {
    return Effect.dieMessage("The `times` of a fault must be a whole number from 1, or Infinity.")
  }
  if (fault._tag !== "Answer") return Effect.void
  const { headers, status } = fault
  if (!Number.isInteger(status) || status < 200 || status > 999) {
    return Effect.dieMessage("The `status` of a fault must be a whole number from 200 to 999.")
  }
  return Effect.sync(() => {
    for (const [name, values] of Object.entries(headers)) {
      validateHeaderName(name)
      for (const value of typeof values === "string" ? [values] : values) validateHeaderValue(name, value)
    }
  })
}

export const make = (): FaultQueue => {
  let queue: ReadonlyArray<Fault.Fault> = []

  const take = (kind: Kind) =>
    Effect.sync(() => {
      const index = queue.findIndex((fault) => fault.on === kind)
      const fault = queue[index]
      if (fault === undefined) return Option.none()
      const rest = fault.times > 1 ? [{ ...fault, times: fault.times - 1 }] : []
      queue = [...queue.slice(0, index), ...rest, ...queue.slice(index + 1)]
      return Option.some(fault)
    })

  return {
    append: (script) => {
      const steps = "_tag" in script ? [script] : script
      return Effect.zipRight(
        Effect.forEach(steps, check, { discard: true }),
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
