/** The report: the goals, ours beside others, and how each was set up. */
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

export const document = (
  results: Results,
  goals: ReadonlyArray<Goal>,
  { cores, cpu, date, memory, node, platform, versions }: ReturnType<typeof machine>
): string => {
  const missed = goals.filter(({ verdict }) => verdict !== "met")
  return `# Benchmarks

Measured by \`npm run bench\` on ${date}, written by it. [How it is measured](../../tools/benchmarks/README.md).

- machine: ${cpu}, ${cores} cores, ${memory}, ${platform}
- Node ${node}; ${versions.join(", ")}

## Goals

The goal is what we aim at, the limit what none should exceed; the verdict says where one does. Ratios are to something measured in the same run, so that
they hold on any machine. In brackets: of times in one fiber, of promises and of attaching, the lowest and the highest of
several processes; of the cold start and of the command line, the middle half of the repetitions.

${markdown(goalTable(goals))}

${
    missed.length === 0
      ? "All goals are met."
      : `${missed.length} of ${goals.length} rows are not wholly met:\n\n${
        missed.map(({ measured, verdict, what }) => `- ${what}: ${verdict}. ${measured}.`).join("\n")
      }`
  }

## A cached token in one fiber

![Time per yield*, as a multiple of Ref.get](benchmarks/hit.svg)

${markdown(hitTable(results.hits))}

The same loop in an application that is traced, each round within a span:

${markdown(hitTable(results.traced.hits, "traced"))}

Traced means OpenTelemetry's SDK by \`NodeSdk.layer\` of \`@effect/opentelemetry\`, spans and metrics exported during the run. While a
fiber is within a span, each of its operations costs a change of OpenTelemetry's context more: \`Ref.get\` is one operation,
a cached \`get\` two.

## A cold start

Fibers that ask at once, beside as many that await one Deferred; the response comes when all wait. Wall time is from the first
fork until the last fiber is done. Starting an acquisition takes its share of it once, which the Deferred has not;
the time that a token request takes is not in it, on either side.

${markdown(stampedeTable(results))}

![Token requests by number of callers](benchmarks/stampede.svg)

## The command line

Each program from the start of its process to its end, in rounds that each have another order; in brackets the middle half of
them. Stored: the token is in the folder of \`FileTokenStore\`. With \`--no-cache\` it is acquired from the emulator each time.

${markdown(coldStartTable(results.coldStart))}

## Beside others

Each set up as its own documentation says, against the same endpoint on loopback. They solve other tasks too, and some leave
the cache to their user on purpose.

${markdown(peerTable(results))}

- **a cached call**: one call in the library's own form with a token of one hour, one after the other. A promise that is
  made without Effect costs less than one with it, whatever it does: inside an Effect application the table above counts.
- **token of ${life} s under load**: an endpoint of ${delay} ms, ${callers} callers for ${results.seconds} s, the first token there
  when they begin. A call waited when its result came in a later turn of the event loop and more than 5 ms later. A token has
  expired when the endpoint says so; the endpoint counts from the middle of its ${delay} ms.
- **endpoint fails, token valid**: from the first token of 3 s on, every token request meets 503. A call is lost when it
  fails, or has no result while that token is valid; the last calls begin 200 ms before its end.

![Renewals and waits under load](benchmarks/load.svg)

How each was set up:

${peers.map(({ how, name }) => `- **${name}**: ${how}`).join("\n")}
`
}
