/** The goals and limits with their measured figures. Counts must hold on any machine, also on a slow or busy one. */
import * as cached from "./cached.js"
import { baseline, type Program, stored } from "./coldStart.js"
import { callers, delay, life } from "./comparison.js"
import { inFlight } from "./failures.js"
import type { Spread, Timed } from "./harness.js"
import * as hit from "./hit.js"
import type { CachedPath, Results } from "./measure.js"
import { number, times } from "./page.js"

/** A figure should be at most the goal, and must be at most the limit. */
type Figure = readonly [value: number, goal: number, limit: number]

/** One row of the table of goals. */
export interface Goal {
  readonly what: string
  readonly figures: ReadonlyArray<Figure>
  /** With a space before it. */
  readonly unit?: string
  /** What a ratio is a multiple of. */
  readonly of?: string
  readonly measured: string
  /** Whether the run fails above the limit. */
  readonly isCount?: true
}

const [missed, within] = ["LIMIT MISSED", "goal missed, within the limit"]

export const verdictOf = ({ figures }: Goal): string =>
  // A figure that is not a number is missed.
  figures.some(([value, , limit]) => !(value <= limit))
    ? missed
    : figures.some(([value, goal]) => value > goal)
    ? within
    : "met"

/** The goals whose limit is missed. */
export const missedOf = (goals: ReadonlyArray<Goal>): ReadonlyArray<string> =>
  goals.filter((goal) => verdictOf(goal) === missed).map(({ measured, what }) => `${what}: ${measured}`)

export const goalText = ({ figures, of, unit = "" }: Goal): string =>
  figures.map(([, goal]) => `≤ ${goal}${unit}`).join("; ") + (of === undefined ? "" : ` ${of}`)

export const limitText = ({ figures, unit = "" }: Goal): string =>
  figures.map(([, , limit]) => limit === Infinity ? "–" : `${limit}${unit}`).join("; ")

export const find = <A extends { readonly name: string }>(values: ReadonlyArray<A>, name: string): A => {
  const found = values.find((value) => value.name === name)
  if (found === undefined) throw new Error(`${name} was not measured`)
  return found
}

const ratioTo =
  (of: string, name: string) => (what: string, measured: ReadonlyArray<Timed>, goal: number, limit: number): Goal => {
    const { ns, ratio } = find(measured, name)
    const figures: Goal["figures"] = [[ratio.median, goal, limit]]
    return { what, figures, unit: " ×", of, measured: `${times(ratio)}, ${number(ns.median)} ns` }
  }

const inOneFiber = ratioTo("`Ref.get`", hit.ours)
const asPromise = ratioTo("`Effect.runPromise(Effect.succeed(x))`", cached.ours)

export const cachedPathGoals = ({ calls, hits, traced }: CachedPath): ReadonlyArray<Goal> => [
  inOneFiber("`get`, cached, both clocks checked, per `yield*` in one fiber", hits, 2.8, 3.2),
  inOneFiber("cached `get` per `yield*` in one fiber, traced", traced.hits, 2.8, 3.2),
  asPromise("`Effect.runPromise(get)`", calls, 1, 1.2),
  asPromise("`Effect.runPromise(get)`, traced", traced.calls, 1.1, 1.3)
]

export const coldStartGoal = (measured: ReadonlyArray<Program>): Goal => {
  const { millis, processorRatio, ratio } = find(measured, stored)
  return {
    what: "`store-api token` with a stored token, from start to end",
    // The ratio of processor times is not a number on systems other than Linux.
    figures: [[processorRatio > ratio ? processorRatio : ratio, 1.15, 1.25]],
    unit: " ×",
    of: baseline,
    measured: `${number(ratio, 2)} ×, ${number(millis.median)} ms; ${number(processorRatio, 2)} × by processor time`
  }
}

const stampedeGoals = (stampedes: Results["stampedes"]): ReadonlyArray<Goal> => {
  // Fewer fibers take less time than a token request, so that a ratio says little.
  const many = stampedes.filter(({ fibers }) => fibers >= 10_000)
  const [one] = stampedes
  const requests = Math.max(...stampedes.map(({ requests }) => requests))
  const more = one === undefined ? Number.NaN : (one.wall.provider - one.wall.deferred) * 1000
  const perFiber = (what: string, ratios: ReadonlyArray<number>): Goal => ({
    what: `the same: ${what}, to all awaiting one Deferred, from 10 000 fibers`,
    figures: [[Math.max(...ratios), 1.1, 1.3]],
    unit: " ×",
    measured: `${number(Math.min(...ratios), 2)} to ${number(Math.max(...ratios), 2)} ×`
  })
  return [
    {
      what: `cold start, 1 to ${number(Math.max(...stampedes.map(({ fibers }) => fibers)))} fibers: token requests`,
      ...{ figures: [[requests, 1, 1]], measured: `${requests}`, isCount: true }
    },
    perFiber("wall time", many.map(({ wallRatio }) => wallRatio.median)),
    perFiber("heap while all wait", many.map(({ memoryRatio }) => memoryRatio)),
    {
      what: "the same with one fiber: wall time above that of a Deferred",
      ...{ figures: [[more, 100, Infinity]], unit: " µs", measured: `${number(more)} µs` }
    }
  ]
}

