/**
 * `npm run bench`: measures, and writes the tables of docs/evidence/benchmarks.md. Fails only when counts are wrong:
 * token requests, failed calls, expired tokens. They must hold on any machine, also on a slow or busy one.
 *
 * `hit` and `cli` measure only a cached token or the start of the command line. With `--check` they fail above a limit.
 */
import * as cached from "./cached.js"
import { baseline, type ColdStart, measureColdStart } from "./coldStart.js"
import { callers, delay, life, measureOutage, measurePeer } from "./comparison.js"
import { inOwnProcess, inTurn, max, merged, spread, sum, type Timed } from "./harness.js"
import * as hit from "./hit.js"
import * as page from "./page.js"
import { peers, store } from "./peers.js"
import { measureStampede, type Stampede } from "./stampede.js"

/** A figure should be at most the goal, and must be at most the limit. */
type Figure = readonly [value: number, goal: number, limit: number]

/** One row of the table of goals: its unit has a space before it. A wrong count fails the whole run. */
interface Goal {
  readonly what: string
  readonly figures: ReadonlyArray<Figure>
  readonly measured: string
  readonly unit?: string
  readonly isCount?: true
}

// A figure that is not a number is missed.
const missedOf = (goals: ReadonlyArray<Goal>): ReadonlyArray<string> =>
  goals.filter(({ figures }) => figures.some(([value, , limit]) => !(value <= limit)))
    .map(({ measured, what }) => `${what}: ${measured}`)

const verdictOf = (goal: Goal): string => {
  if (missedOf([goal]).length > 0) return "LIMIT MISSED"
  return goal.figures.some(([value, goal]) => value > goal)
    ? "goal missed, within the limit"
    : "met"
}

const goalTable = (goals: ReadonlyArray<Goal>): string =>
  page.table(goals, [
    ["what", ({ what }) => what],
    ["goal", ({ figures, unit = "" }) =>
      figures.map(([, goal]) => `≤ ${goal}${unit}`).join("; ")],
    ["limit", ({ figures, unit = "" }) =>
      figures.map(([, , limit]) =>
        `${limit}${unit}`
      ).join("; ")],
    ["measured", ({ measured }) =>
      measured],
    ["verdict", verdictOf]
  ])

const find = <A extends { readonly name: string }>(
  values: ReadonlyArray<A>,
  name: string
): A => {
  const found = values.find((value) => value.name === name)
  if (found === undefined) throw new Error(`${name} was not measured`)
  return found
}

/**
 * Compiled code differs more between processes than within one, so that each measurement runs in several. The
 * measurements take turns, so that other load on the machine affects all alike.
 */
const measureCached = async (
  names: ReadonlyArray<keyof typeof cached>,
  processes: number,
  millis: number
) => {
  const measured = await inTurn(
    Array.from({ length: processes }),
    () =>
      inTurn(
        names,
        (name) =>
          inOwnProcess<(_: number) => Promise<ReadonlyArray<Timed>>>("cached.js", name, [
            millis
          ])
      )
  )
  return names.map((_, index) =>
    merged(measured.flatMap((each) => each.slice(index, index + 1)))
  )
}

const cachedGoals = (
  [hits = [], calls = []]: ReadonlyArray<ReadonlyArray<Timed>>
): ReadonlyArray<Goal> => {
  const goal = (
    what: string,
    unit: string,
    { ns, ratio }: Timed,
    aim: number,
    limit: number
  ): Goal => (
    {
      what,
      figures: [[ratio.median, aim, limit]],
      measured: `${page.times(ratio)}, ${page.number(ns.median)} ns`,
      unit
    }
  )
  const [inOneFiber, asPromise] = [find(hits, hit.ours), find(calls, cached.ours)]
  return [
    goal(
      "`get`, cached, both clocks checked, per `yield*` in one fiber",
      " × `Ref.get`",
      inOneFiber,
      2.8,
      3.2
    ),
    goal(
      "`Effect.runPromise(get)`",
      " × `Effect.runPromise(Effect.succeed(x))`",
      asPromise,
      1,
      1.2
    )
  ]
}

