/** The fleets of the page: what rules and formulas say about each, and how its outcome is counted. */
import { max } from "../harness.js"
import { number } from "../page.js"
import { longestWay, outcomeOf, type Setup, shortestWay } from "./fleet.js"

const second = 1000
export const minute = 60 * second
const hour = 60 * minute

/** The library's defaults. The test compares them with the source. */
export const defaults = { lease: 5000, pauses: { first: 50, growth: 1.25, longest: 500, jitter: 0.875 } }

const meanWay = (shortestWay + longestWay) / 2

/** How often a process finds no token while it waits for another's, from its first look until the token is stored. */
const looks = (answer: number): number => {
  const { first, growth, jitter, longest } = defaults.pauses
  const stored = answer + 4 * meanWay
  let [count, ready] = [0, 0]
  for (let pause = first; ready < stored; pause = Math.min(growth * pause, longest)) {
    count += 1
    ready += 2 * meanWay + pause * jitter
  }
  return count
}

/** The commands when all processes start at once. */
const cold = (processes: number, answer: number): number => (processes - 1) * (2 * looks(answer) + 1) + 5

/** How long before expiry the first process may renew. */
const ahead = (life: number) => Math.min(5 * minute, life / 4)

/** Token requests an hour of processes that share one token, and of as many that do not. */
const sharedPerHour = (life: number) => hour / (life - ahead(life))
const alonePerHour = (processes: number) => processes * hour / (hour - 0.9 * ahead(hour) + minute / 3)

/** The bounds of a figure, and how the page shows them. */
interface Expected {
  readonly low: number
  readonly high: number
  readonly shown: string
}

const exactly = (value: number): Expected => ({ low: value, high: value, shown: number(value) })
const atMost = (high: number): Expected => ({ low: 0, high, shown: `at most ${number(high)}` })
const between = (low: number, high: number): Expected => ({ low, high, shown: `${number(low)} to ${number(high)}` })
/** By a formula, from which the figure may differ by 8 %. */
const about = (value: number, digits = 0): Expected => ({
  low: value * 0.92,
  high: value * 1.08,
  shown: number(value, digits)
})

export interface Scenario {
  readonly table: string
  readonly what: string
  readonly setup: Setup
  /** The period that is counted, in milliseconds since the start, or since the second token request. */
  readonly view: readonly [from: number, to: number, since?: "renewal"]
  /** In the view. `perHour`: the mean over all token requests instead. */
  readonly requests: Expected
  readonly perHour?: true
  readonly commands?: Expected
  /** Whether a process that starts may treat a repeated token as expired, up to a second before it is. */
  readonly mayFail?: true
}

export const common = {
  shared: true,
  life: hour,
  answer: 200,
  longestPause: minute,
  start: "spread"
} as const satisfies Partial<Setup>

/** A fleet, which is simulated until the end of its view unless `lasts` says otherwise. */
const fleet = (
  table: string,
  processes: number,
  what: string,
  { setup, ...expected }: Omit<Scenario, "setup" | "table" | "what"> & { readonly setup?: Partial<Setup> }
): Scenario => ({
  ...{ table, what, ...expected },
  setup: { ...common, processes, lasts: expected.view[1], ...setup }
})

/** The fleet that starts at once, and that of rows which take longer to simulate. */
const [large, middling] = [5000, 500]

/** The sizes, each simulated for long enough to give a steady figure. */
const steady = ([[1, 60], [10, 20], [100, 6], [middling, 2]] as const).flatMap(([processes, hours]) => {
  const each = { view: [0, hours * hour], perHour: true } as const
  const alone = about(alonePerHour(processes), 2)
  return [
    fleet("steady", processes, `not shared, ${hours} h`, { ...each, requests: alone, setup: { shared: false } }),
    fleet("steady", processes, `shared, ${hours} h`, { ...each, requests: about(sharedPerHour(hour), 2) })
  ]
})

/** An hour that starts in the middle of the first token. */
const repeating = [1, 100, middling].flatMap((processes) => {
  const view = [hour / 2, 1.5 * hour] as const
  const alone = { repeats: true, shared: false }
  return [
    fleet("repeating", processes, "not shared", { view, requests: atMost(5 * processes), mayFail: true, setup: alone }),
    fleet("repeating", processes, "shared", { view, requests: atMost(5), setup: { repeats: true } })
  ]
})

/** From shortly before the renewal's token request until the last process has looked. */
const aroundRenewal = { view: [-5 * second, 130 * second, "renewal"], requests: exactly(1) } as const

const renewals = [
  ...[10, 100, middling].map((processes) =>
    fleet("renewal", processes, "endpoint of 200 ms", {
      ...{ ...aroundRenewal, commands: about(processes + 4), setup: { lasts: hour } }
    })
  ),
  fleet("renewal", middling, "endpoint of 2 s", {
    ...{ ...aroundRenewal, commands: about(middling + 4), setup: { lasts: hour, answer: 2 * second } }
  }),
  fleet("renewal", middling, "lease holder crashes", {
    ...{ ...aroundRenewal, requests: exactly(2), commands: between(middling, 1.5 * middling) },
    setup: { lasts: hour, dies: 2 }
  })
]

