/** Runs all measurements, one after the other. */
import { measureColdStart } from "./coldStart.js"
import { measureOutages, measurePeerFailure, measureRevoked } from "./failures.js"
import { acrossProcesses, inOwnProcess, merged } from "./harness.js"
import { measureFibers, measureLoad } from "./load.js"
import { peers, store } from "./peers.js"
import { measureSizes } from "./size.js"
import { measurePeerStampede, measureStampede } from "./stampede.js"
import type * as rounds from "./traced.js"

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

export type CachedPath = Awaited<ReturnType<typeof measureCachedPath>>

/** `others`: whether the calls are also those of the other libraries. */
export const measureCachedPath = async ({ millis, processes }: Processes, others: boolean) => {
  const names = ["hit", others ? "calls" : "ownCalls", "tracedHit", "tracedCalls"] as const
  // The measurements take turns, so that other load on the machine affects all alike.
  const measured = await inTurn(
    Array.from({ length: processes }),
    () => inTurn(names, (name) => inOwnProcess<typeof rounds[typeof name]>("traced.js", name, [millis]))
  )
  const across = (index: number) => merged(measured.map((each) => each[index] ?? []))
  return { hits: across(0), calls: across(1), traced: { hits: across(2), calls: across(3) } }
}

const measureAttached = async ({ millis, processes }: Processes) => {
  const attached = async (name: "attach" | "tracedAttach" | "tracedRequest", factor = 1) =>
    acrossProcesses(
      await inTurn(Array.from({ length: processes }), () =>
        inOwnProcess<typeof rounds[typeof name]>("traced.js", name, [millis * factor]))
    )
  return {
    plain: await attached("attach"),
    traced: await attached("tracedAttach"),
    // The span of each request costs several times the added work, so the measurement takes longer.
    request: await attached("tracedRequest", 2.5)
  }
}

export type Results = Awaited<ReturnType<typeof measureAll>>

/** With `quick`, it measures for a shorter time, and no other library under load. */
export const measureAll = async (quick: boolean, tell: (what: string) => void) => {
  const step = <A>(what: string, run: () => Promise<A>): Promise<A> => {
    tell(what)
    return run()
  }
  const processes = quick ? 3 : 5
  const seconds = quick ? 4 : 10
  const cold = peers.flatMap((peer) => [1, 10, 100, 1000].map((callers) => ({ peer, callers })))
  return {
    seconds,
    ...await step("cached token", () => measureCachedPath({ processes, millis: quick ? 600 : 1200 }, true)),
    attach: await step("attaching the header", () => measureAttached({ processes, millis: quick ? 400 : 800 })),
    coldStart: await step("start of the command line", () => measureColdStart(quick ? 5 : 21)),
    sizes: await step("size", measureSizes),
    stampedes: await step(
      "cold start with fibers",
      () => inTurn([1, 10, 100, 1000, 10_000, ...(quick ? [] : [100_000])], (fibers) => measureStampede(fibers, quick))
    ),
    peerStampedes: await step(
      "cold start with promises",
      () => inTurn(cold, ({ callers, peer }) => measurePeerStampede(peer, callers))
    ),
    revoked: await step("all tokens revoked", () => measureRevoked(quick ? 1 : 5)),
    outages: await step("outages around the end of a token", () => measureOutages(quick)),
    peerFailures: await step("a failing endpoint", () => Promise.all(peers.map(measurePeerFailure))),
    fibers: await step("short-lived tokens, fibers", () => measureFibers(seconds)),
    loads: await inTurn(
      quick ? [store] : peers,
      (peer) => step(`short-lived tokens, ${peer.name}`, () => measureLoad(peer, seconds))
    )
  }
}
