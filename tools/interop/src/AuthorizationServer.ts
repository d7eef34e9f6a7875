/**
 * A server under test: a real authorization server, started on loopback, and a protected resource that accepts its
 * tokens. The functions below are what such servers have in common.
 */
import { existsSync, readFileSync } from "node:fs"
import { createServer, type IncomingMessage, type RequestListener } from "node:http"
import { createRequire } from "node:module"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { Effect, Option, Redacted, type Scope } from "effect"

export interface Options {
  /** The lifetime of tokens in seconds. */
  readonly life: number
}

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
  /** Revokes a token in the server's own way. Present if `revocation.offered`. */
  readonly revoke?: ((token: string) => Effect.Effect<void>) | undefined
}

/** A server that can be started several times. It stops when the scope ends. It accepts `credentials`. */
export interface AuthorizationServer {
  readonly name: string
  /** The upstream version that the program or its package reports, without a distribution's revision. */
  readonly version: string
  /** How the resource checks a token, in a few words for the page. */
  readonly checks: string
  /** How a token is revoked, or what the server lacks for that: in a few words for the page. */
  readonly revocation: { readonly offered: boolean; readonly how: string }
  readonly start: (options: Options) => Effect.Effect<Running, never, Scope.Scope>
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
export const postForm = (url: string, fields: Readonly<Record<string, string>>): Effect.Effect<string> =>
  Effect.gen(function*() {
    const response = yield* Effect.promise((signal) =>
      fetch(url, { method: "POST", body: new URLSearchParams(fields), signal })
    )
    const body = yield* Effect.promise(() => response.text())
    return response.status === 200 ? body : yield* Effect.dieMessage(`${url} answered ${response.status}: ${body}`)
  })

/** The version of an installed package, by its own manifest: not every package exports that. */
export const packageVersion = (name: string): string => {
  const folders = createRequire(import.meta.url).resolve.paths(name) ?? []
  const manifest = folders.map((folder) => join(folder, name, "package.json")).find(existsSync)
  if (manifest === undefined) throw new Error(`${name} is not installed`)
  return (JSON.parse(readFileSync(manifest, "utf8")) as { readonly version: string }).version
}

/**
 * As for servers behind a balancer. Node accepts one connection per turn of its event loop: if many callers opened new
 * connections at once, the last would wait for the whole lifetime of a token.
 */
const keepAliveTimeout = 65_000

export interface Serving {
  readonly url: string
  /** The number of requests so far. */
  readonly requests: Effect.Effect<number>
}

/**
 * Listens on a free port until the scope ends, and counts the requests, or those to one path. The handler is created
 * with the URL, which some servers need.
 */
export const serve = (
  make: (url: string) => RequestListener,
  path?: string
): Effect.Effect<Serving, never, Scope.Scope> =>
  Effect.gen(function*() {
    const server = createServer({ keepAliveTimeout })
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

/** The protected API. The guard checks the token of each call, and returns a challenge unless it accepts the token. */
export const guardedResource = (
  guard: (request: IncomingMessage) => Effect.Effect<Option.Option<string>>
): Effect.Effect<Resource, never, Scope.Scope> =>
  Effect.gen(function*() {
    let unauthorized = 0
    const { requests, url } = yield* serve(() => (request, response) => {
      request.resume()
      const answer = guard(request).pipe(
        Effect.map(Option.match({
          onNone: () => response.writeHead(200),
          onSome: (challenge) => {
            unauthorized++
            return response.writeHead(401, { "www-authenticate": challenge })
          }
        })),
        Effect.catchAllCause((cause) => Effect.as(Effect.logError(cause), response.writeHead(500)))
      )
      Effect.runFork(Effect.map(answer, () => response.end("{}")))
    })
    return { apiUrl: url, calls: requests, unauthorized: Effect.sync(() => unauthorized) }
  })

/** The API of a server without a guard of its own: `accepts` checks the token of each call. */
export const protectedResource = (
  accepts: (token: string) => Effect.Effect<boolean>
): Effect.Effect<Resource, never, Scope.Scope> =>
  guardedResource(({ headers }) => {
    const [, token] = /^Bearer (\S+)$/.exec(headers.authorization ?? "") ?? []
    return token === undefined
      ? Effect.succeedSome("Bearer")
      : Effect.map(accepts(token), (accepted) => accepted ? Option.none() : Option.some(`Bearer error="invalid_token"`))
  })

/** What `introspecting` does, in the words of the page. */
export const standardEndpoints = {
  checks: "introspects each token over HTTP (RFC 7662)",
  revocation: { offered: true, how: "revocation endpoint (RFC 7009)" }
} as const

/** A resource that introspects each token at an endpoint of the server, and the revocation at another one. */
export const introspecting = (
  introspection: string,
  revocation: string
): Effect.Effect<Resource & Pick<Running, "revoke">, never, Scope.Scope> =>
  Effect.map(
    protectedResource((token) =>
      Effect.map(
        postForm(introspection, { ...form(resourceServer), token }),
        (body) => (JSON.parse(body) as { readonly active: boolean }).active
      )
    ),
    (resource) => ({
      ...resource,
      revoke: (token) => Effect.asVoid(postForm(revocation, { ...form(credentials), token }))
    })
  )