const attachGoal = (
  how: string,
  measured: ReadonlyArray<Timed> = [],
  aim: number,
  limit: number
): Goal => {
  const { added } = find(measured, "authorized")
  const what = `attaching \`Authorization\`, ${how}`
  return {
    what,
    figures: [[added.median / 1000, aim, limit]],
    measured: page.microseconds(added),
    unit: " µs"
  }
}

const coldStartGoal = ({ millis, ratio }: ColdStart): Goal => (
  {
    what: "`store-api token` with a stored token, from start to end",
    figures: [[ratio, 0.5, 0.7]],
    measured: `${page.number(ratio, 2)} ×, ${page.number(millis)} ms`,
    unit: ` × ${baseline}`
  }
)

const stampedeGoals = (stampedes: ReadonlyArray<Stampede>): ReadonlyArray<Goal> => {
  // Fewer fibers take less time than a token request, so that a ratio says little.
  const many = stampedes.filter(({ fibers }) => fibers >= 10_000)
  const requests = max(stampedes.map(({ requests }) => requests))
  const perFiber = (what: string, ratios: ReadonlyArray<number>): Goal => ({
    what: `the same: ${what}, to all awaiting one Deferred, from 10 000 fibers`,
    figures: [[max(ratios), 1.1, 1.3]],
    measured: ratios.map((ratio) => `${page.number(ratio, 2)} ×`).join("; "),
    unit: " ×"
  })
  const most = page.number(max(stampedes.map(({ fibers }) => fibers)))
  return [
    {
      what: `cold start, 1 to ${most} fibers: token requests`,
      figures: [[requests, 1, 1]],
      measured: `${requests}`,
      isCount: true
    },
    perFiber("wall time", many.map(({ wallRatio }) => wallRatio.median)),
    perFiber("heap while all wait", many.map(({ memoryRatio }) => memoryRatio))
  ]
}

const stampedeTable = (stampedes: ReadonlyArray<Stampede>): string =>
  page.table(stampedes, [
    ["fibers", ({ fibers }) => page.number(fibers)],
    ["token requests", ({ requests }) => `${requests}`],
    ["wall, provider", ({ wall }) => `${page.number(wall.provider, 2)} ms`],
    ["wall, one Deferred", ({ wall }) => `${page.number(wall.deferred, 2)} ms`],
    ["ratio", ({ wallRatio }) => page.times(wallRatio)]
  ])

/** The first outage ends when the renewal has just begun; the last begins with the last attempt of a renewal. */
const measureOutages = () => {
  const faults = ["status 503", "reset", "status 503", "reset"] as const
  const phases = [-3.5, -3, -2.5, -2, -1.5, -1, -0.5]
  return Promise.all(
    phases.flatMap((from) => faults.map((fault) => measureOutage(store, 8, from, fault)))
  )
}

type Peers = ReadonlyArray<Awaited<ReturnType<typeof measurePeer>>>

const waitedOf = ({ calls, longest, waited }: Peers[number]["load"]) =>
  `${page.number(waited)} of ${page.number(calls)}${
    waited === 0 ? "" : `, up to ${page.number(longest)} ms`
  }`

/** How long the callers of the comparison call. */
const seconds = 10

