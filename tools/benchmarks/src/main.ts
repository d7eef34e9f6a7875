/**
 * `npm run bench`: measures, and writes the tables of docs/evidence/benchmarks.md. With `--quick` it takes less time
 * and prints them instead. Fails only when counts are wrong: token requests, failed calls, expired tokens. They must
 * hold on any machine, also on a slow or busy one.
 *
 * `hit` and `cli` measure only a cached token or the start of the command line. With `--check` they fail above a limit.
 */
import * as cached from "./cached.js"
import { baseline, compared, measureColdStart, type Program, stored } from "./coldStart.js"
import { callers, delay, life, measurePeer } from "./comparison.js"
import { inFlight, measureOutages, measureRevoked } from "./failures.js"
import { acrossProcesses, inOwnProcess, inTurn, merged, type Spread, type Timed } from "./harness.js"
import * as hit from "./hit.js"
import * as page from "./page.js"
import { number, table, tell, times } from "./page.js"
import { peers, store } from "./peers.js"
import { measureSizes } from "./size.js"
import { measureStampede, type Stampede } from "./stampede.js"

/** A figure should be at most the goal, and must be at most the limit. */
type Figure = readonly [value: number, goal: number, limit: number]

/** One row of the table of goals. With `isCount`, the run fails above a limit. */
interface Goal {
  readonly what: string
  readonly figures: ReadonlyArray<Figure>
  readonly measured: string
  readonly unit: string
  readonly of: string
  readonly isCount: boolean
}

/** `unit` has a space before it. `of`: what a ratio is a multiple of. */
const goal = (what: string, figure: Figure, measured: string, unit: string, of = ""): Goal => ({
  ...{ what, figures: [figure], measured, unit, of, isCount: false }
})

const counts = (what: string, figures: ReadonlyArray<Figure>, measured: string): Goal => ({
  ...{ what, figures, measured, unit: "", of: "", isCount: true }
})

// A figure that is not a number is missed.
const isMissed = ({ figures }: Goal) => figures.some(([value, , limit]) => !(value <= limit))

const missedOf = (goals: ReadonlyArray<Goal>): ReadonlyArray<string> =>
  goals.filter(isMissed).map(({ measured, what }) => `${what}: ${measured}`)

const verdictOf = (goal: Goal): string => {
  if (isMissed(goal)) return "LIMIT MISSED"
  return goal.figures.some(([value, goal]) => value > goal) ? "goal missed, within the limit" : "met"
}

const goalTable = (goals: ReadonlyArray<Goal>): string =>
  table(goals, [
    ["what", ({ what }) => what],
    ["goal", ({ figures, of, unit }) => `${figures.map(([, goal]) => `≤ ${goal}${unit}`).join("; ")} ${of}`.trim()],
    ["limit", ({ figures, unit }) => figures.map(([, , most]) => most < Infinity ? `${most}${unit}` : "–").join("; ")],
    ["measured", ({ measured }) => measured],
    ["verdict", verdictOf]
  ])

const find = <A extends { readonly name: string }>(values: ReadonlyArray<A>, name: string): A => {
  const found = values.find((value) => value.name === name)
  if (found === undefined) throw new Error(`${name} was not measured`)
  return found
}

/**
 * Compiled code differs more between processes than within one, so that each measurement runs in several. The
 * measurements take turns, so that other load on the machine affects all alike.
 */
const inProcesses = async <A>(
  names: ReadonlyArray<keyof typeof cached>,
  processes: number,
  millis: number,
  combine: (measured: ReadonlyArray<A>) => A
) => {
  const measured = await inTurn(
    Array.from({ length: processes }),
    () => inTurn(names, (name) => inOwnProcess<(millis: number) => Promise<A>>("cached.js", name, [millis]))
  )
  return names.map((_, index) => combine(measured.flatMap((each) => each.slice(index, index + 1))))
}

type CachedPath = Awaited<ReturnType<typeof measureCachedPath>>

/** `others`: whether the calls are also those of the other libraries. */
const measureCachedPath = async (processes: number, millis: number, others: boolean) => {
  const names = ["hit", others ? "allCalls" : "calls", "tracedHit", "tracedCalls"] as const
  const [hits = [], calls = [], tracedHits = [], tracedCalls = []] = await inProcesses(names, processes, millis, merged)
  return { hits, calls, tracedHits, tracedCalls }
}

const cachedPathGoals = ({ calls, hits, tracedCalls, tracedHits }: CachedPath): ReadonlyArray<Goal> => {
  const ratioTo =
    (of: string, name: string) => (what: string, measured: ReadonlyArray<Timed>, aim: number, limit: number): Goal => {
      const { ns, ratio } = find(measured, name)
      return goal(what, [ratio.median, aim, limit], `${times(ratio)}, ${number(ns.median)} ns`, " ×", of)
    }
  const inOneFiber = ratioTo("`Ref.get`", hit.ours)
  const asPromise = ratioTo("`Effect.runPromise(Effect.succeed(x))`", cached.ours)
  return [
    inOneFiber("`get`, cached, both clocks checked, per `yield*` in one fiber", hits, 2.8, 3.2),
    inOneFiber("cached `get` per `yield*` in one fiber, traced", tracedHits, 2.8, 3.2),
    asPromise("`Effect.runPromise(get)`", calls, 1, 1.2),
    asPromise("`Effect.runPromise(get)`, traced", tracedCalls, 1.1, 1.3)
  ]
}

