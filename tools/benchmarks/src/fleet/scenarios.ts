/** The fleets of the page, and the figures that the page shows of each. */
import { max } from "../harness.js"
import { type Outcome, outcomeOf, type Setup } from "./fleet.js"
import * as formulas from "./formulas.js"

const second = 1000
export const minute = 60 * second
const hour = 60 * minute

/** A period in milliseconds, since the start or since a token request (counted from 1). */
interface View {
  readonly afterRequest?: number
  readonly from: number
  readonly to: number
  /** Width of the bars of a plot. */
  readonly bin: number
}

interface Scenario {
  readonly setup: Setup
  readonly view: View
}

/** The defaults of all scenarios. */
export const common = {
  shared: true,
  life: hour,
  answer: 200,
  longestPause: minute,
  start: "spread"
} as const satisfies Partial<Setup>

/** The sizes, each simulated for long enough to give a steady figure. */
export const sizes = [
  { processes: 1, hours: 60 },
  { processes: 10, hours: 40 },
  { processes: 100, hours: 20 },
  { processes: 1000, hours: 3 },
  { processes: 5000, hours: 2 }
] as const

/** The fleets that compare both kinds of endpoint, and their simulated hours. */
export const kindSizes = [
  { processes: 1, hours: 20 },
  { processes: 10, hours: 10 },
  { processes: 100, hours: 3 },
  { processes: 1000, hours: 1 }
] as const

/** Whole lifetimes, starting in the middle of the first token. */
export const kindView = { from: 30 * minute, bin: second } as const

/** The fleet of the plots. */
export const large = 5000
/** The fleet of the tables with many runs. */
export const middling = 1000

/** A fleet, which is simulated until the end of its view unless `lasts` says otherwise. */
const fleet = (processes: number, view: View, setup: Partial<Setup> = {}): Scenario => ({
  setup: { ...common, processes, lasts: view.to, ...setup },
  view
})

/** From shortly before the renewal's token request until the last process has looked. */
export const renewal = { afterRequest: 2, from: -5 * second, to: 130 * second, bin: second } as const satisfies View

const renewalOf = (processes: number, setup: Partial<Setup> = {}) =>
  fleet(processes, renewal, { lasts: hour, ...setup })

export const coldView = { from: 0, to: 10 * second, bin: 100 } as const satisfies View

const coldOf = (processes: number, setup: Partial<Setup> = {}) =>
  fleet(processes, coldView, { start: "together", ...setup })

/** Averaged, because it depends on chance how many processes renew during the lease of the crashed one. */
const seeds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((seed) => ({ seed, name: `renewal, holder crashes, seed ${seed}` }))
export const deaths = seeds.map(({ name }) => name)

/** Store commands a second per process. */
export const capacities = [10, 5, 2, 1.5, 1, 0.75, 0.5] as const

/** From five minutes before the renewal of the first token until five minutes after it. */
const outageOf = (processes: number, how: "fails" | "hangs") =>
  renewalOf(processes, { lasts: 2 * hour, outage: { from: 50 * minute, to: 60 * minute, how } })

/** The period that is counted for short-lived tokens. */
export const shortView = { from: minute, to: 15 * minute, bin: second } as const satisfies View

/** The longest pauses between the calls of a process, for short-lived tokens. */
export const shortPauses = [minute, 4 * second] as const

const named = <A>(values: ReadonlyArray<A>, name: (value: A) => string, scenario: (value: A) => Scenario) =>
  Object.fromEntries(values.map((value) => [name(value), scenario(value)]))

const sized = (kind: string, setup: Partial<Setup>) =>
  named(
    sizes,
    ({ processes }) => `${processes} ${kind}`,
    ({ hours, processes }) =>
      fleet(processes, { from: 0, to: 65 * second, bin: second }, { ...setup, lasts: hours * hour })
  )

const ofKind = (kind: string, setup: Partial<Setup>) =>
  named(
    kindSizes,
    ({ processes }) => `${processes} ${kind}`,
    ({ hours, processes }) => fleet(processes, { ...kindView, to: kindView.from + hours * hour }, setup)
  )

export const scenarios: Readonly<Record<string, Scenario>> = {
  ...sized("shared", {}),
  ...sized("alone", { shared: false }),
  ...ofKind("new", {}),
  ...ofKind("repeated", { repeats: true }),
  ...ofKind("repeated alone", { repeats: true, shared: false }),
  ...named([10, 100, middling], (processes) => `renewal ${processes}`, renewalOf),
  "renewal": renewalOf(large),
  "renewal, 2 s": renewalOf(large, { answer: 2 * second }),
  "renewal, holder crashes": renewalOf(large, { dies: 2 }),
  ...named(seeds, ({ name }) => name, ({ seed }) => renewalOf(middling, { dies: 2, seed })),
  "cold": coldOf(large),
  "cold, 2 s": coldOf(large, { answer: 2 * second }),
  "cold, holder crashes": coldOf(large, { dies: 1 }),
  "cold, store down": coldOf(large, { outage: { from: 0, to: hour, how: "fails" } }),
  "revoked": fleet(large, { from: 2 * minute, to: 130 * second, bin: 100 }, { revoked: 2 * minute }),
  "slow endpoint": fleet(
    middling,
    { from: 0, to: minute, bin: second },
    { start: "together", answer: minute, lasts: 3 * minute }
  ),
  ...named(
    capacities,
    (each) => `capacity ${each}`,
    (each) => fleet(middling, { ...coldView, to: minute }, { start: "together", capacity: each * middling })
  ),
  "outage": outageOf(large, "fails"),
  "outage, small": outageOf(middling, "fails"),
  "outage, hangs": outageOf(middling, "hangs"),
  ...named(
    shortPauses,
    (pause) => `short ${pause}`,
    (longestPause) => fleet(middling, shortView, { life: minute, longestPause })
  )
}

