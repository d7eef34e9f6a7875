/** Real HTTP servers on loopback: the handler of a package, and the protected resource. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Option, type Scope } from "effect"

/**
 * As for servers behind a balancer. Node accepts one connection per turn of its event loop: if many callers opened new
 * connections at once, the last would wait for the whole lifetime of a token.
 */
const keepAliveTimeout = 65_000

/** Listens on a free port until the scope ends. The handler is created with the URL, which some servers need. */
export const serve = <E, R>(
  make: (url: string) => Effect.Effect<RequestListener, E, R>
): Effect.Effect<string, E, R | Scope.Scope> =>
  Effect.gen(function*() {
    const server = yield* Effect.acquireRelease(
      Effect.async<ReturnType<typeof createServer>>((resume) => {
        const server = createServer({ keepAliveTimeout })
        server.once("error", (error) => resume(Effect.die(error)))
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.async<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on("request", yield* make(url))
    return url
  })

export const tokenPath = "/v1/oauth/accesstoken"

export interface CountingTokenServer {
  readonly url: string
  readonly tokenRequests: Effect.Effect<number>
}

/** `serve`, with the requests of the token endpoint counted before the server sees them. */
export const serveTokens = <E, R>(
  make: (url: string) => Effect.Effect<RequestListener, E, R>
): Effect.Effect<CountingTokenServer, E, R | Scope.Scope> =>
  Effect.gen(function*() {
    let tokenRequests = 0
    const url = yield* serve((url) =>
      Effect.map(make(url), (handler): RequestListener => (request, response) => {
        if (request.url === tokenPath) tokenRequests++
        handler(request, response)
      })
    )
    return { url, tokenRequests: Effect.sync(() => tokenRequests) }
  })

export interface ProtectedResource {
  readonly apiUrl: string
  readonly calls: Effect.Effect<number>
  readonly unauthorized: Effect.Effect<number>
}

/** A response of the resource: its status, and the challenge of a 401. */
interface Answer {
  readonly status: number
  readonly challenge: string
}

/** The protected API. It checks the token of each call with the given guard, and counts the calls. */
export const guardedResource = (
  guard: (request: IncomingMessage) => Effect.Effect<Answer>
): Effect.Effect<ProtectedResource, never, Scope.Scope> =>
  Effect.gen(function*() {
    let calls = 0
    let unauthorized = 0
    const answer = (request: IncomingMessage, response: ServerResponse) =>
      guard(request).pipe(
        Effect.catchAllCause((cause) => Effect.as(Effect.logError(cause), { status: 500, challenge: "" })),
        Effect.map(({ challenge, status }) => {
          if (status === 401) unauthorized++
          response.writeHead(status, {
            "content-type": "application/json",
            ...(challenge === "" ? {} : { "www-authenticate": challenge })
          })
          response.end(JSON.stringify({ status }))
        })
      )
    const apiUrl = yield* serve(() =>
      Effect.succeed<RequestListener>((request, response) => {
        calls++
        request.resume()
        Effect.runFork(answer(request, response))
      })
    )
    return { apiUrl, calls: Effect.sync(() => calls), unauthorized: Effect.sync(() => unauthorized) }
  })

const bearer = ({ headers }: IncomingMessage): Option.Option<string> =>
  Option.fromNullable(/^Bearer (\S+)$/.exec(headers.authorization ?? "")?.[1])

/** The API of a server without a guard of its own: `accepts` checks the token of each call. */
export const protectedResource = (
  accepts: (token: string) => Effect.Effect<boolean>
): Effect.Effect<ProtectedResource, never, Scope.Scope> =>
  guardedResource((request) =>
    Option.match(bearer(request), {
      onNone: () => Effect.succeed({ status: 401, challenge: "Bearer" }),
      onSome: (token) =>
        Effect.map(
          accepts(token),
          (accepted) =>
            accepted ? { status: 200, challenge: "" } : { status: 401, challenge: "Bearer error=\"invalid_token\"" }
        )
    })
  )
