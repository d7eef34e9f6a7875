/** The same loop for all libraries, with promises over HTTP: a cold start, short-lived tokens, outages. */
import { setTimeout as pause } from "node:timers/promises"
import { Effect } from "effect"
import { alternate, awaiting, max, spread } from "./harness.js"
import type { Client, Peer } from "./peers.js"
import { type Fault, type TokenServer, withTokenServer } from "./tokenServer.js"

/** The margin for tokens of this lifetime: 5 minutes as in most libraries, or a quarter of a shorter lifetime. */
export const aheadOf = (life: number): number => Math.min(300, life / 4)

export const [life, delay, callers] = [2, 200, 200] as const

const withClient = <A>(
  peer: Peer,
  setting: { readonly life: number; readonly delay: number },
  use: (client: Client, server: TokenServer) => Promise<A>
) =>
  withTokenServer(setting, async (server) => {
    const client = await peer.make({ server, ahead: aheadOf(server.life) })
    const used = await use(client, server)
    await client.close?.()
    return used
  })

export const measurePeer = async (peer: Peer, seconds: number) => ({
  name: peer.name,
  ...await withClient(peer, { life: 3600, delay: 100 }, async (client, { arrivals }) => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 1000 }, () => client.token())
    )
    const failed = outcomes.filter(({ status }) => status === "rejected").length
    const cold = { requests: arrivals.length, failed }
    const rounds = await Effect.runPromise(alternate([awaiting(peer.name, client.get)], 1500))
    if (arrivals.length !== cold.requests) {
      throw new Error(`A cached call of ${peer.name} sent a token request.`)
    }
    return { cold, cached: spread(rounds[peer.name] ?? []) }
  }),
  load: await withClient(
    peer,
    { life, delay },
    (client, server) => underLoad(client, server, seconds)
  ),
  outage: await measureOutage(peer, 8, -2.5, "status 503")
})

/**
 * A call waited if its result came in a later turn of the event loop than the call, and more than 5 ms later. A cached
 * token is returned in the same turn, however busy the machine is. A caller that waits for an acquisition waits for any
 * part of 200 ms, so 5 ms hide one in forty.
 */
const slice = 5

/** Callers that rest between two calls; their first calls are spread over the rest. `wait` is 0 within one turn. */
const callUntil = async (until: number, callers: number, rest: number, { token }: Client) => {
  const calls: Array<
    Readonly<Record<"began" | "ended" | "wait", number>> & {
      readonly token: string | undefined
    }
  > = []
  let turn = 0
  await Promise.all(Array.from({ length: callers }, async (_, caller) => {
    await pause(rest * caller / callers)
    while (Date.now() < until) {
      const [begun, began, at] = [turn, Date.now(), performance.now()]
      setImmediate(() => turn++)
      const value = await token().catch(() => undefined)
      calls.push({
        token: value,
        began,
        ended: Date.now(),
        wait: turn === begun ? 0 : performance.now() - at
      })
      await pause(rest)
    }
  }))
  return calls
}

const underLoad = async (
  client: Client,
  { arrivals, expiresAt }: TokenServer,
  seconds: number
) => {
  await client.token()
  const calls = await callUntil(Date.now() + seconds * 1000, callers, 20, client)
  const waits = calls.map(({ wait }) => wait).filter((wait) => wait > slice)
  return {
    calls: calls.length,
    waited: waits.length,
    longest: max(waits),
    expired:
      calls.filter(({ ended, token }) => token !== undefined && !(ended < expiresAt(token)))
        .length,
    failed: calls.filter(({ token }) => token === undefined).length,
    // They include the one before the load.
    requests: arrivals.length
  }
}

/** Ten callers around an outage of 3 s that begins `from` seconds after the end of the token. */
export const measureOutage = (peer: Peer, life: number, from: number, fault: Fault) =>
  withClient(peer, { life, delay: 20 }, async (client, server) => {
    const first = await client.token()
    const dies = server.expiresAt(first)
    const [begins, ends] = [dies + from * 1000, dies + from * 1000 + 3000]
    const calling = callUntil(ends + 3000, 10, 10, client)
    await pause(begins - Date.now())
    server.fault = fault
    await pause(ends - Date.now())
    server.fault = undefined
    const requests = server.arrivals.filter((at) => at >= begins && at < ends).length
    const all = await calling
    const valid = all.filter(({ began }) => began >= begins && began < dies - 500)
    const recovered = all.filter(({ ended, token }) =>
      token !== undefined && token !== first && ended >= ends
    )
    return {
      fault,
      from,
      requests,
      calls: valid.length,
      /** Calls without a result while the first token was valid. The last begin half a second before its end. */
      lost: valid.filter(({ ended, token }) => token === undefined || ended >= dies).length,
      /** Milliseconds from the end of the outage until a caller has the first new token. */
      recovery: Math.min(...recovered.map(({ ended }) => ended)) - ends
    }
  })
