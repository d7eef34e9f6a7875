/** A token endpoint on loopback that accepts any client and any grant, with delays and faults on demand. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { pause } from "./harness.js"

/**
 * - `life`: the lifetime of the tokens in whole seconds. It counts from the middle of `delay`, as if each direction
 *   took half of it.
 * - `delay`: the milliseconds between a request and its response.
 * - `fault`: the response to a request instead of a token.
 */
export interface Settings {
  life: number
  delay: number
  fault: "none" | "status 503" | "reset"
}

/** Times are milliseconds of `Date.now()`. */
export interface Arrival {
  readonly at: number
  answeredAt: number
  ok: boolean
}

export interface TokenServer {
  readonly origin: string
  readonly tokenUrl: string
  readonly settings: Settings
  readonly arrivals: ReadonlyArray<Arrival>
  /** When the token with this value expires, by `Date.now()`. */
  readonly expiresAt: (token: string) => number
  readonly close: () => Promise<void>
}

const path = "/v1/oauth/accesstoken"

export const startTokenServer = (initial: Settings): Promise<TokenServer> => {
  const settings = { ...initial }
  const arrivals: Array<Arrival> = []
  const expiries = new Map<string, number>()

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const arrival = { at: Date.now(), answeredAt: Number.NaN, ok: false }
    arrivals.push(arrival)
    request.resume()
    const { fault } = settings
    if (fault === "reset") {
      request.socket.destroy()
      return
    }
    await pause(settings.delay / 2)
    const value = `invented-token-${expiries.size + 1}`
    if (fault === "none") expiries.set(value, Date.now() + settings.life * 1000)
    await pause(settings.delay / 2)
    arrival.answeredAt = Date.now()
    arrival.ok = fault === "none"
    response.writeHead(arrival.ok ? 200 : 503, { "content-type": "application/json" })
    response.end(JSON.stringify(
      arrival.ok
        ? { access_token: value, token_type: "bearer", expires_in: settings.life, issued_token_type: "access_token" }
        : { error: "temporarily_unavailable" }
    ))
  }

  const server = createServer((request, response) => {
    void answer(request, response)
  })
  return new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen({ host: "127.0.0.1", port: 0, backlog: 4096 }, () => {
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      resolve({
        origin,
        tokenUrl: `${origin}${path}`,
        settings,
        arrivals,
        expiresAt: (token) => expiries.get(token) ?? Number.NaN,
        close: () =>
          new Promise((resolve) => {
            server.close(() => {
              resolve()
            })
            server.closeAllConnections()
          })
      })
    })
  })
}

/** Starts a server for as long as `use` runs. */
export const withTokenServer = async <A>(
  settings: Settings,
  use: (server: TokenServer) => Promise<A>
): Promise<A> => {
  const server = await startTokenServer(settings)
  try {
    return await use(server)
  } finally {
    await server.close()
  }
}
