/** A token endpoint on loopback that accepts any client and any grant, with delays and faults on demand. */
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as pause } from "node:timers/promises"

/** The response to a request instead of a token. */
export type Fault = "status 503" | "reset"

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
 * Starts a server for as long as `use` runs.
 *
 * - `life`: the lifetime of the tokens in whole seconds. It counts from the middle of `delay`, as if each direction
 *   took half of it.
 * - `delay`: the milliseconds between a request and its response.
 */
export const withTokenServer = async <A>(
  { delay, life }: { readonly life: number; readonly delay: number },
  use: (server: TokenServer) => Promise<A>
): Promise<A> => {
  const arrivals: Array<number> = []
  const expiries = new Map<string, number>()

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    arrivals.push(Date.now())
    request.resume()
    const { fault } = server
    if (fault === "reset") {
      request.socket.destroy()
      return
    }
    await pause(delay / 2)
    const value = `invented-token-${expiries.size + 1}`
    if (fault === undefined) expiries.set(value, Date.now() + life * 1000)
    await pause(delay / 2)
    response.writeHead(fault === undefined ? 200 : 503, { "content-type": "application/json" })
    response.end(JSON.stringify(
      fault === undefined
        ? { access_token: value, token_type: "bearer", expires_in: life, issued_token_type: "access_token" }
        : { error: "temporarily_unavailable" }
    ))
  }

  const listener = createServer((request, response) => {
    void answer(request, response)
  })
  await once(listener.listen({ host: "127.0.0.1", port: 0, backlog: 4096 }), "listening")
  const origin = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`
  const server: TokenServer = {
    origin,
    tokenUrl: `${origin}/v1/oauth/accesstoken`,
    life,
    fault: undefined,
    arrivals,
    expiresAt: (token) => expiries.get(token) ?? Number.NaN
  }
  try {
    return await use(server)
  } finally {
    listener.close()
    listener.closeAllConnections()
  }
}
