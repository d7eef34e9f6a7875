/** `node benchmarks/dist/hit/main.js [--check]`: a cached token, traced and not. `--check` fails above a limit. */
import { cachedPathGoals, measureCachedPath } from "../cachedPath.js"

const goals = cachedPathGoals(await measureCachedPath(3, 600))

for (const { limit, measured, verdict, what } of goals) {
  process.stdout.write(`${what}: ${measured}; limit ${limit}: ${verdict}\n`.replaceAll("`", ""))
}
const missed = goals.some(({ verdict }) => verdict.startsWith("LIMIT"))
process.exitCode = process.argv.includes("--check") && missed ? 1 : 0
