/** The process in which one of the measurements in alternating rounds runs: `hit | calls | attach`, milliseconds. */
import { measureAttach } from "./attach.js"
import { measureCalls } from "./calls.js"
import { measureHit } from "./hit.js"

const measurements = { hit: measureHit, calls: measureCalls, attach: measureAttach }

const [what = "hit", millis = "1000"] = process.argv.slice(2)

process.stdout.write(JSON.stringify(await measurements[what as keyof typeof measurements](Number(millis))))
