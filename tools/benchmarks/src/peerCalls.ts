/** The behaviour of the libraries at a cold start, and when the endpoint fails. */
import { pause } from "./harness.js"
import { aheadOf } from "./peers/index.js"
import type { Peer } from "./peers/Peer.js"
import { withTokenServer } from "./tokenServer.js"

export interface PeerFailure {
  readonly name: string
  readonly calls: number
  /** Calls that failed, or had no result before the token expired. */
  readonly lost: number
  /** Token requests while it failed. */
  readonly requests: number
}

const life = 3
const every = 20

/** The last calls begin this long before the token expires. */
const spare = 200

/** The endpoint begins to fail while callers have a valid token: do they lose it? */
export const measurePeerFailure = (peer: Peer): Promise<PeerFailure> =>
  withTokenServer({ life, delay: 20, fault: "none" }, async (server) => {
    const client = await peer.make({ server, ahead: aheadOf(life) })
    const dies = server.expiresAt(await client.token())
    server.settings.fault = "status 503"
    const asked = server.arrivals.length
    let lost = 0
    const calls = []
    while (Date.now() < dies - spare) {
      calls.push(
        client.token().then(
          () => {
            if (Date.now() >= dies) lost++
          },
          () => {
            lost++
          }
        )
      )
      await pause(every)
    }
    await pause(dies - Date.now())
    const requests = server.arrivals.length - asked
    server.settings.fault = "none"
    await Promise.allSettled(calls)
    await client.close()
    return { name: peer.name, calls: calls.length, lost, requests }
  })

export interface PeerStampede {
  readonly name: string
  readonly callers: number
  readonly requests: number
  readonly failed: number
}

export const sizes = [1, 10, 100, 1000]

/** Counts the token requests of concurrent callers at a cold start, through promises. */
export const measurePeerStampede = (peer: Peer, callers: number): Promise<PeerStampede> =>
  withTokenServer({ life: 3600, delay: 100, fault: "none" }, async (server) => {
    const client = await peer.make({ server, ahead: aheadOf(3600) })
    const outcomes = await Promise.allSettled(Array.from({ length: callers }, () => client.token()))
    const failed = outcomes.filter(({ status }) => status === "rejected").length
    const requests = server.arrivals.length
    await client.close()
    return { name: peer.name, callers, requests, failed }
  })
