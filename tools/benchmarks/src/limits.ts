/**
 * `node dist/limits.js hit|cli [--check]`: measures a cached token or the start of the command line. With `--check` it
 * fails above a limit.
 */
import { cachedPathGoals, measureCachedPath } from "./cachedPath.js"
import { coldStartGoal, coldStartTable, compared, measureColdStart } from "./coldStart.js"
import { plain } from "./table.js"

const coldStart = async () => {
  const measured = await measureColdStart(30, compared)
  process.stdout.write(`${plain(coldStartTable(measured))}\n\n`)
  return [coldStartGoal(measured)]
}

const goals = process.argv.includes("cli") ? await coldStart() : cachedPathGoals(await measureCachedPath(3, 600))

for (const { limit, measured, verdict, what } of goals) {
  process.stdout.write(`${what}: ${measured}; limit ${limit}: ${verdict}\n`.replaceAll("`", ""))
}
const missed = goals.some(({ verdict }) => verdict.startsWith("LIMIT"))
process.exitCode = process.argv.includes("--check") && missed ? 1 : 0
