/** The page docs/evidence/benchmarks.md: its tables and figures. */
import * as calls from "./calls.js"
import { coldStartTable } from "./coldStart.js"
import { find, type Goal, goals, times } from "./goals.js"
import type { Spread, Timed } from "./harness.js"
import { callers, delay, life } from "./load.js"
import type { Results } from "./measure.js"
import { fill, type machine, number, table, versionOf } from "./page.js"
import { peers } from "./peers.js"

const packages = [
  "@store-api/core",
  "effect",
  "@effect/platform",
  "@effect/platform-node",
  "@effect/opentelemetry",
  "@opentelemetry/sdk-trace-node",
  "@azure/core-rest-pipeline",
  "@badgateway/oauth2-client",
  "google-auth-library",
  "openid-client",
  "simple-oauth2"
]

const goalTable = (goals: ReadonlyArray<Goal>): string =>
  table(goals, [
    ["what", ({ what }) => what],
    ["goal", ({ goal }) => goal],
    ["limit", ({ limit }) => limit],
    ["measured", ({ measured }) => measured],
    ["verdict", ({ verdict }) => verdict]
  ])

const missedGoals = (goals: ReadonlyArray<Goal>): string => {
  const missed = goals.filter(({ verdict }) => verdict !== "met")
  const lines = missed.map(({ measured, verdict, what }) => `- ${what}: ${verdict}. ${measured}.`)
  if (missed.length === 0) return "All goals are met."
  return `${missed.length} of ${goals.length} goals are not fully met:\n\n${lines.join("\n")}`
}

const nanoseconds = ({ high, low, median }: Spread) => `${number(median)} ns (${number(low)} to ${number(high)})`

export const hitTable = (hits: ReadonlyArray<Timed>, how = ""): string =>
  table(hits, [
    [`per \`yield*\` in one fiber${how}`, ({ name }) => name],
    ["time", ({ ns }) => nanoseconds(ns)],
    ["multiple of `Ref.get` in the same loop", ({ ratio }) => times(ratio)]
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

const peerTable = (results: Results): string => {
  const own = results.calls.find(({ name }) => name === calls.ours)
  const rows = peers.map(({ name }) => ({
    name,
    cached: name === "@store-api/core" ? own : results.calls.find((call) => call.name === name),
    cold: find(results.peerStampedes.filter(({ callers }) => callers === 1000), name),
    load: results.loads.find((load) => load.name === name),
    failure: find(results.peerFailures, name)
  }))
  const shown = (value: number | undefined) => value === undefined ? "not run" : number(value)
  return table(rows, [
    ["", ({ name }) => name],
    ["a cached call", ({ cached }) => cached === undefined ? "n/a: keeps no token" : nanoseconds(cached.ns)],
    [
      "to `Effect.runPromise(get)`",
      ({ cached }) =>
        cached === undefined || own === undefined ? "n/a" : `${number(cached.ns.median / own.ns.median, 2)} ×`
    ],
    ["1 000 callers, cold: token requests", ({ cold }) => number(cold.requests)],
    [
      `token of ${life} s under load: calls that waited`,
      ({ load }) =>
        load === undefined ? "not run" : `${number(load.waited)} of ${number(load.calls)}` +
          (load.waited === 0 ? "" : `, up to ${number(load.longest)} ms`)
    ],
    ["expired tokens", ({ load }) => shown(load?.expired)],
    ["token requests", ({ load }) => shown(load?.requests)],
    ["endpoint fails, token valid: calls lost", ({ failure }) => `${number(failure.lost)} of ${number(failure.calls)}`],
    ["token requests", ({ failure }) => number(failure.requests)]
  ])
}

/** Splits the page into its own sections and that of Effect 4, which is the last and has its own command. */
export const split = (page: string): readonly [own: string, effect4: string] => {
  const [own = ""] = page.split(/\n## Effect 4$/m)
  return [own, page.slice(own.length)]
}

export const document = (
  results: Results,
  { cores, cpu, date, memory, node, platform }: ReturnType<typeof machine>
) => {
  const reached = goals(results)
  return fill("benchmarks", {
    date,
    machine: `${cpu}, ${cores} cores, ${memory}, ${platform}`,
    node,
    versions: packages.map((name) => `${name} ${versionOf(name)}`).join(", "),
    goals: goalTable(reached),
    missed: missedGoals(reached),
    hits: hitTable(results.hits),
    tracedHits: hitTable(results.traced.hits, ", traced"),
    stampedes: stampedeTable(results),
    coldStart: coldStartTable(results.coldStart),
    peers: peerTable(results),
    lifetime: `${life}`,
    delay: `${delay}`,
    callers: `${callers}`,
    seconds: `${results.seconds}`
  })
}