const coldStartGoal = (measured: ReadonlyArray<Program>): Goal => {
  const { millis, processorRatio, ratio } = find(measured, stored)
  // The ratio of processor times is not a number on systems other than Linux.
  const larger = processorRatio > ratio ? processorRatio : ratio
  const shown = `${number(ratio, 2)} ×, ${number(millis.median)} ms; ${number(processorRatio, 2)} × by processor time`
  return goal("`store-api token` with a stored token, from start to end", [larger, 1.15, 1.25], shown, " ×", baseline)
}

const coldStartTable = (measured: ReadonlyArray<Program>): string =>
  table(measured, [
    ["program", ({ name }) => name],
    ["from start to end", ({ millis }) => page.milliseconds(millis)],
    [`multiple of ${baseline}`, ({ ratio }) => `${number(ratio, 2)} ×`]
  ])

const stampedeGoals = (stampedes: ReadonlyArray<Stampede>): ReadonlyArray<Goal> => {
  // Fewer fibers take less time than a token request, so that a ratio says little.
  const many = stampedes.filter(({ fibers }) => fibers >= 10_000)
  const [one] = stampedes
  const most = number(Math.max(...stampedes.map(({ fibers }) => fibers)))
  const requests = Math.max(...stampedes.map(({ requests }) => requests))
  const more = one === undefined ? Number.NaN : (one.wall.provider - one.wall.deferred) * 1000
  const perFiber = (what: string, ratios: ReadonlyArray<number>): Goal => {
    const [low, high] = [Math.min(...ratios), Math.max(...ratios)]
    const whole = `the same: ${what}, to all awaiting one Deferred, from 10 000 fibers`
    return goal(whole, [high, 1.1, 1.3], `${number(low, 2)} to ${number(high, 2)} ×`, " ×")
  }
  return [
    counts(`cold start, 1 to ${most} fibers: token requests`, [[requests, 1, 1]], `${requests}`),
    perFiber("wall time", many.map(({ wallRatio }) => wallRatio.median)),
    perFiber("heap while all wait", many.map(({ memoryRatio }) => memoryRatio)),
    goal(
      "the same with one fiber: wall time above that of a Deferred",
      [more, 100, Infinity],
      `${number(more)} µs`,
      " µs"
    )
  ]
}

const stampedeTable = (stampedes: ReadonlyArray<Stampede>): string =>
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

type Results = Awaited<ReturnType<typeof measureAll>>

/** With `quick`, it measures for a shorter time, and no other library. */
const measureAll = async (quick: boolean) => {
  const step = <A>(what: string, run: () => Promise<A>): Promise<A> => {
    tell(what)
    return run()
  }
  const processes = quick ? 3 : 5
  const seconds = quick ? 4 : 10
  const fibers = [1, 10, 100, 1000, 10_000, ...(quick ? [] : [100_000])]
  const attached = ["attach", "tracedAttach", "tracedRequest"] as const
  return {
    seconds,
    ...await step("cached token", () => measureCachedPath(processes, quick ? 600 : 1200, !quick)),
    attach: await step(
      "attaching the header",
      () => inProcesses(attached, processes, quick ? 400 : 800, acrossProcesses)
    ),
    coldStart: await step("start of the command line", () => measureColdStart(quick ? 5 : 21)),
    sizes: await step("size", measureSizes),
    stampedes: await step("cold start", () => inTurn(fibers, (count) => measureStampede(count, quick))),
    revoked: await step("all tokens revoked", () => measureRevoked(quick ? 1 : 5)),
    outages: await step("outages around the end of a token", () => measureOutages(quick)),
    peers: await inTurn(quick ? [store] : peers, (peer) => step(peer.name, () => measurePeer(peer, seconds)))
  }
}

const waitedOf = ({ calls, longest, waited }: Results["peers"][number]["load"]) =>
  `${number(waited)} of ${number(calls)}${waited === 0 ? "" : `, up to ${number(longest)} ms`}`

