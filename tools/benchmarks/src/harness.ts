/** Shared code of the measurements: statistics, alternating rounds, child processes, invented tokens. */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { AccessToken } from "@store-api/core"
import { DateTime, Effect, Redacted } from "effect"

/** The median of some measurements, and their quartiles. */
export interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
}

const quantile = (sorted: ReadonlyArray<number>, part: number): number => {
  const at = (sorted.length - 1) * part
  const [below = Number.NaN, above = Number.NaN] = [
    sorted[Math.floor(at)],
    sorted[Math.ceil(at)]
  ]
  return below + (above - below) * (at % 1)
}

export const spread = (values: ReadonlyArray<number>): Spread => {
  const sorted = [...values].sort((a, b) => a - b)
  return {
    median: quantile(sorted, 0.5),
    low: quantile(sorted, 0.25),
    high: quantile(sorted, 0.75)
  }
}

/** The largest of any number of values, and at least 0. */
export const max = (values: ReadonlyArray<number>): number =>
  values.reduce((a, b) => Math.max(a, b), 0)

export const sum = (values: ReadonlyArray<number>): number => values.reduce((a, b) => a + b, 0)

export const shuffled = <A>(values: ReadonlyArray<A>): ReadonlyArray<A> =>
  values.map((value) => ({ value, at: Math.random() })).sort((a, b) => a.at - b.at).map((
    { value }
  ) => value)

/** One after the other, so that the measurements do not disturb each other. */
export const inTurn = async <A, B>(
  values: ReadonlyArray<A>,
  measure: (value: A) => Promise<B>
): Promise<Array<B>> => {
  const measured = []
  for (const value of values) measured.push(await measure(value))
  return measured
}

let made = 0

/** A new token that expires in the given number of milliseconds. */
export const token = (life: number): Effect.Effect<AccessToken.AccessToken> =>
  Effect.map(DateTime.now, (acquiredAt) =>
    new AccessToken.AccessToken({
      value: Redacted.make(`invented-token-${++made}`),
      acquiredAt,
      expiresAt: DateTime.addDuration(acquiredAt, life)
    }))

/** A candidate to time: `run(times)` repeats it and returns the milliseconds. */
export interface Candidate {
  readonly name: string
  readonly run: (times: number) => Effect.Effect<number, unknown>
}

/** One fiber that yields the same effect repeatedly, as in an application. */
export const yielding = (
  name: string,
  effect: Effect.Effect<unknown, unknown>
): Candidate => ({
  name,
  run: (times) =>
    Effect.gen(function*() {
      const start = performance.now()
      for (let i = 0; i < times; i++) yield* effect
      return performance.now() - start
    })
})

/** Calls a function that returns a promise, one call after the other. */
export const awaiting = (name: string, call: () => Promise<unknown>): Candidate => ({
  name,
  run: (times) =>
    Effect.promise(async () => {
      const start = performance.now()
      for (let i = 0; i < times; i++) await call()
      return performance.now() - start
    })
})

/** Nanoseconds per call, one figure per round. The rounds of all candidates alternate. */
export type Rounds = Readonly<Record<string, ReadonlyArray<number>>>

const roundMillis = 0.25

/** How often a candidate is called before it is timed. Code is compiled after so many calls, not after so much time. */
const leastCalls = 50_000

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
export const alternate = (
  candidates: ReadonlyArray<Candidate>,
  millis: number
): Effect.Effect<Rounds, unknown> =>
  Effect.gen(function*() {
    const lanes = []
    for (const candidate of candidates) {
      const warmUntil = spent() + Math.min(400, millis / candidates.length / 2)
      let [times, calls, each] = [16, 0, Infinity]
      while (spent() < warmUntil || calls < leastCalls) {
        each = Math.min(each, (yield* candidate.run(times)) / times)
        calls += times
        times = Math.min(Math.max(Math.round(roundMillis / each), 16), 20_000)
      }
      lanes.push({ ...candidate, times, rounds: Array<number>() })
    }
    const until = spent() + millis
    while (spent() < until) {
      for (const lane of shuffled(lanes)) {
        lane.rounds.push((yield* lane.run(lane.times)) / lane.times * 1e6)
      }
    }
    return Object.fromEntries(lanes.map(({ name, rounds }) => [name, rounds]))
  })

/** The time of a candidate, and compared with a baseline round by round: its ratio, and what it adds. */
export interface Timed {
  readonly name: string
  readonly ns: Spread
  readonly ratio: Spread
  readonly added: Spread
}

export const timed = (rounds: Rounds, baseline: string): ReadonlyArray<Timed> =>
  Object.entries(rounds).map(([name, values]) => {
    const base = (round: number) => rounds[baseline]?.[round] ?? Number.NaN
    return {
      name,
      ns: spread(values),
      ratio: spread(values.map((value, round) => value / base(round))),
      added: spread(values.map((value, round) => value - base(round)))
    }
  })

const calling = `
  const [module, name, values] = process.argv.slice(1)
  const { [name]: measure } = await import(module)
  process.stdout.write(JSON.stringify(await measure(...JSON.parse(values))))`

/** Calls an exported function of a module of this folder in a child process with `gc`. Its values are sent as JSON. */
export const inOwnProcess = async <
  F extends (...values: ReadonlyArray<never>) => Promise<unknown>
>(
  module: string,
  name: string,
  values: Parameters<F>
): Promise<Awaited<ReturnType<F>>> => {
  const args = [new URL(module, import.meta.url).href, name, JSON.stringify(values)]
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--expose-gc", "--input-type=module", "--eval", calling, ...args],
    { timeout: 900_000, maxBuffer: 2 ** 26 }
  )
  return JSON.parse(stdout) as Awaited<ReturnType<F>>
}

/** The median of the medians of several processes, with the lowest and the highest. */
const acrossProcesses = (spreads: ReadonlyArray<Spread>): Spread => {
  const medians = spreads.map(({ median }) => median)
  return {
    median: spread(medians).median,
    low: Math.min(...medians),
    high: Math.max(...medians)
  }
}

export const merged = (processes: ReadonlyArray<ReadonlyArray<Timed>>): ReadonlyArray<Timed> =>
  (processes[0] ?? []).map(({ name }) => {
    const same = processes.flatMap((timed) => timed.filter((one) => one.name === name))
    return {
      name,
      ns: acrossProcesses(same.map(({ ns }) => ns)),
      ratio: acrossProcesses(same.map(({ ratio }) => ratio)),
      added: acrossProcesses(same.map(({ added }) => added))
    }
  })
