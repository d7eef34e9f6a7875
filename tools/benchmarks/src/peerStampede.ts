/** A cold start through promises: how many token requests so many callers send. */
import { aheadOf } from "./peers/index.js"
import type { Peer } from "./peers/Peer.js"
import { withTokenServer } from "./tokenServer.js"

export interface PeerStampede {
  readonly name: string
  readonly callers: number
  readonly requests: number
  readonly failed: number
}

export const sizes = [1, 10, 100, 1000]

const life = 3600

export const measurePeerStampede = (peer: Peer, callers: number): Promise<PeerStampede> =>
  withTokenServer({ life, delay: 100, fault: "none" }, async (server) => {
    const client = await peer.make({ server, ahead: aheadOf(life) })
    const outcomes = await Promise.allSettled(Array.from({ length: callers }, () => client.token()))
    const failed = outcomes.filter(({ status }) => status === "rejected").length
    const requests = server.arrivals.length
    await client.close()
    return { name: peer.name, callers, requests, failed }
  })
