/** Shared code of the benchmarks: robust statistics, rounds that alternate, processes of their own. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"

/** The middle of some measurements, and the quarters around it. */
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

/** How a measurement runs its effects: alone, or within an application that is traced. */
export type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const plainly: Run = (effect) => Effect.runPromise(effect)

/** Something to be timed: `run(times)` repeats it so often and returns the milliseconds. */
export interface Candidate {
  readonly name: string
  readonly run: (times: number) => Promise<number>
}

/** Nanoseconds per call, one figure a round; the rounds of all candidates lie side by side in time. */
export type Rounds = Readonly<Record<string, ReadonlyArray<number>>>

const roundMillis = 0.25

export const shuffled = <A>(values: ReadonlyArray<A>): ReadonlyArray<A> =>
  values.map((value) => ({ value, at: Math.random() })).sort((a, b) => a.at - b.at).map(({ value }) => value)

/**
 * Milliseconds that this process had of the processors. How much of the code is compiled, and how many rounds there
 * are, hangs on these and not on the wall clock: otherwise less is measured on a busy machine, and colder.
 */
const spent = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

/**
 * Times the candidates in turn, in short rounds, until the process has spent its time. Whatever else the machine does
 * meets all alike, and so does what a candidate leaves behind (a full heap, a cold cache): each round has another
 * order.
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

/** Each round of one candidate against the round of another beside it. */
const paired = (rounds: Rounds, name: string, other: string, combine: (a: number, b: number) => number): Spread => {
  const others = roundsOf(rounds, other)
  return spread(roundsOf(rounds, name).map((value, round) => combine(value, others[round] ?? Number.NaN)))
}

export const nanoseconds = (rounds: Rounds, name: string): Spread => spread(roundsOf(rounds, name))

export const ratio = (rounds: Rounds, name: string, to: string): Spread => paired(rounds, name, to, (a, b) => a / b)

export const difference = (rounds: Rounds, name: string, from: string): Spread =>
  paired(rounds, name, from, (a, b) => a - b)

/** Calls a function that gives a promise, one after the other. */
export const awaiting = (name: string, call: () => Promise<unknown>): Candidate => ({
  name,
  run: async (times) => {
    const start = performance.now()
    for (let i = 0; i < times; i++) await call()
    return performance.now() - start
  }
})

/** Runs a module beside this one in a process of its own, with `gc`, and reads the JSON that it prints. */
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
 * The same several times: what the compiler makes of the code differs from process to process, more than within one.
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

/** Of the medians of several processes: their median, the lowest and the highest. */
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
