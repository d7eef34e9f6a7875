/** Shared code of the benchmarks: statistics, alternating rounds, child processes. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"

/** The median of some measurements, and their quartiles. */
export interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
}

const quantile = (sorted: ReadonlyArray<number>, part: number): number => {
  const at = (sorted.length - 1) * part
  const below = sorted[Math.floor(at)] ?? Number.NaN
  const above = sorted[Math.ceil(at)] ?? Number.NaN
  return below + (above - below) * (at - Math.floor(at))
}

export const spread = (values: ReadonlyArray<number>): Spread => {
  const sorted = [...values].sort((a, b) => a - b)
  return { median: quantile(sorted, 0.5), low: quantile(sorted, 0.25), high: quantile(sorted, 0.75) }
}

export const max = (values: ReadonlyArray<number>): number => values.reduce((a, b) => Math.max(a, b), -Infinity)

export const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** How a measurement runs its effects: plainly, or within a traced application. */
export type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const plainly: Run = (effect) => Effect.runPromise(effect)

/** A candidate to time: `run(times)` repeats it and returns the milliseconds. */
export interface Candidate {
  readonly name: string
  readonly run: (times: number) => Promise<number>
}

/** Nanoseconds per call, one figure per round. The rounds of all candidates alternate. */
export type Rounds = Readonly<Record<string, ReadonlyArray<number>>>

const roundMillis = 0.25

export const shuffled = <A>(values: ReadonlyArray<A>): ReadonlyArray<A> =>
  values.map((value) => ({ value, at: Math.random() })).sort((a, b) => a.at - b.at).map(({ value }) => value)

/**
 * The processor time of this process in milliseconds. It limits warm-up and rounds, instead of the wall clock, so that
 * a busy machine measures as many rounds of equally compiled code.
 */
const spent = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

/**
 * Times the candidates in short alternating rounds until the process has used its time. Each round has a different
 * order, so that other load, and the effects of a candidate on the next (a full heap, a cold cache), affect all alike.
 */
export const alternate = async (candidates: ReadonlyArray<Candidate>, millis: number): Promise<Rounds> => {
  const lanes = []
  for (const candidate of candidates) {
    const warmUntil = spent() + Math.min(400, millis / candidates.length / 2)
    let times = 16
    let each = Infinity
    while (spent() < warmUntil) {
      each = Math.min(each, await candidate.run(times) / times)
      times = Math.min(Math.max(Math.round(roundMillis / each), 16), 20_000)
    }
    lanes.push({ ...candidate, times, rounds: Array<number>() })
  }
  const until = spent() + millis
  while (spent() < until) {
    for (const lane of shuffled(lanes)) lane.rounds.push(await lane.run(lane.times) / lane.times * 1e6)
  }
  return Object.fromEntries(lanes.map(({ name, rounds }) => [name, rounds]))
}

const roundsOf = (rounds: Rounds, name: string): ReadonlyArray<number> => rounds[name] ?? []

/** The ratio of each round of one candidate to the adjacent round of another. */
const paired = (rounds: Rounds, name: string, other: string, combine: (a: number, b: number) => number): Spread => {
  const others = roundsOf(rounds, other)
  return spread(roundsOf(rounds, name).map((value, round) => combine(value, others[round] ?? Number.NaN)))
}

export const nanoseconds = (rounds: Rounds, name: string): Spread => spread(roundsOf(rounds, name))

export const ratio = (rounds: Rounds, name: string, to: string): Spread => paired(rounds, name, to, (a, b) => a / b)

export const difference = (rounds: Rounds, name: string, from: string): Spread =>
  paired(rounds, name, from, (a, b) => a - b)

/** Calls a function that returns a promise, one call after the other. */
export const awaiting = (name: string, call: () => Promise<unknown>): Candidate => ({
  name,
  run: async (times) => {
    const start = performance.now()
    for (let i = 0; i < times; i++) await call()
    return performance.now() - start
  }
})

/** Runs a module of this folder in a child process, with `gc`, and reads the JSON that it prints. */
export const inOwnProcess = async <A>(
  module: string,
  args: ReadonlyArray<string>,
  { flags = [], timeout = 120_000 }: { readonly flags?: ReadonlyArray<string>; readonly timeout?: number } = {}
): Promise<A> => {
  const path = fileURLToPath(new URL(module, import.meta.url))
  const options = { timeout, maxBuffer: 2 ** 26 }
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", ...flags, path, ...args], options)
  return JSON.parse(stdout) as A
}

/**
 * Runs the module in several processes, because compiled code differs more between processes than within one.
 */
export const inProcesses = async <A>(
  module: string,
  args: ReadonlyArray<string>,
  times: number
): Promise<ReadonlyArray<A>> => {
  const results = []
  for (let i = 0; i < times; i++) results.push(await inOwnProcess<A>(module, args))
  return results
}

/** The median of the medians of several processes, with the lowest and the highest. */
export const acrossProcesses = (spreads: ReadonlyArray<Spread>): Spread => {
  const medians = spreads.map(({ median }) => median)
  return { median: spread(medians).median, low: Math.min(...medians), high: Math.max(...medians) }
}

interface Timed {
  readonly name: string
  readonly ns: Spread
  readonly ratio: Spread
}

export const merged = (processes: ReadonlyArray<ReadonlyArray<Timed>>): ReadonlyArray<Timed> =>
  (processes[0] ?? []).map(({ name }) => {
    const same = processes.flatMap((timed) => timed.filter((one) => one.name === name))
    return {
      name,
      ns: acrossProcesses(same.map(({ ns }) => ns)),
      ratio: acrossProcesses(same.map(({ ratio }) => ratio))
    }
  })
