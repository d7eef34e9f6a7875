/**
 * A server under test: a real authorization server, started on loopback, and a protected resource that accepts its
 * tokens. The functions below are what such servers have in common.
 */
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Redacted, type Scope } from "effect"
import type { Program } from "./Program.js"

export interface Running {
  /** The `authUrl` of `StoreAuth`: the token endpoint is this and `/v1/oauth/accesstoken`. */
  readonly authUrl: string
  /** The protected resource: responds with 200 to a valid token of the server, otherwise with 401 and a challenge. */
  readonly apiUrl: string
  /** The token requests that reached the server, as it counts them. */
  readonly tokenRequests: Effect.Effect<number>
  /** The calls that reached the resource, including those with a 401. */
  readonly calls: Effect.Effect<number>
  /** The 401 responses of the resource. */
  readonly unauthorized: Effect.Effect<number>
  /** Revokes a token in the server's own way, if it has one. */
  readonly revoke?: ((token: string) => Effect.Effect<void>) | undefined
}

/** A server that can be started several times. It stops when the scope ends. It accepts `credentials`. */
export interface AuthorizationServer {
  readonly name: string
  /** The programs of Debian that it needs. */
  readonly programs?: ReadonlyArray<Program>
  /** Starts it with tokens of this lifetime in seconds. */
  readonly start: (life: number) => Effect.Effect<Running, never, Scope.Scope>
}

export const tokenPath = "/v1/oauth/accesstoken"

export interface Credentials {
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
}

export const credentials: Credentials = {
  clientId: "interop-client",
  clientSecret: Redacted.make("an-invented-secret-of-the-client")
}

/** The resource's own client. It introspects tokens and uses none. */
export const resourceServer: Credentials = {
  clientId: "interop-resource",
  clientSecret: Redacted.make("an-invented-secret-of-the-resource")
}

/** Its secret holds characters that a form encodes and the specification sends raw. */
export const rawClient: Credentials = {
  clientId: "interop-raw-client",
  clientSecret: Redacted.make("an+invented%20secret")
}

/** The body fields of a client's credentials. */
export const form = ({ clientId, clientSecret }: Credentials) => ({
  client_id: clientId,
  client_secret: Redacted.value(clientSecret)
})

/** Posts a form and returns the body; the status must be 200. */
export const postForm = async (url: string, fields: Readonly<Record<string, string>>): Promise<string> => {
  const response = await fetch(url, { method: "POST", body: new URLSearchParams(fields) })
  const body = await response.text()
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${body}`)
  return body
}

/**
 * Listens on a free port until the scope ends, and counts the requests, or those to one path. The handler is created
 * with the URL, which some servers need.
 */
export const serve = (
  make: (url: string) => RequestListener,
  path?: string
): Effect.Effect<{ readonly url: string; readonly requests: Effect.Effect<number> }, never, Scope.Scope> =>
  Effect.gen(function*() {
    // As for servers behind a balancer. Node accepts one connection per turn of its event loop: if many callers opened
    // new connections at once, the last would wait for the whole lifetime of a token.
    const server = createServer({ keepAliveTimeout: 65_000 })
    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.async<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const handle = make(url)
    let requests = 0
    server.on("request", (request, response) => {
      if (path === undefined || request.url === path) requests++
      handle(request, response)
    })
    return { url, requests: Effect.sync(() => requests) }
  })

type Resource = Pick<Running, "apiUrl" | "calls" | "unauthorized">

/** The protected API of a server. `accepts` checks the token of each call. */
export const protectedResource = (
  accepts: (token: string) => boolean | Promise<boolean>
): Effect.Effect<Resource, never, Scope.Scope> =>
  Effect.gen(function*() {
    let unauthorized = 0
    const challengeFor = async (token: string | undefined) =>
      token === undefined ? "Bearer" : await accepts(token) ? undefined : `Bearer error="invalid_token"`
    const { requests, url } = yield* serve(() => (request, response) => {
      request.resume()
      const [, token] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? "") ?? []
      void challengeFor(token).then((challenge) => {
        if (challenge === undefined) return response.end("{}")
        unauthorized++
        return response.writeHead(401, { "www-authenticate": challenge }).end("{}")
      }, (error: unknown) => response.writeHead(500).end(String(error)))
    })
    return { apiUrl: url, calls: requests, unauthorized: Effect.sync(() => unauthorized) }
  })

/** A resource that introspects each token (RFC 7662), and the revocation (RFC 7009), at endpoints of the server. */
export const introspecting = (
  introspection: string,
  revocation: string
): Effect.Effect<Resource & Pick<Running, "revoke">, never, Scope.Scope> =>
  Effect.map(
    protectedResource(async (token) => {
      const body = await postForm(introspection, { ...form(resourceServer), token })
      return (JSON.parse(body) as { readonly active: boolean }).active
    }),
    (resource) => ({
      ...resource,
      revoke: (token) => Effect.promise(() => postForm(revocation, { ...form(credentials), token }))
    })
  )
