/** Runs all measurements, one after the other. */
import type { Attach } from "./attach.js"
import type { CachedPath, Hits } from "./cachedPath.js"
import type { Call } from "./calls.js"
import { measureColdStart, type Program } from "./coldStart.js"
import { acrossProcesses, inProcesses, merged } from "./harness.js"
import type { Hit } from "./hit.js"
import { type Load, measureFibers, measureLoad } from "./load.js"
import { measureOutages, type Outages } from "./outage.js"
import { measurePeerFailure, measurePeerStampede, type PeerFailure, type PeerStampede, sizes } from "./peerCalls.js"
import { store } from "./peers/effect.js"
import { peers } from "./peers/index.js"
import { measureRevoked, type Revoked } from "./revoked.js"
import type { Measurement } from "./roundsProcess.js"
import { measureSizes } from "./size.js"
import { measureStampede, type Stampede } from "./stampede.js"

/** In an application that is traced. */
export interface Traced extends Hits {
  readonly attach: Attach
  /** Attaching, where each request also has a span of its own. */
  readonly request: Attach
}

export interface Results extends CachedPath {
  readonly seconds: number
  readonly attach: Attach
  readonly traced: Traced
  readonly coldStart: ReadonlyArray<Program>
  readonly stampedes: ReadonlyArray<Stampede>
  readonly fibers: Load
  /** Our library first, and with `--quick` no other. */
  readonly loads: ReadonlyArray<Load>
  readonly outages: Outages
  readonly revoked: Revoked
  readonly sizes: Awaited<ReturnType<typeof measureSizes>>
  readonly peerStampedes: ReadonlyArray<PeerStampede>
  readonly peerFailures: ReadonlyArray<PeerFailure>
}

export const measureAll = async (quick: boolean, tell: (what: string) => void): Promise<Results> => {
  const step = <A>(what: string, run: () => Promise<A>): Promise<A> => {
    tell(what)
    return run()
  }
  const inTurn = async <A, B>(
    values: ReadonlyArray<A>,
    measure: (value: A) => Promise<B>
  ): Promise<ReadonlyArray<B>> => {
    const measured = []
    for (const value of values) measured.push(await measure(value))
    return measured
  }
  const rounds = <A>(what: Measurement, millis: number) =>
    inProcesses<A>("roundsProcess.js", [what, `${millis / (quick ? 2 : 1)}`], quick ? 3 : 5)
  const hits = async (what: Measurement) => merged(await rounds<ReadonlyArray<Hit>>(what, 1200))
  const calls = async (what: Measurement) => merged(await rounds<ReadonlyArray<Call>>(what, 1200))
  const attach = async (what: Measurement, millis = 800): Promise<Attach> => {
    const attached = await rounds<Attach>(what, millis)
    const across = (part: keyof Attach) => acrossProcesses(attached.map((one) => one[part]))
    return { bare: across("bare"), authorized: across("authorized"), added: across("added") }
  }
  const seconds = quick ? 4 : 10
  return {
    seconds,
    hits: await step("cached token in one fiber", () => hits("hit")),
    calls: await step("cached token as a promise", () => calls("calls")),
    attach: await step("attaching the header", () => attach("attach")),
    traced: await step("the same, traced", async () => ({
      hits: await hits("tracedHit"),
      calls: await calls("tracedCalls"),
      attach: await attach("tracedAttach"),
      // The span costs several times the added work, so the measurement takes longer.
      request: await attach("tracedRequest", 2000)
    })),
    coldStart: await step("start of the command line", () => measureColdStart(quick ? 5 : 21)),
    sizes: await step("size", measureSizes),
    stampedes: await step("cold start with fibers", () => measureStampede(quick)),
    peerStampedes: await step(
      "cold start with promises",
      () =>
        inTurn(
          peers.flatMap((peer) => sizes.map((callers) => ({ peer, callers }))),
          ({ callers, peer }) => measurePeerStampede(peer, callers)
        )
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
