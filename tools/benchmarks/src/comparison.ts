/** The same loop for all libraries, with promises over HTTP: a cold start, short-lived tokens, a failing endpoint. */
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as pause } from "node:timers/promises"
import { max } from "./harness.js"
import type { Client, Peer } from "./peers.js"

/** The response to a token request instead of a token. */
export type Fault = "status 503" | "reset"

/** A token endpoint on loopback that accepts any client and any grant. */
export interface TokenServer {
  readonly origin: string
  readonly tokenUrl: string
  readonly life: number
  fault: Fault | undefined
  /** The token requests, in milliseconds of `Date.now()`. */
  readonly arrivals: ReadonlyArray<number>
  /** When the token with this value expires, by `Date.now()`. */
  readonly expiresAt: (token: string) => number
}

/** The margin for tokens of this lifetime: 5 minutes as in most libraries, or a quarter of a shorter lifetime. */
export const aheadOf = (life: number): number => Math.min(300, life / 4)

/**
 * Starts a server for as long as `use` runs. The lifetime of its tokens, `life` whole seconds, counts from the middle
 * of `delay`, the milliseconds between a request and its response, as if each direction took half of it.
 */
export const withTokenServer = async <A>(
  { delay, life }: { readonly life: number; readonly delay: number },
  use: (server: TokenServer) => Promise<A>
): Promise<A> => {
  const arrivals: Array<number> = []
  const expiries = new Map<string, number>()
  const listener = createServer((request, response) => {
    arrivals.push(Date.now())
    request.resume()
    const { fault } = server
    if (fault === "reset") return void request.socket.destroy()
    void pause(delay / 2).then(() => {
      const value = `invented-token-${expiries.size + 1}`
      if (fault === undefined) expiries.set(value, Date.now() + life * 1000)
      const body = fault === undefined
        ? { access_token: value, token_type: "bearer", expires_in: life, issued_token_type: "access_token" }
        : { error: "temporarily_unavailable" }
      return pause(delay / 2, JSON.stringify(body))
    }).then((body) => {
      response.writeHead(fault === undefined ? 200 : 503, { "content-type": "application/json" }).end(body)
    })
  })
  await once(listener.listen({ host: "127.0.0.1", port: 0, backlog: 4096 }), "listening")
  const origin = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`
  const expiresAt = (token: string) => expiries.get(token) ?? Number.NaN
  const tokenUrl = `${origin}/v1/oauth/accesstoken`
  const server: TokenServer = { origin, tokenUrl, life, fault: undefined, arrivals, expiresAt }
  try {
    return await use(server)
  } finally {
    listener.close()
    listener.closeAllConnections()
  }
}

export const [life, delay, callers] = [2, 200, 200] as const

/** How long a caller rests between two calls. The first calls are spread over it. */
const rest = 20

export const measurePeer = async (peer: Peer, seconds: number) => {
  const withClient = <A>(life: number, delay: number, use: (client: Client, server: TokenServer) => Promise<A>) =>
    withTokenServer({ life, delay }, async (server) => {
      const client = await peer.make({ server, ahead: aheadOf(life) })
      const used = await use(client, server)
      await client.close?.()
      return used
    })
  return {
    name: peer.name,
    cold: await withClient(3600, 100, coldStart),
    load: await withClient(life, delay, (client, server) => underLoad(client, server, seconds)),
    failure: await withClient(3, 20, failing)
  }
}

/** Token requests and failed calls of a thousand callers at once. */
const coldStart = async (client: Client, { arrivals }: TokenServer) => {
  const outcomes = await Promise.allSettled(Array.from({ length: 1000 }, () => client.token()))
  return { requests: arrivals.length, failed: outcomes.filter(({ status }) => status === "rejected").length }
}

/**
 * A call waited if its result came in a later turn of the event loop than the call, and more than 5 ms later. A cached
 * token is returned in the same turn, however busy the machine is. A caller that waits for an acquisition waits for any
 * part of 200 ms, so 5 ms hide one in forty.
 */
const slice = 5

const underLoad = async (client: Client, { arrivals, expiresAt }: TokenServer, seconds: number) => {
  await client.token()
  const until = performance.now() + seconds * 1000
  const waits: Array<number> = []
  let [calls, expired, failed, turn] = [0, 0, 0, 0]
  await Promise.all(Array.from({ length: callers }, async (_, caller) => {
    await pause(rest * caller / callers)
    while (performance.now() < until) {
      const [begun, at] = [turn, performance.now()]
      setImmediate(() => turn++)
      const value = await client.token().catch(() => undefined)
      const wait = performance.now() - at
      calls++
      if (turn !== begun && wait > slice) waits.push(wait)
      if (value === undefined) failed++
      else if (!(Date.now() < expiresAt(value))) expired++
      await pause(rest)
    }
  }))
  // The token requests include the one before the load.
  return { calls, waited: waits.length, longest: max(waits), expired, failed, requests: arrivals.length }
}

/** The endpoint begins to fail while callers have a valid token: which calls fail, or end after the token? */
const failing = async (client: Client, server: TokenServer) => {
  const dies = server.expiresAt(await client.token())
  server.fault = "status 503"
  const asked = server.arrivals.length
  const calls = []
  while (Date.now() < dies - 200) {
    calls.push(client.token().then(() => Date.now() < dies, () => false))
    await pause(20)
  }
  await pause(dies - Date.now())
  const requests = server.arrivals.length - asked
  server.fault = undefined
  const lost = (await Promise.all(calls)).filter((succeeded) => !succeeded).length
  return { calls: calls.length, lost, requests }
}
