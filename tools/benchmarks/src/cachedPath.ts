/** The goals and limits for a cached token. Each is a ratio to a baseline in the same process. */
import * as calls from "./calls.js"
import { inOwnProcess, merged, type Spread } from "./harness.js"
import * as hit from "./hit.js"
import type { Measurement } from "./roundsProcess.js"
import { type Goal, number, verdict } from "./table.js"

export interface Hits {
  readonly hits: ReadonlyArray<hit.Hit>
  readonly calls: ReadonlyArray<calls.Call>
}

export interface CachedPath extends Hits {
  readonly traced: Hits
}

export const hitGoal = 2.8
export const hitLimit = 3.2

const promised = { goal: 1, limit: 1.2 }
const promisedTraced = { goal: 1.1, limit: 1.3 }

/** The processes per measurement. They take turns, so that other load on the machine affects all measurements alike. */
export const measureCachedPath = async (processes: number, millis: number): Promise<CachedPath> => {
  const once = <A>(what: Measurement) => inOwnProcess<ReadonlyArray<A>>("roundsProcess.js", [what, `${millis}`])
  const rounds: Array<CachedPath> = []
  for (let i = 0; i < processes; i++) {
    rounds.push({
      hits: await once("hit"),
      calls: await once("ownCalls"),
      traced: { hits: await once("tracedHit"), calls: await once("tracedCalls") }
    })
  }
  const across = (part: (path: CachedPath) => ReadonlyArray<hit.Hit>) => merged(rounds.map(part))
  return {
    hits: across(({ hits }) => hits),
    calls: across(({ calls }) => calls),
    traced: { hits: across(({ traced }) => traced.hits), calls: across(({ traced }) => traced.calls) }
  }
}

export const times = ({ high, low, median }: Spread, digits = 2) =>
  `${number(median, digits)} × (${number(low, digits)} to ${number(high, digits)})`

export const find = <A extends { readonly name: string }>(values: ReadonlyArray<A>, name: string): A => {
  const found = values.find((value) => value.name === name)
  if (found === undefined) throw new Error(`${name} was not measured`)
  return found
}

const inOneFiber = (what: string, hits: ReadonlyArray<hit.Hit>): Goal => {
  const own = find(hits, hit.ours)
  const repeated = find(hits, hit.repeated)
  return {
    what,
    goal: `${hitGoal} × \`Ref.get\``,
    limit: `${hitLimit} ×`,
    measured: `${times(own.ratio)}, ${number(own.ns.median)} ns; by \`Effect.repeatN\` ${times(repeated.ratio)}`,
    verdict: verdict(own.ratio.median, hitGoal, hitLimit)
  }
}

const asPromise = (what: string, measured: ReadonlyArray<calls.Call>, { goal, limit }: typeof promised): Goal => {
  const { ns, ratio } = find(measured, calls.ours)
  return {
    what,
    goal: `${goal} × \`Effect.runPromise(Effect.succeed(x))\``,
    limit: `${limit} ×`,
    measured: `${times(ratio)}, ${number(ns.median)} ns`,
    verdict: verdict(ratio.median, goal, limit)
  }
}

export const cachedPathGoals = ({ calls, hits, traced }: CachedPath): ReadonlyArray<Goal> => [
  inOneFiber("`get`, cached, both clocks checked, per `yield*` in one fiber", hits),
  inOneFiber("cached `get` per `yield*` in one fiber, traced", traced.hits),
  asPromise("`Effect.runPromise(get)`", calls, promised),
  asPromise("`Effect.runPromise(get)`, traced", traced.calls, promisedTraced)
]
