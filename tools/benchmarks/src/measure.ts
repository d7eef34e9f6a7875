/** Runs all measurements, one after the other. */
import type * as cached from "./cached.js"
import { measureColdStart } from "./coldStart.js"
import { measurePeer } from "./comparison.js"
import { measureOutages, measureRevoked } from "./failures.js"
import { acrossProcesses, inOwnProcess, merged, type Spread, type Timed } from "./harness.js"
import { tell } from "./page.js"
import { peers, store } from "./peers.js"
import { measureSizes } from "./size.js"
import { measureStampede } from "./stampede.js"

const inTurn = async <A, B>(values: ReadonlyArray<A>, measure: (value: A) => Promise<B>): Promise<ReadonlyArray<B>> => {
  const measured = []
  for (const value of values) measured.push(await measure(value))
  return measured
}

/** Compiled code differs more between processes than within one, so that each measurement runs in several. */
interface Processes {
  readonly processes: number
  readonly millis: number
}

/** The measurements take turns, so that other load on the machine affects all alike. */
const inProcesses = <A>(names: ReadonlyArray<keyof typeof cached>, { millis, processes }: Processes) =>
  inTurn(
    Array.from({ length: processes }),
    () => inTurn(names, (name) => inOwnProcess<(millis: number) => Promise<A>>("cached.js", name, [millis]))
  )

export type CachedPath = Awaited<ReturnType<typeof measureCachedPath>>

/** `others`: whether the calls are also those of the other libraries. */
export const measureCachedPath = async (processes: Processes, others: boolean) => {
  const names = ["hit", others ? "allCalls" : "calls", "tracedHit", "tracedCalls"] as const
  const measured = await inProcesses<ReadonlyArray<Timed>>(names, processes)
  const across = (index: number) => merged(measured.map((each) => each[index] ?? []))
  return { hits: across(0), calls: across(1), traced: { hits: across(2), calls: across(3) } }
}

const measureAttached = async (processes: Processes) => {
  const measured = await inProcesses<Spread>(["attach", "tracedAttach", "tracedRequest"], processes)
  const across = (index: number) => acrossProcesses(measured.flatMap((each) => each[index] ?? []))
  return { plain: across(0), traced: across(1), request: across(2) }
}

export type Results = Awaited<ReturnType<typeof measureAll>>

/** With `quick`, it measures for a shorter time, and no other library. */
export const measureAll = async (quick: boolean) => {
  const step = <A>(what: string, run: () => Promise<A>): Promise<A> => {
    tell(what)
    return run()
  }
  const processes = quick ? 3 : 5
  const seconds = quick ? 4 : 10
  const fibers = [1, 10, 100, 1000, 10_000, ...(quick ? [] : [100_000])]
  return {
    seconds,
    ...await step("cached token", () => measureCachedPath({ processes, millis: quick ? 600 : 1200 }, !quick)),
    attach: await step("attaching the header", () => measureAttached({ processes, millis: quick ? 400 : 800 })),
    coldStart: await step("start of the command line", () => measureColdStart(quick ? 5 : 21)),
    sizes: await step("size", measureSizes),
    stampedes: await step("cold start", () => inTurn(fibers, (count) => measureStampede(count, quick))),
    revoked: await step("all tokens revoked", () => measureRevoked(quick ? 1 : 5)),
    outages: await step("outages around the end of a token", () => measureOutages(quick)),
    peers: await inTurn(quick ? [store] : peers, (peer) => step(peer.name, () => measurePeer(peer, seconds)))
  }
}
