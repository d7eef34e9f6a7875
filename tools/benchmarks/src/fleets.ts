/**
 * `npm run bench -- fleet`: simulates the fleets, and writes the table of tools/benchmarks/fleets.md. The figures are
 * counts on virtual time with seeded randomness, so every run gives the same on every machine. With `--check` it writes
 * nothing, and fails if the table differs. Fails if a count is not as the rules and formulas here expect it.
 */
import { type count, type Counted, longestWay, type Setup, shortestWay } from "./fleet.js"
import { inOwnProcess } from "./harness.js"
import { number, read, report, table, tell, withTables, write } from "./page.js"

const second = 1000
const minute = 60 * second
const hour = 60 * minute

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

/** A fleet with the expected counts. It is simulated until the end of its view unless `lasts` says otherwise. */
const fleet = (
  what: string,
  processes: number,
  view: Counted["view"],
  [requests, commands = [0, Infinity]]: readonly [requests: Bounds, commands?: Bounds],
  setup: Partial<Setup> = {}
) => {
  const common = { shared: true, answer: 200, start: "spread", processes, lasts: view[1] } as const
  return { what, view, requests, commands, setup: { ...common, ...setup } }
}

/** The fleet that starts at once, and that of rows which take longer to simulate. */
const [large, middling] = [5000, 500]

// From shortly before the renewal's token request until the last process has looked.
const aroundRenewal = [-5 * second, 130 * second, "renewal"] as const
const renewal = { lasts: hour } as const
const atStart = [0, 10 * second] as const
const together = { start: "together" } as const

const fleets = [
  // The sizes, each simulated for long enough to give a steady figure.
  ...([[1, 60], [100, 24]] as const).flatMap(([size, hours]) => [
    fleet(`not shared, ${hours} h`, size, [0, hours * hour], [about(hours * alonePerHour(size)), exactly(0)], {
      shared: false
    }),
    fleet(`shared, ${hours} h`, size, [0, hours * hour], [about(hours * sharedPerHour)])
  ]),

  ...[100, middling].map((size) => fleet("renewal", size, aroundRenewal, [exactly(1), about(size + 4)], renewal)),
  fleet("renewal, endpoint of 2 s", middling, aroundRenewal, [exactly(1), about(middling + 4)], {
    ...renewal,
    answer: 2 * second
  }),

  fleet("start", large, atStart, [exactly(1), about(cold(large, 200))], together),
  fleet("start, endpoint of 2 s", large, atStart, [exactly(1), about(cold(large, 2000))], {
    ...together,
    answer: 2 * second
  }),
  fleet("start, store down", large, atStart, [exactly(large), exactly(0)], {
    ...together,
    outage: { from: 0, to: hour }
  }),
  // A process gives a command one second. With one command a second per process, some first commands take longer.
  ...[10, 1.5, 1].map((each) =>
    fleet(
      `start, ${each} commands a second per process`,
      middling,
      [0, minute],
      [each > 1 ? exactly(1) : [2, middling]],
      { ...together, capacity: each * middling }
    )
  ),

  // From five minutes before the renewal of the first token until five minutes after it, and the next renewal.
  fleet("store down at a renewal", middling, [50 * minute, 2 * hour], [exactly(middling + 1)], {
    outage: { from: 50 * minute, to: 60 * minute }
  })
]

const counts = new Map<typeof fleets[number], Awaited<ReturnType<typeof count>>>()
const left = fleets.values()

const work = async (): Promise<void> => {
  for (const fleet of left) {
    // Each fleet needs its own heap. Most of its objects are short-lived, so a young generation of this size halves
    // the time.
    counts.set(fleet, await inOwnProcess<typeof count>("fleet.js", "count", [fleet], "--max-semi-space-size=128"))
    tell(`${fleet.setup.processes} processes, ${fleet.what}`)
  }
}

await Promise.all([work(), work()])

const rows = fleets.flatMap((fleet) => {
  const counted = counts.get(fleet)
  return counted === undefined ? [] : [{ ...fleet, counted }]
})

const problems = rows.flatMap(({ counted, setup, what, ...expected }) =>
  ([
    ["token requests", counted.requests, expected.requests],
    ["commands", counted.commands, expected.commands],
    ["failed calls", counted.failed, exactly(0)]
  ] as const).filter(([, value, [low, high]]) => !(value >= low && value <= high))
    .map(([of, value, bounds]) =>
      `${setup.processes} processes, ${what}: ${value} ${of}, expected ${bounds.join(" to ")}`
    )
)

const file = "tools/benchmarks/fleets.md"
const page = withTables(read(file), {
  fleets: table(rows, [
    ["fleet", ({ what }) => what],
    ["processes", ({ setup }) => number(setup.processes)],
    ["token requests", ({ counted }) => number(counted.requests)],
    ["store commands", ({ counted }) => number(counted.commands)],
    ["calls that waited", ({ counted }) => `${number(counted.waited)} of ${number(counted.calls)}`],
    ["longest wait", ({ counted }) => `${number(counted.longestWait / 1000, 2)} s`]
  ])
})
if (process.argv.includes("--check")) {
  if (read(file) !== page) problems.push(`${file} differs from this run`)
} else write(file, page)
tell("in all")
report(problems)
