/** The endpoint begins to fail while callers have a live token: do they lose it? */
import { pause } from "./harness.js"
import { aheadOf } from "./peers/index.js"
import type { Peer } from "./peers/Peer.js"
import { withTokenServer } from "./tokenServer.js"

export interface PeerFailure {
  readonly name: string
  readonly calls: number
  /** Calls that failed, or had no answer before the token was dead. */
  readonly lost: number
  /** Token requests while it failed. */
  readonly requests: number
}

const life = 3
const every = 20

/** The last calls begin so long before the token is dead. */
const spare = 200

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
