/**
 * `npm run bench -- fleet`: simulates the fleets, and writes the tables of tools/benchmarks/fleets.md. The figures are
 * counts on virtual time with seeded randomness, so every run gives the same on every machine. With `--check` it writes
 * nothing, and fails if a table differs. Fails if a count is not as the rules and formulas here expect it.
 */
import { availableParallelism } from "node:os"
import { type count, type Counted, longestWay, type Setup, shortestWay } from "./fleet.js"
import { inOwnProcess } from "./harness.js"
import { fleets, number, read, report, table, tell, withTables, write } from "./page.js"

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** The default lease. */
const lease = 5 * second

const meanWay = (shortestWay + longestWay) / 2

/** How often a process finds no token while it waits for another's, from its first look until the token is stored. */
const looks = (answer: number): number => {
  const stored = answer + 4 * meanWay
  let [count, ready] = [0, 0]
  // The pauses of `SharedTokenSource`, with the mean of their jitter.
  for (let pause = 50; ready < stored; pause = Math.min(1.25 * pause, 500)) {
    count += 1
    ready += 2 * meanWay + pause * 0.875
  }
  return count
}

/** The commands when all processes start at once. */
const cold = (processes: number, answer: number): number => (processes - 1) * (2 * looks(answer) + 1) + 5

/** How long before expiry the first process may renew. */
const ahead = 5 * minute

/** Token requests an hour of processes that share one token, and of as many that do not. */
const sharedPerHour = hour / (hour - ahead)
const alonePerHour = (processes: number) => processes * hour / (hour - 0.9 * ahead + minute / 3)

/** The lowest and highest value that a figure may have. */
type Bounds = readonly [low: number, high: number]

const exactly = (value: number): Bounds => [value, value]
/** By a formula, from which the figure may differ by 8 %. */
const about = (value: number): Bounds => [value * 0.92, value * 1.08]

interface Scenario extends Counted {
  readonly table: string
  readonly what: string
  readonly requests: Bounds
  readonly commands?: Bounds | undefined
}

const scenarios: Array<Scenario> = []

/** Adds a fleet. It is simulated until the end of its view unless `lasts` says otherwise. */
const fleet = (
  table: string,
  processes: number,
  what: string,
  view: Scenario["view"],
  [requests, commands]: readonly [requests: Bounds, commands?: Bounds],
  setup: Partial<Setup> = {},
  perHour: { readonly perHour?: true } = {}
): void => {
  const common = { shared: true, answer: 200, start: "spread", processes, lasts: view[1] } as const
  scenarios.push({ table, what, view, requests, commands, setup: { ...common, ...setup }, ...perHour })
}

/** The fleet that starts at once, and that of rows which take longer to simulate. */
const [large, middling] = [5000, 500]

// The sizes, each simulated for long enough to give a steady figure.
for (const [processes, hours] of [[1, 60], [100, 6], [middling, 2]] as const) {
  const [alone, together] = [about(alonePerHour(processes)), about(sharedPerHour)]
  const view = [0, hours * hour] as const
  fleet("steady", processes, `not shared, ${hours} h`, view, [alone], { shared: false }, { perHour: true })
  fleet("steady", processes, `shared, ${hours} h`, view, [together], {}, { perHour: true })
}

// From shortly before the renewal's token request until the last process has looked.
const aroundRenewal = [-5 * second, 130 * second, "renewal"] as const
for (
  const [processes, what, requests, commands, setup] of [
    ...[100, middling].map((size) => [size, "endpoint of 200 ms", 1, about(size + 4), {}] as const),
    [middling, "endpoint of 2 s", 1, about(middling + 4), { answer: 2 * second }] as const,
    [middling, "lease holder crashes", 2, [middling, 1.5 * middling], { dies: 2 }] as const
  ]
) fleet("renewal", processes, what, aroundRenewal, [exactly(requests), commands], { lasts: hour, ...setup })

