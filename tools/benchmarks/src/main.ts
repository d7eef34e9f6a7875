/**
 * `npm run bench`: measures, and writes docs/evidence/benchmarks.md. With `--quick` it takes less time and prints the
 * page instead. Fails only when counts are wrong: token requests, failed calls, expired tokens.
 *
 * `hit` and `cli` measure only a cached token or the start of the command line. With `--check` they fail above a limit.
 */
import { coldStartTable, compared, measureColdStart } from "./coldStart.js"
import { broken, cachedPathGoals, coldStartGoal, type Goal } from "./goals.js"
import { measureAll, measureCachedPath } from "./measure.js"
import { machine, read, report, tell, write } from "./page.js"
import { document, split } from "./report.js"

const print = (text: string) => process.stdout.write(`${text}\n`)

const all = async (): Promise<void> => {
  const quick = process.argv.includes("--quick")
  // Everything is on this machine, but some libraries would use a proxy.
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]) {
    process.env[name] = ""
    process.env[name.toLowerCase()] = ""
  }
  const results = await measureAll(quick, tell)
  const page = document(results, machine())
  print(page)
  if (!quick) {
    const [, effect4] = split(read("benchmarks.md"))
    write({ "benchmarks.md": page + effect4 })
  }
  tell("in all")
  report(broken(results))
}

const part = (goals: ReadonlyArray<Goal>): void => {
  for (const { limit, measured, verdict, what } of goals) print(`${what}: ${measured}; limit ${limit}: ${verdict}`)
  const missed = goals.filter(({ verdict }) => verdict.startsWith("LIMIT")).map(({ what }) => what)
  if (process.argv.includes("--check")) report(missed)
}

if (process.argv.includes("hit")) part(cachedPathGoals(await measureCachedPath({ processes: 3, millis: 600 }, false)))
else if (process.argv.includes("cli")) {
  const measured = await measureColdStart(20, compared)
  print(`${coldStartTable(measured)}\n`)
  part([coldStartGoal(measured)])
} else await all()
