/**
 * `npm run bench -- fleet`: simulates the fleets, and writes the tables of docs/evidence/fleets.md. The figures are
 * counts on virtual time with seeded randomness, so every run gives the same on every machine. With `--check` it writes
 * nothing, and fails if a table differs. Fails if a count is wrong.
 */
import { availableParallelism } from "node:os"
import { inOwnProcess } from "../harness.js"
import { number, read, report, table, tell, withTables, write } from "../page.js"
import { type count, type Counts, problemsOf, type Scenario, scenarios } from "./scenarios.js"

const counts = new Map<Scenario, Counts>()
const left = [...scenarios]

const work = async (): Promise<void> => {
  for (let scenario = left.shift(); scenario !== undefined; scenario = left.shift()) {
    // Each fleet needs its own heap. Most of its objects are short-lived, so a young generation of this size halves
    // the time.
    const options = { flags: ["--max-semi-space-size=128"], timeout: 900_000 }
    counts.set(scenario, await inOwnProcess<typeof count>("fleet/scenarios.js", "count", [scenario], options))
    tell(`${scenario.table}, ${scenario.setup.processes} processes, ${scenario.what}`)
  }
}

await Promise.all(Array.from({ length: Math.min(availableParallelism(), 2) }, work))

const names = [...new Set(scenarios.map(({ table }) => table))]
const rowsOf = (name: string) => [...counts].filter(([scenario]) => scenario.table === name)
const order = (name: string) => rowsOf(name).sort(([a], [b]) => scenarios.indexOf(a) - scenarios.indexOf(b))

const tableOf = (name: string): string =>
  table(order(name), [
    ["fleet", ([{ what }]) => what],
    ["processes", ([{ setup }]) => number(setup.processes)],
    [
      name === "steady" ? "token requests an hour" : "token requests",
      ([{ perHour }, { requests }]) => number(requests, perHour ? 2 : 0)
    ],
    ["expected", ([{ requests }]) => requests.shown],
    ["most in a second", ([, { mostRequests }]) => number(mostRequests)],
    ["store commands", ([, { commands }]) => number(commands)],
    ["expected", ([{ commands }]) => commands?.shown ?? ""],
    ["most in 100 ms", ([, { mostCommands }]) => number(mostCommands)],
    ["calls that waited", ([, { calls, waited }]) => `${number(waited)} of ${number(calls)}`],
    ["longest wait", ([, { longestWait }]) => `${number(longestWait / 1000, 2)} s`],
    ["failed", ([, { failed }]) => number(failed)]
  ])

const page = withTables(read("fleets.md"), Object.fromEntries(names.map((name) => [name, tableOf(name)])))
const problems = [...counts].flatMap(([scenario, counted]) => problemsOf(scenario, counted))
if (process.argv.includes("--check")) {
  if (read("fleets.md") !== page) problems.push("docs/evidence/fleets.md differs from this run")
} else write("fleets.md", page)
tell("in all")
report(problems)
