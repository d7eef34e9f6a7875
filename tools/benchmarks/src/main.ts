/**
 * `npm run bench`: measures, and writes the tables of docs/evidence/benchmarks.md. With `--quick` it takes less time
 * and prints them instead. Fails only when counts are wrong: token requests, failed calls, expired tokens.
 *
 * `hit` and `cli` measure only a cached token or the start of the command line. With `--check` they fail above a limit.
 */
import * as cached from "./cached.js"
import { coldStartTable, compared, measureColdStart } from "./coldStart.js"
import {
  cachedPathGoals,
  coldStartGoal,
  find,
  type Goal,
  goals,
  goalText,
  limitText,
  missedOf,
  verdictOf
} from "./goals.js"
import { measureAll, measureCachedPath, type Results } from "./measure.js"
import * as page from "./page.js"
import { number, table, times } from "./page.js"

const print = (text: string) => process.stdout.write(`${text}\n`)

const goalTable = (goals: ReadonlyArray<Goal>): string =>
  table(goals, [
    ["what", ({ what }) => what],
    ["goal", goalText],
    ["limit", limitText],
    ["measured", ({ measured }) => measured],
    ["verdict", verdictOf]
  ])

const stampedeTable = ({ stampedes }: Results): string =>
  table(stampedes, [
    ["fibers", ({ fibers }) => number(fibers)],
    ["token requests", ({ requests }) => `${requests}`],
    ["wall, provider", ({ wall }) => `${number(wall.provider, 2)} ms`],
    ["wall, one Deferred", ({ wall }) => `${number(wall.deferred, 2)} ms`],
    ["ratio", ({ wallRatio }) => times(wallRatio)],
    ["heap, provider", ({ bytes }) => `${number(bytes.provider)} B per fiber`],
    ["heap, one Deferred", ({ bytes }) => `${number(bytes.deferred)} B per fiber`],
    ["ratio", ({ memoryRatio }) => `${number(memoryRatio, 2)} ×`]
  ])

const peerTable = ({ calls, peers }: Results): string => {
  const own = find(calls, cached.ours)
  const callOf = (name: string) => name === "@store-api/core" ? own : calls.find((call) => call.name === name)
  return table(peers.map((peer) => ({ ...peer, call: callOf(peer.name) })), [
    ["", ({ name }) => name],
    ["a cached call", ({ call }) => call === undefined ? "n/a: keeps no token" : page.nanoseconds(call.ns)],
    [
      "to `Effect.runPromise(get)`",
      ({ call }) => call === undefined ? "n/a" : `${number(call.ns.median / own.ns.median, 2)} ×`
    ],
    ["1 000 callers, cold: token requests", ({ cold }) => number(cold.requests)],
    [
      "token of 2 s under load: calls that waited",
      ({ load }) =>
        `${number(load.waited)} of ${number(load.calls)}` +
        (load.waited === 0 ? "" : `, up to ${number(load.longest)} ms`)
    ],
    ["expired tokens", ({ load }) => number(load.expired)],
    ["token requests", ({ load }) => number(load.requests)],
    ["endpoint fails, token valid: calls lost", ({ failure }) => `${number(failure.lost)} of ${number(failure.calls)}`],
    ["token requests", ({ failure }) => number(failure.requests)]
  ])
}

const all = async (): Promise<void> => {
  const quick = process.argv.includes("--quick")
  // Everything is on this machine, but some libraries would use a proxy.
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]) {
    process.env[name] = ""
    process.env[name.toLowerCase()] = ""
  }
  const results = await measureAll(quick)
  const judged = goals(results)
  const tables = {
    machine: page.machine(),
    goals: goalTable(judged),
    hits: page.hitTable(results.hits),
    tracedHits: page.hitTable(results.traced.hits, ", traced"),
    stampedes: stampedeTable(results),
    coldStart: coldStartTable(results.coldStart),
    peers: peerTable(results)
  }
  if (quick) { for (const text of Object.values(tables)) print(`${text}\n`) }
  else page.write("benchmarks.md", page.withTables(page.read("benchmarks.md"), tables))
  page.tell("in all")
  page.report(missedOf(judged.filter(({ isCount }) => isCount)))
}

const part = (goals: ReadonlyArray<Goal>): void => {
  print(goalTable(goals))
  if (process.argv.includes("--check")) page.report(missedOf(goals))
}

if (process.argv.includes("hit")) part(cachedPathGoals(await measureCachedPath({ processes: 3, millis: 600 }, false)))
else if (process.argv.includes("cli")) {
  const measured = await measureColdStart(20, compared)
  print(`${coldStartTable(measured)}\n`)
  part([coldStartGoal(measured)])
} else await all()