const failureGoals = (
  peers: Peers,
  outages: Awaited<ReturnType<typeof measureOutages>>
): ReadonlyArray<Goal> => {
  const { cold, load } = find(peers, store.name)
  // A renewal starts no earlier than after three quarters of a token's lifetime.
  const renewals = 1 + Math.floor(seconds / (life * 0.75))
  const [requests, recoveries] = [
    outages.map(({ requests }) => requests),
    outages.map(({ recovery }) => recovery)
  ]
  const lost = sum(outages.map(({ lost }) => lost))
  return [
    {
      what: "1 000 promises at once: token requests, failed calls",
      figures: [[cold.requests, 1, 1], [cold.failed, 0, 0]],
      measured: `${cold.requests}; ${cold.failed}`,
      isCount: true
    },
    {
      what:
        `token of ${life} s, endpoint of ${delay} ms, ${callers} callers for ${seconds} s: calls that wait`,
      figures: [[load.waited, 0, 0]],
      measured: waitedOf(load)
    },
    {
      what: "the same: expired tokens, failed calls, token requests",
      figures: [[load.expired, 0, 0], [load.failed, 0, 0], [
        load.requests,
        renewals,
        renewals + 1
      ]],
      measured: `${load.expired}; ${load.failed}; ${load.requests}`,
      isCount: true
    },
    {
      what: `endpoint failing for 3 s around the end of a token, ${outages.length} outages: ` +
        "token requests in that time, failed calls that had a valid token",
      figures: [[max(requests), 6, 8], [lost, 0, 0]],
      measured: `median ${page.number(spread(requests).median)}, worst ${
        max(requests)
      }; ${lost}`,
      isCount: true
    },
    {
      what: "the same: first good token after it is back",
      figures: [[max(recoveries) / 1000, 1, 1.5]],
      measured: `median ${page.number(spread(recoveries).median)} ms, worst ${
        page.number(max(recoveries))
      } ms`,
      unit: " s"
    }
  ]
}

const peerTable = (peers: Peers): string => {
  const own = find(peers, store.name).cached.median
  return page.table(peers, [
    ["", ({ name }) => name],
    ["a cached call", ({ cached }) => page.nanoseconds(cached)],
    [
      "to `Effect.runPromise(get)`",
      ({ cached }) => `${page.number(cached.median / own, 2)} ×`
    ],
    ["1 000 callers, cold: token requests", ({ cold }) => page.number(cold.requests)],
    ["token of 2 s under load: calls that waited", ({ load }) => waitedOf(load)],
    ["expired tokens", ({ load }) => page.number(load.expired)],
    ["token requests", ({ load }) => page.number(load.requests)],
    [
      "endpoint fails, token valid: calls lost",
      ({ outage }) => `${page.number(outage.lost)} of ${page.number(outage.calls)}`
    ],
    ["token requests", ({ outage }) => page.number(outage.requests)]
  ])
}

const all = async (): Promise<void> => {
  const step = <A>(what: string, run: () => Promise<A>): Promise<A> => {
    page.tell(what)
    return run()
  }
  const names = ["hit", "calls", "attach", "tracedAttach"] as const
  const measured = await step("a cached token", () => measureCached(names, 5, 1200))
  const coldStart = await step("start of the command line", () => measureColdStart(21))
  const stampedes = await step(
    "cold start",
    () => inTurn([1, 1000, 10_000, 100_000], measureStampede)
  )
  const outages = await step("outages around the end of a token", measureOutages)
  const compared = await inTurn(
    peers,
    (peer) => step(peer.name, () => measurePeer(peer, seconds))
  )
  const goals = [
    ...cachedGoals(measured),
    ...stampedeGoals(stampedes),
    ...failureGoals(compared, outages),
    attachGoal("over a stub client", measured[2], 1.2, 2),
    attachGoal("traced", measured[3], 3, 5),
    coldStartGoal(coldStart)
  ]
  const tables = {
    machine: page.machine(),
    goals: goalTable(goals),
    hits: page.hitTable(measured[0] ?? []),
    stampedes: stampedeTable(stampedes),
    peers: peerTable(compared)
  }
  page.write(page.benchmarks, page.withTables(page.read(page.benchmarks), tables))
  page.tell("in all")
  page.report(missedOf(goals.filter(({ isCount }) => isCount)))
}

const part = (goals: ReadonlyArray<Goal>): void => {
  process.stdout.write(`${goalTable(goals)}\n`)
  if (process.argv.includes("--check")) page.report(missedOf(goals))
}

if (process.argv.includes("hit")) {
  part(cachedGoals(await measureCached(["hit", "calls"], 3, 600)))
} else if (process.argv.includes("cli")) part([coldStartGoal(await measureColdStart(20))])
else await all()
