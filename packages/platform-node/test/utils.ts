/** Servers and proxies for the tests. All of them on loopback, all gone with the scope. */
import Dns from "node:dns"
import * as Http from "node:http"
import * as Https from "node:https"
import * as Net from "node:net"
import { HttpClient } from "@effect/platform"
import { afterAll, beforeAll } from "@effect/vitest"
import { AuthorizedHttpClient } from "@store-api/core"
import { Effect, Redacted, Schedule, type Scope } from "effect"
import type { Identity } from "./support/certificates.js"

export interface Server {
  readonly url: string
  readonly port: number
  /** How many sockets were opened so far, and how many are open. */
  readonly opened: () => number
  readonly open: () => number
  /** The most that were open at once. */
  readonly most: () => number
}

/** Any server of Node, listening for as long as the scope is open. */
export const listen = (
  server: Net.Server,
  { address = "127.0.0.1", host = "127.0.0.1", protocol = "http" }: {
    readonly address?: string
    readonly host?: string
    readonly protocol?: string
  } = {}
): Effect.Effect<Server, never, Scope.Scope> =>
  Effect.gen(function*() {
    const sockets = new Set<Net.Socket>()
    const counts = { opened: 0, most: 0 }
    server.on("connection", (socket: Net.Socket) => {
      sockets.add(socket)
      counts.opened++
      counts.most = Math.max(counts.most, sockets.size)
      socket.on("error", () => undefined)
      socket.on("close", () => sockets.delete(socket))
    })
    yield* Effect.acquireRelease(
      Effect.async<Net.Server>((resume) => void server.listen(0, address, () => resume(Effect.succeed(server)))),
      () =>
        Effect.async<Net.Server>((resume) => {
          server.close(() => resume(Effect.succeed(server)))
          for (const socket of sockets) socket.destroy()
        })
    )
    const { port } = server.address() as Net.AddressInfo // it listens on a port, not on a path
    return {
      url: `${protocol}://${host}:${port}`,
      port,
      opened: () => counts.opened,
      open: () => sockets.size,
      most: () => counts.most
    }
  })

/** Whether this machine has the address; not all have `::1`, or more of `127.0.0.0/8` than `127.0.0.1`. */
export const canListenOn = (address: string): Promise<boolean> =>
  new Promise((resolve) => {
    const server = Net.createServer()
    server.once("error", () => resolve(false))
    server.listen(0, address, () => server.close(() => resolve(true)))
  })

export const secret = Redacted.make("an-invented-secret")

/** Tokens under the specification's path; any other path is answered with the `Authorization` header it came with. */
export const store: Http.RequestListener = (request, response) => {
  request.resume()
  response.setHeader("Content-Type", "application/json")
  response.end(
    request.url === "/v1/oauth/accesstoken"
      ? JSON.stringify({ access_token: "an-invented-token", token_type: "BearerToken", expires_in: "3599" })
      : JSON.stringify({ authorization: request.headers.authorization ?? "none" })
  )
}

/** The options of a store that answers for both the tokens and the API. */
export const at = (url: string) => ({ authUrl: url, apiUrl: url, clientId: "demo-client", clientSecret: secret })

export const startStore = Effect.suspend(() => listen(Http.createServer(store)))

/** A name that does not look like this machine's, as proxies are for; `byName` gives a server's URL with it. */
export const elsewhere = "api.store.example"

export const byName = ({ url }: Server, name = elsewhere) => {
  const named = new URL(url)
  named.hostname = name
  return named.origin
}

/** A call as an application makes it. */
export const call = (path = "/orders") =>
  Effect.flatMap(AuthorizedHttpClient.AuthorizedHttpClient, (client) => client.get(path)).pipe(
    Effect.flatMap(({ json }) => json)
  )

export const get = (url: string) =>
  Effect.flatMap(HttpClient.HttpClient, (client) => client.get(url)).pipe(Effect.flatMap(({ text }) => text))

/** What the store answers to a call that carries its token. */
export const authorized = { authorization: "Bearer an-invented-token" }

export interface Proxy extends Server {
  /** `host:port` of each tunnel that was asked for, and the credentials that came with it. */
  readonly tunnels: Array<{ readonly to: string; readonly authorization: string | undefined }>
}

/** A forward proxy for tunnels, that finds any name on this machine. What is not asked for as a tunnel is refused. */
export const startProxy = (server = Http.createServer(), protocol = "http"): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.suspend(() => {
    const tunnels: Proxy["tunnels"] = []
    server.on("request", (_request, response: Http.ServerResponse) => response.writeHead(405).end())
    server.on("connect", (request: Http.IncomingMessage, socket: Net.Socket) => {
      const to = request.url ?? ""
      tunnels.push({ to, authorization: request.headers["proxy-authorization"] })
      const upstream = Net.connect(Number(to.split(":").at(-1)), "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n")
        upstream.pipe(socket).pipe(upstream)
      })
      // Undici tries again at once, and without end, when the answer is only a close.
      upstream.on("error", () => socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n")).on("close", () => socket.destroySoon())
      socket.on("close", () => upstream.destroy())
    })
    return Effect.map(listen(server, { host: "localhost", protocol }), (server) => ({ ...server, tunnels }))
  })

/** Accepts requests and never responds. */
export const hanging = Effect.suspend(() => listen(Http.createServer(() => undefined)))

/** Accepts connections and sends nothing, so that a TLS handshake never ends. It reads, and so sees them close. */
export const silent = Effect.suspend(() =>
  listen(Net.createServer((socket) => void socket.resume()), { host: "localhost", protocol: "https" })
)

export const startTlsStore = (identity: Identity, options: Https.ServerOptions = {}, handler = store) =>
  Effect.suspend(() =>
    listen(Https.createServer({ ...options, key: identity.key, cert: identity.cert }, handler), {
      host: "localhost",
      protocol: "https"
    })
  )

/** Waits, for two seconds at most, until something holds. */
export const until = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.filterOrFail((holds) => holds, () => new Error("it did not come true")),
    Effect.retry(Schedule.intersect(Schedule.spaced("10 millis"), Schedule.recurs(200)))
  )

const proxyVariables = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"].flatMap((name) => [name, name.toLowerCase()])

/**
 * For the tests of a file: names under `.example` and `.localhost` are this machine, as a hosts file could have it, and
 * no proxy is in the environment.
 */
export const onThisMachine = () => {
  const { lookup } = Dns
  const variables = proxyVariables.flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  beforeAll(() => {
    Dns.lookup = ((name: string, ...rest: [Dns.LookupAllOptions, () => void]) => {
      lookup(/\.(example|localhost)$/.test(name) ? "127.0.0.1" : name, ...rest)
    }) as typeof lookup
    for (const [name] of variables) Reflect.deleteProperty(process.env, name)
  })
  afterAll(() => {
    Dns.lookup = lookup
    Object.assign(process.env, Object.fromEntries(variables))
  })
}

/** With these variables in the environment of this process, and without them afterwards. */
export const withVariables = (changes: Readonly<Record<string, string>>) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => Object.assign(process.env, changes)),
    () => effect,
    () => Effect.sync(() => Object.keys(changes).forEach((name) => Reflect.deleteProperty(process.env, name)))
  )
