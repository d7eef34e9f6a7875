/** The process in which one of the measurements in alternating rounds runs: its name and milliseconds. */
import { measureAttach, withSpans } from "./attach.js"
import { measureCalls, measureCallsWithin, measureOwnCalls } from "./calls.js"
import { measureHit } from "./hit.js"
import { apiRequest, traced } from "./telemetry.js"

const measurements = {
  hit: (millis: number) => measureHit(millis),
  calls: measureCalls,
  ownCalls: measureOwnCalls,
  attach: (millis: number) => measureAttach(millis),
  tracedHit: (millis: number) => traced((run) => measureHit(millis, run)),
  tracedCalls: (millis: number) => traced((run) => measureCallsWithin(millis, run)),
  tracedAttach: (millis: number) => traced((run) => measureAttach(millis, run)),
  tracedRequest: (millis: number) => traced((run) => measureAttach(millis, run, withSpans), [apiRequest])
}

export type Measurement = keyof typeof measurements

const [what = "hit", millis = "1000"] = process.argv.slice(2)

process.stdout.write(JSON.stringify(await measurements[what as Measurement](Number(millis))))
