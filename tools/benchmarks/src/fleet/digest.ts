/** The counts of a fleet's outcome that go into the page. */
import { max } from "../harness.js"
import type { Outcome, Setup } from "./fleet.js"
import type { Operation } from "./store.js"

/** A period in milliseconds, since the start or since a token request (counted from 1). */
export interface View {
  readonly afterRequest?: number
  readonly from: number
  readonly to: number
  /** Width of the bars of a plot. */
  readonly bin: number
}

export interface Digest {
  readonly processes: number
  /** In the whole time. */
  readonly requests: number
  /** Renewals per time between the first and last token request: of the fleet, or of each process if it shares none. */
  readonly requestsPerHour: number
  readonly calls: number
  readonly waited: number
  readonly longestWait: number
  readonly failed: number
  /** All fields from here on count only the view. */
  readonly requestsInView: number
  readonly requestBins: ReadonlyArray<number>
  readonly mostRequestsInASecond: number
  readonly commands: number
  readonly operations: Readonly<Partial<Record<Operation, number>>>
  readonly commandBins: ReadonlyArray<number>
  /** In a tenth of a second. */
  readonly mostCommands: number
  /** Acquisitions by when they began. */
  readonly acquisitions: number
  readonly acquisitionBins: ReadonlyArray<number>
  /** Acquisitions that found the token at their first look, that found it later, and that asked the endpoint. */
  readonly found: number
  readonly joined: number
  readonly asked: number
  /** The time from the start of the view until the last acquisition that began in it has ended. */
  readonly lastReady: number
}

export type Digests = Readonly<Record<string, Digest>>

export const of = (digests: Digests, name: string): Digest => {
  const found = digests[name]
  if (found === undefined) throw new Error(`No outcome of the scenario "${name}"`)
  return found
}

const hour = 3_600_000

const binned = (times: ReadonlyArray<number>, { bin, from, to }: View): ReadonlyArray<number> => {
  const bins = Array.from({ length: Math.ceil((to - from) / bin) }, () => 0)
  for (const time of times) {
    const index = Math.floor((time - from) / bin)
    bins[index] = (bins[index] ?? 0) + 1
  }
  return bins
}

const rate = (streams: ReadonlyArray<ReadonlyArray<number>>): number => {
  let [renewals, time] = [0, 0]
  for (const stream of streams) {
    renewals += Math.max(stream.length - 1, 0)
    time += (stream.at(-1) ?? 0) - (stream[0] ?? 0)
  }
  return time === 0 ? 0 : streams.length * renewals / time * hour
}

export const digest = (setup: Setup, outcome: Outcome, view: View): Digest => {
  const start = view.afterRequest === undefined ? 0 : outcome.requests[view.afterRequest - 1] ?? Number.NaN
  const isInView = (at: number) => at - start >= view.from && at - start < view.to
  const inView = (times: ReadonlyArray<number>) => times.filter(isInView).map((at) => at - start)
  const commands = outcome.commands.filter(({ at }) => isInView(at))
  const times = commands.map(({ at }) => at - start)
  const requests = inView(outcome.requests)
  const acquisitions = outcome.acquisitions.filter(({ from }) => isInView(from))
  const unasked = acquisitions.filter(({ asked }) => !asked)
  const operations: Partial<Record<Operation, number>> = {}
  for (const { operation } of commands) operations[operation] = (operations[operation] ?? 0) + 1
  return {
    processes: setup.processes,
    requests: outcome.requests.length,
    requestsPerHour: rate(setup.shared ? [outcome.requests] : outcome.requestsOf),
    calls: outcome.calls,
    waited: outcome.waited,
    longestWait: outcome.longestWait,
    failed: outcome.failed,
    requestsInView: requests.length,
    requestBins: binned(requests, view),
    mostRequestsInASecond: max([0, ...binned(requests, { ...view, bin: 1000 })]),
    commands: commands.length,
    operations,
    commandBins: binned(times, view),
    mostCommands: max([0, ...binned(times, { ...view, bin: 100 })]),
    acquisitions: acquisitions.length,
    acquisitionBins: binned(acquisitions.map(({ from }) => from - start), view),
    found: unasked.filter(({ commands }) => commands === 1).length,
    joined: unasked.filter(({ commands }) => commands > 1).length,
    asked: acquisitions.length - unasked.length,
    lastReady: max([0, ...acquisitions.map(({ to }) => to - start - view.from)])
  }
}