/** A scenario, how long it is without the new token, and its token requests, with that of a crashed process. */
interface Row {
  readonly what: string
  readonly name: string
  readonly takes: number
  readonly requests: number
}

export const afterDeath = formulas.lease + common.answer

export const renewalRows: ReadonlyArray<Row> = [
  { name: "renewal 10", takes: 200, requests: 1, what: "endpoint of 200 ms" },
  { name: "renewal 100", takes: 200, requests: 1, what: "endpoint of 200 ms" },
  { name: `renewal ${middling}`, takes: 200, requests: 1, what: "endpoint of 200 ms" },
  { name: "renewal", takes: 200, requests: 1, what: "endpoint of 200 ms" },
  { name: "renewal, 2 s", takes: 2000, requests: 1, what: "endpoint of 2 s" },
  { name: "renewal, holder crashes", takes: afterDeath, requests: 2, what: "lease holder crashes" }
]

export const coldRows: ReadonlyArray<Row> = [
  { name: "cold", takes: 200, requests: 1, what: "all at once, endpoint of 200 ms" },
  { name: "cold, 2 s", takes: 2000, requests: 1, what: "all at once, endpoint of 2 s" },
  { name: "cold, holder crashes", takes: afterDeath, requests: 2, what: "all at once, lease holder crashes" }
]

/** Runs in a process of its own, because each fleet needs its own heap. */
export const run = async (name: string): Promise<Digest> => {
  const scenario = scenarios[name]
  if (scenario === undefined) throw new Error(`Unknown scenario ${name}`)
  return digest(scenario.setup, await outcomeOf(scenario.setup), scenario.view)
}

export type Digests = Readonly<Record<string, Digest>>

export const of = (digests: Digests, name: string): Digest => {
  const found = digests[name]
  if (found === undefined) throw new Error(`No outcome of the scenario "${name}"`)
  return found
}

export type Digest = ReturnType<typeof digest>

export const digest = (setup: Setup, outcome: Outcome, view: View) => {
  const start = view.afterRequest === undefined ? 0 : outcome.requests[view.afterRequest - 1] ?? Number.NaN
  const isInView = (at: number) => at - start >= view.from && at - start < view.to
  const inView = (times: ReadonlyArray<number>) => times.filter(isInView).map((at) => at - start)
  const requests = inView(outcome.requests)
  const commands = inView(outcome.commands.map(({ at }) => at))
  const acquisitions = outcome.acquisitions.filter(({ from }) => isInView(from))
  const { calls, failed, longestWait, waited } = outcome
  return {
    ...{ processes: setup.processes, calls, waited, longestWait, failed },
    requests: outcome.requests.length,
    /** Renewals between the first and the last token request: of the fleet, or of each process without sharing. */
    requestsPerHour: perHour(setup.shared ? [outcome.requests] : outcome.requestsOf),
    // All fields from here on count only the view.
    requestsInView: requests.length,
    requestBins: binned(requests, view),
    mostRequestsInASecond: max(binned(requests, { ...view, bin: second })),
    commands: commands.length,
    commandBins: binned(commands, view),
    mostCommands: max(binned(commands, { ...view, bin: 100 })),
    acquisitions: acquisitions.length,
    acquisitionBins: binned(acquisitions.map(({ from }) => from - start), view),
    /** Acquisitions that found the token at their first look. */
    found: acquisitions.filter(({ asked, commands }) => !asked && commands === 1).length,
    /** The time from the start of the view until the last acquisition that began in it has ended. */
    lastReady: max(acquisitions.map(({ to }) => to - start - view.from))
  }
}

const binned = (times: ReadonlyArray<number>, { bin, from, to }: View): ReadonlyArray<number> => {
  const bins = Array.from({ length: Math.ceil((to - from) / bin) }, () => 0)
  for (const time of times) {
    const index = Math.floor((time - from) / bin)
    bins[index] = (bins[index] ?? 0) + 1
  }
  return bins
}

const perHour = (streams: ReadonlyArray<ReadonlyArray<number>>): number => {
  const sum = (values: ReadonlyArray<number>) => values.reduce((total, value) => total + value, 0)
  const renewals = sum(streams.map((stream) => Math.max(stream.length - 1, 0)))
  const time = sum(streams.map((stream) => (stream.at(-1) ?? 0) - (stream[0] ?? 0)))
  return time === 0 ? 0 : streams.length * renewals / time * hour
}

/** Token requests of a fleet in the lifetime of a token of 60 minutes that the endpoint repeats. */
export const mostOfRepeated = 5

export type KindSize = typeof kindSizes[number]

/** Token requests an hour of a fleet with this kind of endpoint. */
export const kindPerHour = (digests: Digests, { hours, processes }: KindSize, kind: string): number =>
  of(digests, `${processes} ${kind}`).requestsInView / hours

/** Token requests in `shortView`, for tokens with a lifetime of a minute. */
export const shortRequests = (longestPause: number): number =>
  formulas.sharedPerHour(middling, { life: minute, longestPause }) *
  (shortView.to - shortView.from) / (60 * minute)
