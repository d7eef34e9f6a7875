/** The script of faults. Tests append steps, and requests consume them. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { Fault, Headers, Script } from "../FaultModel.js"
import type { Kind } from "../RecordedRequest.js"
import * as Scenario from "../Scenario.js"
import { areHeaders, isWhole, type Settings } from "./settings.js"

export type FaultQueue = ReturnType<typeof make>

const headersOf = (fault: Fault): Headers => {
  if (fault._tag === "Redirect" && typeof fault.to === "object") return { Location: fault.to.location ?? "" }
  return "headers" in fault ? fault.headers : {}
}

/** Returns why a step cannot be performed. */
const problemOf = (fault: Fault): string | undefined => {
  const { _tag: tag, times } = fault
  const [lowest, highest] = tag === "Redirect" ? [300, 399] : [200, 999]
  if (times !== Infinity && !isWhole(times, 1, Infinity)) {
    return "The `times` of a fault must be a whole number from 1, or Infinity."
  }
  if (tag === "Drip" && !(Duration.toMillis(fault.every) > 0)) return "The time between bytes must be more than zero."
  if (tag === "Flood" && !(fault.bytes >= 0)) return "The `bytes` of a flood must be a number from 0, or Infinity."
  if ("status" in fault && !isWhole(fault.status, lowest, highest)) {
    return `The \`status\` of this fault must be a whole number from ${lowest} to ${highest}.`
  }
  return areHeaders(headersOf(fault)) ? undefined : "The headers of a fault must be ones that HTTP can carry."
}

export const make = (settings: Settings) => {
  const queue: Array<Fault> = []
  return {
    /** Fails with the sentence that says why a step cannot be performed. */
    append: (given: Script | Scenario.Name, times?: number) =>
      Effect.gen(function*() {
        const isName = typeof given === "string"
        if (isName && !Object.hasOwn(Scenario.all, given)) {
          return yield* Effect.fail("The scenario must be a name that the emulator's --list prints.")
        }
        const named = isName ? { scenario: given } : {}
        const { script, tls } = isName ? Scenario.all[given] : { script: given, tls: false }
        const steps = [script].flat().map((step): Fault => ({ ...step, ...named, times: times ?? step.times }))
        if (!settings.tls && (tls || steps.some(({ _tag }) => _tag === "Tls"))) {
          return yield* Effect.fail("This fault needs TLS: start the emulator with `tls: true` or --tls.")
        }
        const problem = steps.map(problemOf).find(Predicate.isNotUndefined)
        if (problem !== undefined) return yield* Effect.fail(problem)
        queue.push(...steps)
      }),
    /**
     * Returns the next step for this place. A `Stale` step applies only to a connection that had an earlier request.
     */
    take: (place: Kind | "connection", isReused = false): Fault | undefined => {
      const index = queue.findIndex(({ _tag, on }) => on === place && (isReused || _tag !== "Stale"))
      const fault = queue[index]
      if (fault) queue.splice(index, 1, ...(fault.times > 1 ? [{ ...fault, times: fault.times - 1 }] : []))
      return fault
    },
    pending: Effect.sync((): ReadonlyArray<Fault> => [...queue]),
    clear: Effect.sync(() => void queue.splice(0))
  }
}
