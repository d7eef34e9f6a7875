/** All measurements of a run, one after the other. */
import { type Attach, measureAttach } from "./attach.js"
import { type Call, measureCalls } from "./calls.js"
import { type Hit, measureHit } from "./hit.js"
import { type Load, measureFibers, measureLoad } from "./load.js"
import { measureOutages, type Outages } from "./outage.js"
import { measurePeerFailure, type PeerFailure } from "./peerFailure.js"
import { peers } from "./peers/index.js"
import { store } from "./peers/store.js"
import { measurePeerStampede, type PeerStampede, sizes } from "./peerStampede.js"
import { measureRevoked, type Revoked } from "./revoked.js"
import { measureSizes, type Size } from "./size.js"
import { measureStampede, type Stampede } from "./stampede.js"

export interface Results {
  readonly seconds: number
  readonly hits: ReadonlyArray<Hit>
  readonly calls: ReadonlyArray<Call>
  readonly attach: Attach
  readonly stampedes: ReadonlyArray<Stampede>
  readonly fibers: Load
  /** Ours first; with `--quick` ours alone. */
  readonly loads: ReadonlyArray<Load>
  readonly outages: Outages
  readonly revoked: Revoked
  readonly sizes: Readonly<Record<"core" | "provider", Size>>
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
  const seconds = quick ? 4 : 10
  return {
    seconds,
    hits: await step("cached token in one fiber", () => measureHit(quick ? 2000 : 8000)),
    calls: await step("cached token as a promise", () => measureCalls(quick ? 2000 : 8000)),
    attach: await step("attaching the header", () => measureAttach(quick ? 1000 : 4000)),
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
