/** The process in which one of the scenarios runs: its name. A fleet fills a heap of its own. */
import { run, scenarios } from "./scenarios.js"

const [, , name = ""] = process.argv
const scenario = scenarios[name]
if (scenario === undefined) throw new Error(`There is no scenario ${name}`)

process.stdout.write(JSON.stringify(await run(scenario)))
