/** A token endpoint on loopback, for all libraries alike. */
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as pause } from "node:timers/promises"

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
        ? {
          access_token: value,
          token_type: "bearer",
          expires_in: life,
          issued_token_type: "access_token"
        }
        : { error: "temporarily_unavailable" }
      return pause(delay / 2, JSON.stringify(body))
    }).then((body) => {
      response.writeHead(fault === undefined ? 200 : 503, {
        "content-type": "application/json"
      }).end(body)
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