const failureGoals = ({ outages, peers, revoked, seconds }: Results): ReadonlyArray<Goal> => {
  const { cold, load } = find(peers, store.name)
  // A renewal starts no earlier than after three quarters of a token's lifetime.
  const renewals = 1 + Math.floor(seconds / (life * 0.75))
  const { fault, from, recovery } = outages.slowest
  return [
    counts(
      "1 000 promises at once: token requests, failed calls",
      [[cold.requests, 1, 1], [cold.failed, 0, 0]],
      `${cold.requests}; ${cold.failed}`
    ),
    goal(
      `token of ${life} s, endpoint of ${delay} ms, ${callers} callers for ${seconds} s: calls that wait`,
      [load.waited, 0, 0],
      waitedOf(load),
      ""
    ),
    counts(
      "the same: expired tokens, failed calls, token requests",
      [[load.expired, 0, 0], [load.failed, 0, 0], [load.requests, renewals, renewals + 1]],
      `${load.expired}; ${load.failed}; ${load.requests}`
    ),
    counts(
      `endpoint failing for 3 s around the end of a token, ${outages.count} outages: ` +
        "token requests in that time, failed calls that had a valid token",
      [[outages.requests.worst, 6, 8], [outages.lost, 0, 0]],
      `median ${number(outages.requests.median)}, worst ${outages.requests.worst}; ${outages.lost}`
    ),
    goal(
      "the same: first good token after it is back",
      [recovery / 1000, 1, 1.5],
      `median ${number(outages.recovery)} ms, worst ${number(recovery)} ms ` +
        `(${fault}, from ${number(-from, 1)} s before the token's end)`,
      " s"
    ),
    counts(
      `all tokens revoked, ${inFlight} requests in flight; worst of ${revoked.repetitions}: failed calls, token requests`,
      [[revoked.failed, 0, 0], [revoked.tokenRequests, 1, 1]],
      `${revoked.failed}; ${revoked.tokenRequests}; ${revoked.rejected} met 401; ` +
        `all repeated within ${number(revoked.wall)} ms`
    )
  ]
}

const goalsOf = (results: Results): ReadonlyArray<Goal> => {
  const { attach: [plain, traced, request], sizes } = results
  const attaching = (how: string, added: Spread | undefined, aim: number, limit: number): Goal => {
    const shown = added === undefined ? "–" : page.microseconds(added)
    return goal(`attaching \`Authorization\`, ${how}`, [added?.median ?? Number.NaN, aim, limit], shown, " µs")
  }
  const ofSize = (what: string, { gzipped, minified }: typeof sizes.core, aim: number, limit: number): Goal => {
    const shown = `${number(gzipped / 1000, 1)} kB (${number(minified / 1000, 1)} minified)`
    return goal(`own code of ${what}, minified and gzipped, peers left out`, [gzipped / 1000, aim, limit], shown, " kB")
  }
  return [
    ...cachedPathGoals(results),
    ...stampedeGoals(results.stampedes),
    ...failureGoals(results),
    attaching("over a stub client", plain, 1.2, 2),
    attaching("traced", traced, 3, 5),
    attaching("traced, where each request has a span, which shows the header redacted", request, 3, 5),
    coldStartGoal(results.coldStart),
    ofSize("core", sizes.core, 15.5, 17),
    ofSize("`StoreAuth.layer`", sizes.layer, 12.5, 13.8),
    ofSize("`AccessTokenProvider`", sizes.provider, 6, 6.6)
  ]
}

const peerTable = ({ calls, peers }: Results): string => {
  const own = find(calls, cached.ours)
  const rows = peers.map((peer) => ({
    ...peer,
    call: peer.name === store.name ? own : calls.find(({ name }) => name === peer.name)
  }))
  return table(rows, [
    ["", ({ name }) => name],
    ["a cached call", ({ call }) => call === undefined ? "n/a: keeps no token" : page.nanoseconds(call.ns)],
    [
      "to `Effect.runPromise(get)`",
      ({ call }) => call === undefined ? "n/a" : `${number(call.ns.median / own.ns.median, 2)} ×`
    ],
    ["1 000 callers, cold: token requests", ({ cold }) => number(cold.requests)],
    ["token of 2 s under load: calls that waited", ({ load }) => waitedOf(load)],
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
    process.env[name] = process.env[name.toLowerCase()] = ""
  }
  const results = await measureAll(quick)
  const goals = goalsOf(results)
  const tables = {
    machine: page.machine(),
    goals: goalTable(goals),
    hits: page.hitTable(results.hits),
    stampedes: stampedeTable(results.stampedes),
    peers: peerTable(results)
  }
  if (quick) process.stdout.write(Object.values(tables).map((text) => `${text}\n\n`).join(""))
  else page.write(page.benchmarks, page.withTables(page.read(page.benchmarks), tables))
  tell("in all")
  page.report(missedOf(goals.filter(({ isCount }) => isCount)))
}

const part = (goals: ReadonlyArray<Goal>): void => {
  process.stdout.write(`${goalTable(goals)}\n`)
  if (process.argv.includes("--check")) page.report(missedOf(goals))
}

if (process.argv.includes("hit")) part(cachedPathGoals(await measureCachedPath(3, 600, false)))
else if (process.argv.includes("cli")) {
  const measured = await measureColdStart(20, compared)
  process.stdout.write(`${coldStartTable(measured)}\n\n`)
  part([coldStartGoal(measured)])
} else await all()
