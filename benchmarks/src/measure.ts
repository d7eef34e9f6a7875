/** All measurements of a run, one after the other. */
import type { Attach } from "./attach.js"
import type { Call } from "./calls.js"
import { acrossProcesses, inProcesses, merged } from "./harness.js"
import type { Hit } from "./hit.js"
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
  const rounds = <A>(what: string, millis: number) =>
    inProcesses<A>("roundsProcess.js", [what, `${millis / (quick ? 2 : 1)}`], quick ? 3 : 5)
  const seconds = quick ? 4 : 10
  return {
    seconds,
    hits: await step("cached token in one fiber", async () => merged(await rounds<ReadonlyArray<Hit>>("hit", 1200))),
    calls: await step(
      "cached token as a promise",
      async () => merged(await rounds<ReadonlyArray<Call>>("calls", 1200))
    ),
    attach: await step("attaching the header", async () => {
      const attached = await rounds<Attach>("attach", 800)
      const across = (part: keyof Attach) => acrossProcesses(attached.map((one) => one[part]))
      return { bare: across("bare"), authorized: across("authorized"), added: across("added") }
    }),
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