const failureGoals = ({ outages, peers, revoked, seconds }: Results): ReadonlyArray<Goal> => {
  const { cold, load } = find(peers, "@store-api/core")
  // A renewal starts no earlier than after three quarters of a token's lifetime.
  const renewals = 1 + Math.floor(seconds / (life * 0.75))
  return [
    {
      what: "1 000 promises at once: token requests, failed calls",
      figures: [[cold.requests, 1, 1], [cold.failed, 0, 0]],
      ...{ measured: `${cold.requests}; ${cold.failed}`, isCount: true }
    },
    {
      what: `token of ${life} s, endpoint of ${delay} ms, ${callers} callers for ${seconds} s: calls that wait`,
      figures: [[load.waited, 0, 0]],
      measured: `${number(load.waited)} of ${number(load.calls)}` +
        (load.waited === 0 ? "" : ` (at most ${number(load.longest)} ms)`)
    },
    {
      what: "the same: expired tokens, failed calls, token requests",
      figures: [[load.expired, 0, 0], [load.failed, 0, 0], [load.requests, renewals, renewals + 1]],
      ...{ measured: `${load.expired}; ${load.failed}; ${load.requests}`, isCount: true }
    },
    {
      what: `endpoint failing for 3 s around the end of a token, ${outages.count} outages: ` +
        "token requests in that time, failed calls that had a valid token",
      figures: [[outages.requests.worst, 6, 8], [outages.lost, 0, 0]],
      measured: `median ${number(outages.requests.median)}, worst ${outages.requests.worst}; ${outages.lost}`,
      isCount: true
    },
    {
      what: "the same: first good token after it is back",
      figures: [[outages.slowest.recovery / 1000, 1, 1.5]],
      unit: " s",
      measured: `median ${number(outages.recovery)} ms, worst ${number(outages.slowest.recovery)} ms ` +
        `(${outages.slowest.fault}, from ${number(-outages.slowest.from, 1)} s before the token's end)`
    },
    {
      what: `all tokens revoked, ${inFlight} requests in flight; worst of ${revoked.repetitions}: ` +
        "failed calls, token requests",
      figures: [[revoked.failed, 0, 0], [revoked.tokenRequests, 1, 1]],
      measured: `${revoked.failed}; ${revoked.tokenRequests}; ${revoked.rejected} met 401; ` +
        `all repeated within ${number(revoked.wall)} ms`,
      isCount: true
    }
  ]
}

const attaching = (how: string, added: Spread, goal: number, limit: number): Goal => ({
  what: `attaching \`Authorization\`, ${how}`,
  ...{
    figures: [[added.median, goal, limit]],
    unit: " µs",
    measured: `${number(added.median, 2)} µs (${number(added.low, 2)} to ${number(added.high, 2)})`
  }
})

export const goals = (results: Results): ReadonlyArray<Goal> => {
  const { attach, sizes } = results
  const ofSize = (what: string, part: keyof typeof sizes, goal: number, limit: number): Goal => {
    const { gzipped, minified } = sizes[part]
    return {
      what: `own code of ${what}, minified and gzipped, peers left out`,
      figures: [[gzipped / 1000, goal, limit]],
      unit: " kB",
      measured: `${number(gzipped / 1000, 1)} kB (${number(minified / 1000, 1)} minified)`
    }
  }
  return [
    ...cachedPathGoals(results),
    ...stampedeGoals(results.stampedes),
    ...failureGoals(results),
    attaching("over a stub client", attach.plain, 1.2, 2),
    attaching("traced", attach.traced, 3, 5),
    attaching("traced, where each request has a span, which shows the header redacted", attach.request, 3, 5),
    coldStartGoal(results.coldStart),
    ofSize("core", "core", 15.5, 17),
    ofSize("`StoreAuth.layer`", "layer", 12.5, 13.8),
    ofSize("`AccessTokenProvider`", "provider", 6, 6.6)
  ]
}
