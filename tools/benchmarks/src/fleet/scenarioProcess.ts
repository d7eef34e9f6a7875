/** The process of one scenario, whose name is its argument. Each fleet needs its own heap. */
import { run, scenarios } from "./scenarios.js"

const [, , name = ""] = process.argv
const scenario = scenarios[name]
if (scenario === undefined) throw new Error(`Unknown scenario ${name}`)

process.stdout.write(JSON.stringify(await run(scenario)))