/** All processes start at once. */
const startOf = (processes: number, what: string, requests: Expected, answer: number, setup: Partial<Setup> = {}) =>
  fleet("start", processes, what, {
    ...{ view: [0, 10 * second], requests, commands: about(cold(processes, answer)) },
    setup: { start: "together", answer: Math.min(answer, 2 * second), ...setup }
  })

const leastAgain = cold(large, common.answer)

const starts = [
  startOf(large, "endpoint of 200 ms", exactly(1), 200),
  startOf(large, "endpoint of 2 s", exactly(1), 2 * second),
  startOf(large, "lease holder crashes", exactly(2), defaults.lease + 200, { answer: 200, dies: 1 }),
  fleet("start", large, "one token revoked, and a 401 for all at once", {
    ...{ view: [2 * minute, 130 * second], requests: exactly(1), commands: between(leastAgain, leastAgain + large) },
    setup: { revoked: 2 * minute }
  }),
  fleet("start", large, "started within a minute", { view: [0, 65 * second], requests: exactly(1) }),
  fleet("start", large, "store down", {
    ...{ view: [0, 10 * second], requests: exactly(large), commands: exactly(0) },
    setup: { start: "together", outage: { from: 0, to: hour, how: "fails" } }
  }),
  fleet("start", middling, "endpoint of a minute, longer than `maxWait`", {
    ...{ view: [0, minute], requests: exactly(middling) },
    setup: { start: "together", answer: minute, lasts: 3 * minute }
  })
]

const shortLives = [60, 4].map((seconds) =>
  fleet("short", middling, `0 to ${seconds} s between the calls of a process`, {
    ...{ view: [minute, 15 * minute], requests: about(14 / 60 * sharedPerHour(minute), 1) },
    setup: { life: minute, longestPause: seconds * second }
  })
)

/** From five minutes before the renewal of the first token until five minutes after it, and the next renewal. */
const outages = ([["never responds", "hangs"], ["refuses connections", "fails"]] as const).map(([what, how]) =>
  fleet("outage", middling, what, {
    ...{ view: [50 * minute, 2 * hour], requests: exactly(middling + 1) },
    setup: { outage: { from: 50 * minute, to: 60 * minute, how } }
  })
)

/** A process gives a command one second. With one command a second per process, some first commands take longer. */
const capacities = [10, 2, 1.5, 1, 0.5].map((each) =>
  fleet("capacity", middling, `${each} commands a second per process`, {
    ...{ view: [0, minute], requests: each > 1 ? exactly(1) : between(2, middling) },
    setup: { start: "together", capacity: each * middling }
  })
)

export const scenarios: ReadonlyArray<Scenario> = [
  ...steady,
  ...repeating,
  ...renewals,
  ...starts,
  ...shortLives,
  ...outages,
  ...capacities
]

export interface Counts {
  readonly requests: number
  readonly commands: number
  /** The most commands in 100 ms, and the most token requests in a second. */
  readonly mostCommands: number
  readonly mostRequests: number
  readonly calls: number
  readonly waited: number
  readonly longestWait: number
  readonly failed: number
}

export const count = async ({ perHour, setup, view: [from, to, since] }: Scenario): Promise<Counts> => {
  const { calls, commands, failed, longestWait, requests, requestsOf, waited } = await outcomeOf(setup)
  const start = since === undefined ? 0 : requests[1] ?? Number.NaN
  const inView = (times: ReadonlyArray<number>) => times.filter((at) => at - start >= from && at - start < to)
  const [sent, asked] = [inView(commands), inView(requests)]
  return {
    requests: perHour === undefined ? asked.length : rate(setup.shared ? [requests] : requestsOf),
    commands: sent.length,
    mostCommands: busiest(sent, 100),
    mostRequests: busiest(asked, second),
    ...{ calls, failed, longestWait, waited }
  }
}

/** The most of these times within one period of this length. */
const busiest = (times: ReadonlyArray<number>, length: number): number => {
  const periods = new Map<number, number>()
  for (const time of times) {
    const period = Math.floor(time / length)
    periods.set(period, (periods.get(period) ?? 0) + 1)
  }
  return max([...periods.values()])
}

/** Renewals an hour, between the first and the last token request of each stream. */
const rate = (streams: ReadonlyArray<ReadonlyArray<number>>): number => {
  const sum = (values: ReadonlyArray<number>) => values.reduce((total, value) => total + value, 0)
  const time = sum(streams.map((stream) => (stream.at(-1) ?? 0) - (stream[0] ?? 0)))
  return streams.length * sum(streams.map(({ length }) => length - 1)) / time * hour
}

const namesOf = ({ setup, table, what }: Scenario) => `${table}, ${setup.processes} processes, ${what}`

/** The counts that are not as expected. */
export const problemsOf = (scenario: Scenario, { commands, failed, requests }: Counts): ReadonlyArray<string> => {
  const wrong = (what: string, value: number, expected: Expected | undefined) =>
    expected === undefined || (value >= expected.low && value <= expected.high)
      ? []
      : [`${namesOf(scenario)}: ${value} ${what}, expected ${expected.shown}`]
  return [
    ...wrong("token requests", requests, scenario.requests),
    ...wrong("commands", commands, scenario.commands),
    ...wrong("failed calls", failed, scenario.mayFail ? undefined : exactly(0))
  ]
}
