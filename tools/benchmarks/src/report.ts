/** Writes docs/evidence/benchmarks.md: the goals, the comparison, and how each library was set up. */
import * as calls from "./calls.js"
import { coldStartTable } from "./coldStart.js"
import type { Spread } from "./harness.js"
import type { Hit } from "./hit.js"
import { callers, delay, life } from "./load.js"
import type { machine } from "./machine.js"
import type { Results } from "./measure.js"
import { peers } from "./peers/index.js"
import type { Goal } from "./table.js"
import { markdown, number, type Table } from "./table.js"

export const goalTable = (goals: ReadonlyArray<Goal>): Table => [
  ["what", "goal", "limit", "measured", "verdict"],
  ...goals.map(({ goal, limit, measured, verdict, what }) => [what, goal, limit, measured, verdict])
]

const nanoseconds = ({ high, low, median }: Spread) => `${number(median)} ns (${number(low)} to ${number(high)})`

const ratio = ({ high, low, median }: Spread) => `${number(median, 2)} × (${number(low, 2)} to ${number(high, 2)})`

export const hitTable = (hits: ReadonlyArray<Hit>, how?: "traced"): Table => [
  [
    "per `yield*` in one fiber" + (how === undefined ? "" : `, ${how}`),
    "time",
    "multiple of `Ref.get` in the same loop"
  ],
  ...hits.map(({ name, ns, ratio: multiple }) => [name, nanoseconds(ns), ratio(multiple)])
]

export const stampedeTable = ({ stampedes }: Results): Table => [
  [
    "fibers",
    "token requests",
    "wall, provider",
    "wall, one Deferred",
    "ratio",
    "heap, provider",
    "heap, one Deferred",
    "ratio"
  ],
  ...stampedes.map(({ bytes, fibers, memoryRatio, requests, wall, wallRatio }) => [
    number(fibers),
    `${requests}`,
    `${number(wall.provider.median, 2)} ms`,
    `${number(wall.deferred.median, 2)} ms`,
    ratio(wallRatio),
    `${number(bytes.provider)} B per fiber`,
    `${number(bytes.deferred)} B per fiber`,
    `${number(memoryRatio, 2)} ×`
  ])
]

const shown = (value: number | undefined) => value === undefined ? "not run" : number(value)

export const peerTable = (results: Results): Table => [
  [
    "",
    "a cached call",
    "to `Effect.runPromise(get)`",
    "1 000 callers, cold: token requests",
    `token of ${life} s under load: calls that waited`,
    "expired tokens",
    "token requests",
    "endpoint fails, token valid: calls lost",
    "token requests"
  ],
  ...peers.map(({ caches, name }) => {
    const own = results.calls.find((call) => call.name === calls.ours)
    const cached = name === "@store-api/core" ? own : results.calls.find((call) => call.name === name)
    const cold = results.peerStampedes.find((stampede) => stampede.name === name && stampede.callers === 1000)
    const load = results.loads.find((load) => load.name === name)
    const failure = results.peerFailures.find((failure) => failure.name === name)
    return [
      name,
      cached === undefined || !caches ? "n/a: keeps no token" : nanoseconds(cached.ns),
      cached === undefined || own === undefined ? "n/a" : `${number(cached.ns.median / own.ns.median, 2)} ×`,
      shown(cold?.requests),
      load === undefined ? "not run" : `${number(load.waited)} of ${number(load.calls)}` +
        (load.waited === 0 ? "" : `, up to ${number(load.longest)} ms`),
      shown(load?.expired),
      shown(load?.requests),
      failure === undefined ? "not run" : `${number(failure.lost)} of ${number(failure.calls)}`,
      shown(failure?.requests)
    ]
  })
]

/** Splits the page into its own sections and that of Effect 4, which is the last and has its own command. */
export const split = (page: string): readonly [own: string, effect4: string] => {
  const [own = ""] = page.split(/\n## Effect 4$/m)
  return [own, page.slice(own.length)]
}

export const document = (
  results: Results,
  goals: ReadonlyArray<Goal>,
  { cores, cpu, date, memory, node, platform, versions }: ReturnType<typeof machine>
): string => {
  const missed = goals.filter(({ verdict }) => verdict !== "met")
  return `# Benchmarks

\`npm run bench\` wrote this page on ${date}. See [how it measures](../../tools/benchmarks/README.md).

- machine: ${cpu}, ${cores} cores, ${memory}, ${platform}
- Node ${node}; ${versions.join(", ")}

## Goals

We aim at the goal, and no figure should exceed the limit; the verdict shows which do. Each ratio compares two
measurements of the same run, so that it holds on any machine. The brackets hold the lowest and highest of several
processes, and for the cold start the middle half of the repetitions.

${markdown(goalTable(goals))}

${
    missed.length === 0
      ? "All goals are met."
      : `${missed.length} of ${goals.length} goals are not fully met:\n\n${
        missed.map(({ measured, verdict, what }) => `- ${what}: ${verdict}. ${measured}.`).join("\n")
      }`
  }

## A cached token in one fiber

![Time per yield*, as a multiple of Ref.get](benchmarks/hit.svg)

${markdown(hitTable(results.hits))}

The same loop in a traced application, with each round within a span:

${markdown(hitTable(results.traced.hits, "traced"))}

Traced means with OpenTelemetry's SDK, through \`NodeSdk.layer\` of \`@effect/opentelemetry\`, which exports spans and
metrics during the run. Within a span, each operation of a fiber also switches OpenTelemetry's context: \`Ref.get\` is one
operation, a cached \`get\` is two.

## A cold start

Fibers that call \`get\` at the same time, compared with as many fibers that await one Deferred. The response arrives when
all of them wait. The wall time runs from the first fork until the last fiber is done. It includes starting one
acquisition, which the Deferred does not need, and excludes the duration of a token request on both sides.

${markdown(stampedeTable(results))}

![Token requests by number of callers](benchmarks/stampede.svg)

## The command line

The time from the start of each process to its exit. The programs run in rounds, each in a different order. The times are
medians, with the middle half of the rounds in brackets. The ratios compare the means of the faster half, because other
load only adds time. A stored token is in the folder of \`FileTokenStore\`. With \`--no-cache\`, each run acquires a
token from the emulator.

${markdown(coldStartTable(results.coldStart))}

## Compared with other libraries

Each library is set up as its documentation says, with the same endpoint on loopback. These libraries also solve other
tasks, and some leave the cache to their users on purpose.

${markdown(peerTable(results))}

- **a cached call**: one call after the other in the library's own form, with a token of one hour. A promise without
  Effect always costs less than one with it. For an Effect application, the tables above are the relevant ones.
- **token of ${life} s under load**: an endpoint that takes ${delay} ms, and ${callers} callers for ${results.seconds} s, which have a token when they
  begin. A call waited if its result came in a later turn of the event loop, and more than 5 ms after the call. The
  endpoint decides when a token has expired, and counts from the middle of its ${delay} ms.
- **endpoint fails, token valid**: after the first token, with a lifetime of 3 s, every token request gets a 503. A call
  is lost if it fails, or has no result while that token is valid. The last calls begin 200 ms before it expires.

![Renewals and waits under load](benchmarks/load.svg)

How each was set up:

${peers.map(({ how, name }) => `- **${name}**: ${how}`).join("\n")}
`
}