const together = { start: "together" } as const
const atStart = [0, 10 * second] as const
const commandsOf = (answer: number) => about(cold(large, answer))
const again = cold(large, 200)
fleet("start", large, "endpoint of 200 ms", atStart, [exactly(1), commandsOf(200)], together)
fleet("start", large, "endpoint of 2 s", atStart, [exactly(1), commandsOf(2000)], { ...together, answer: 2000 })
fleet("start", large, "lease holder crashes", atStart, [exactly(2), commandsOf(lease + 200)], { ...together, dies: 1 })
fleet(
  ...["start", large, "one token revoked, and a 401 for all at once", [2 * minute, 130 * second]] as const,
  ...[[exactly(1), [again, again + large] as const], { revoked: 2 * minute }] as const
)
const down = { ...together, outage: { from: 0, to: hour } } as const
fleet("start", large, "store down", atStart, [exactly(large), exactly(0)], down)

// From five minutes before the renewal of the first token until five minutes after it, and the next renewal.
const outage = { from: 50 * minute, to: 60 * minute }
fleet("outage", middling, "refuses connections", [50 * minute, 2 * hour], [exactly(middling + 1)], { outage })

// A process gives a command one second. With one command a second per process, some first commands take longer.
for (const each of [10, 1.5, 1]) {
  const requests = each > 1 ? exactly(1) : [2, middling] as const
  const setup = { ...together, capacity: each * middling }
  fleet("capacity", middling, `${each} commands a second per process`, [0, minute], [requests], setup)
}

const counts = new Map<Scenario, Awaited<ReturnType<typeof count>>>()
const left = scenarios.entries()

const work = async (): Promise<void> => {
  for (const [, scenario] of left) {
    // Each fleet needs its own heap. Most of its objects are short-lived, so a young generation of this size halves
    // the time.
    const counted = await inOwnProcess<typeof count>("fleet.js", "count", [scenario], "--max-semi-space-size=128")
    counts.set(scenario, counted)
    tell(`${scenario.table}, ${scenario.setup.processes} processes, ${scenario.what}`)
  }
}

await Promise.all(Array.from({ length: Math.min(availableParallelism(), 2) }, work))

const rows = scenarios.flatMap((scenario) => {
  const counted = counts.get(scenario)
  return counted === undefined ? [] : [[scenario, counted] as const]
})

const tableOf = (name: string): string =>
  table(rows.filter(([scenario]) => scenario.table === name), [
    ["fleet", ([{ what }]) => what],
    ["processes", ([{ setup }]) => number(setup.processes)],
    [
      name === "steady" ? "token requests an hour" : "token requests",
      ([{ perHour }, { requests }]) => number(requests, perHour ? 2 : 0)
    ],
    ["most in a second", ([, { mostRequests }]) => number(mostRequests)],
    ["store commands", ([, { commands }]) => number(commands)],
    ["most in 100 ms", ([, { mostCommands }]) => number(mostCommands)],
    ["calls that waited", ([, { calls, waited }]) => `${number(waited)} of ${number(calls)}`],
    ["longest wait", ([, { longestWait }]) => `${number(longestWait / 1000, 2)} s`],
    ["failed", ([, { failed }]) => number(failed)]
  ])

const problems = rows.flatMap(([{ setup, table, what, ...expected }, counted]) =>
  ([
    ["token requests", counted.requests, expected.requests],
    ["commands", counted.commands, expected.commands ?? [0, Infinity]],
    ["failed calls", counted.failed, exactly(0)]
  ] as const).filter(([, value, [low, high]]) => !(value >= low && value <= high))
    .map(([of, value, bounds]) =>
      `${table}, ${setup.processes} processes, ${what}: ${value} ${of}, expected ${bounds.join(" to ")}`
    )
)
const names = [...new Set(scenarios.map(({ table }) => table))]
const page = withTables(read(fleets), Object.fromEntries(names.map((name) => [name, tableOf(name)])))
if (process.argv.includes("--check")) {
  if (read(fleets) !== page) problems.push("tools/benchmarks/fleets.md differs from this run")
} else write(fleets, page)
tell("in all")
report(problems)
