/** `node benchmarks/dist/cli/main.js [--check]`: the cold start of the command line. `--check` fails at its limit. */
import { plain } from "../table.js"
import { coldStartGoal, coldStartTable, measureColdStart } from "./coldStart.js"

const measured = await measureColdStart(15)
const { limit, measured: figure, verdict, what } = coldStartGoal(measured)

process.stdout.write(`${plain(coldStartTable(measured))}\n\n`)
process.stdout.write(`${what.replaceAll("`", "")}: ${figure}; limit ${limit}: ${verdict}\n`)
process.exitCode = process.argv.includes("--check") && verdict !== "met" ? 1 : 0
