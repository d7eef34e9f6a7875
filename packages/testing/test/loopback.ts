/** Servers and proxies on loopback, and ports for them. They stop when the scope closes. Resources that tests share. */
import Dns from "node:dns"
import { mkdtempSync, rmSync } from "node:fs"
import * as Http from "node:http"
import * as Https from "node:https"
import * as Net from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { HttpClient } from "@effect/platform"
import { afterAll, beforeAll } from "@effect/vitest"
import { AuthorizedHttpClient } from "@store-api/core"
import { Effect, Exit, Redacted, Schedule, Scope } from "effect"

/** A private key and its self-signed certificate, in PEM. */
export interface Identity {
  readonly key: string
  readonly cert: string
}

export interface Server {
  readonly url: string
  readonly port: number
  /** The number of sockets opened so far, and the number of open ones. */
  readonly opened: () => number
  readonly open: () => number
  /** The largest number of sockets that were open at the same time. */
  readonly most: () => number
}

/** Makes a server of Node listen until the scope closes. */
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
      Effect.async<Net.Server>((resume) =>
        void server.listen(0, address, () => resume(Effect.succeed(server)))
      ),
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

export const secret = Redacted.make("an-invented-secret")

/** Sends a token on the specified path. On any other path, sends the `Authorization` header of the request. */
export const store: Http.RequestListener = (request, response) => {
  request.resume()
  response.setHeader("Content-Type", "application/json")
  response.end(
    request.url === "/v1/oauth/accesstoken"
      ? JSON.stringify({
        access_token: "an-invented-token",
        token_type: "BearerToken",
        expires_in: "3599"
      })
      : JSON.stringify({ authorization: request.headers.authorization ?? "none" })
  )
}

/** The options of a store whose token endpoint and API have the same URL. */
export const at = (url: string) => ({
  authUrl: url,
  apiUrl: url,
  clientId: "demo-client",
  clientSecret: secret
})

/** It keeps idle connections for longer than any test takes. */
export const startStore = Effect.suspend(() =>
  listen(Http.createServer({ keepAliveTimeout: 120_000 }, store))
)

/** A host name for which the proxy is used, as it is not loopback. `byName` returns the URL of a server with it. */
export const elsewhere = "api.store.example"

export const byName = ({ url }: Server, name = elsewhere) => {
  const named = new URL(url)
  named.hostname = name
  return named.origin
}

/** Calls the API as an application does. */
export const call = (path = "/orders") =>
  Effect.flatMap(AuthorizedHttpClient.AuthorizedHttpClient, (client) => client.get(path)).pipe(
    Effect.flatMap(({ json }) => json)
  )

export const get = (url: string) =>
  Effect.flatMap(HttpClient.HttpClient, (client) => client.get(url)).pipe(
    Effect.flatMap(({ text }) => text)
  )

/** The response of the store to a call with its token. */
export const authorized = { authorization: "Bearer an-invented-token" }

export interface Proxy extends Server {
  /** `host:port` and credentials of each requested tunnel. */
  readonly tunnels: Array<{ readonly to: string; readonly authorization: string | undefined }>
}

/** A proxy that opens tunnels to this machine, whatever the name, and responds with 405 to other requests. */
export const startProxy = (
  server = Http.createServer(),
  protocol = "http"
): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.suspend(() => {
    const tunnels: Proxy["tunnels"] = []
    server.on("request", (_request, response: Http.ServerResponse) =>
      response.writeHead(405).end())
    server.on("connect", (request: Http.IncomingMessage, socket: Net.Socket) => {
      const to = request.url ?? ""
      tunnels.push({ to, authorization: request.headers["proxy-authorization"] })
      const upstream = Net.connect(Number(to.split(":").at(-1)), "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n")
        upstream.pipe(socket).pipe(upstream)
      })
      // If the proxy only closed the connection, undici would retry at once and without end.
      upstream.on("error", () =>
        socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n")).on("close", () =>
          socket.destroySoon())
      socket.on("close", () =>
        upstream.destroy())
    })
    return Effect.map(
      listen(server, { host: "localhost", protocol }),
      (server) => ({ ...server, tunnels })
    )
  })

/** Accepts requests and never responds. */
export const hanging = Effect.suspend(() => listen(Http.createServer(() => undefined)))

/** Accepts connections and sends nothing, so that a TLS handshake never ends. It reads, to notice when they close. */
export const silent = Effect.suspend(() =>
  listen(Net.createServer((socket) => void socket.resume()), {
    host: "localhost",
    protocol: "https"
  })
)

export const startTlsStore = (
  identity: Identity,
  options: Https.ServerOptions = {},
  handler = store
) =>
  Effect.suspend(() =>
    listen(
      Https.createServer({ ...options, key: identity.key, cert: identity.cert }, handler),
      {
        host: "localhost",
        protocol: "https"
      }
    )
  )

/** Waits at most eight seconds until the condition holds: undici gives up a connection after ten. */
export const until = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.filterOrFail((holds) => holds, () =>
      new Error("the condition did not hold within eight seconds")),
    Effect.retry({ schedule: Schedule.spaced("10 millis"), times: 800 })
  )

setFlagsFromString("--expose-gc")

export const collectGarbage = runInNewContext("gc") as () => void

export const proxyVariables = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"].flatMap((
  name
) => [name, name.toLowerCase()])

type Variables = Readonly<Record<string, string | undefined>>

/** Sets environment variables, deletes those without a value, and returns what they were. */
const setVariables = (changes: Variables) =>
  Effect.sync(() => {
    const before = Object.keys(changes).map((name) => [name, process.env[name]] as const)
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined) Reflect.deleteProperty(process.env, name)
      else process.env[name] = value
    }
    return Object.fromEntries(before)
  })

/**
 * During the tests of a file, names under `.example` and `.localhost` resolve to this machine, and the environment has
 * no proxy variables.
 */
export const onThisMachine = () => {
  const { lookup } = Dns
  let variables: Variables = {}
  beforeAll(() => {
    Dns.lookup = ((name: string, ...rest: [Dns.LookupAllOptions, () => void]) => {
      lookup(/\.(example|localhost)$/.test(name) ? "127.0.0.1" : name, ...rest)
    }) as typeof lookup
    variables = Effect.runSync(
      setVariables(Object.fromEntries(proxyVariables.map((name) => [name, undefined])))
    )
  })
  afterAll(() => {
    Dns.lookup = lookup
    Effect.runSync(setVariables(variables))
  })
}

/** Runs an effect with these environment variables. */
export const withVariables =
  (changes: Variables) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(setVariables(changes), () => effect, setVariables)

/** Sets these environment variables until the scope closes. */
export const useVariables = (changes: Variables) =>
  Effect.acquireRelease(setVariables(changes), setVariables)

/** The port that was given last. Processes that start one after the other begin far from each other. */
let lastPort = 20_000 + 2 * ((process.pid * 1919) % 6000)

/**
 * A port without a listener, for a process that takes a while to start, and the port after it. Both are below the ports
 * that a system assigns to outgoing connections and to port 0, so none of these takes them in between. A port is not
 * given again, since the process for which it is may not listen yet.
 */
export const freePort: Effect.Effect<number> = Effect.async<number, Error>((resume) => {
  lastPort = lastPort < 31_998 ? lastPort + 2 : 20_000
  const port = lastPort
  const server = Net.createServer().once("error", (error) => resume(Effect.fail(error)))
  server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed(port))))
}).pipe(Effect.eventually)

/** A folder whose name begins with this, and which is removed when the scope closes. */
export const newFolder = (name: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), `${name}-`))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

/**
 * Acquires a resource before the tests of the surrounding `describe`, which share it, and releases it after them.
 * `layer` of `@effect/vitest` would replace the methods of `it` for all files that the same worker runs later.
 */
export const shared = <A>(
  resource: Effect.Effect<A, never, Scope.Scope>
): Effect.Effect<A> => {
  const scope = Effect.runSync(Scope.make())
  const acquired = Effect.runSync(Effect.cached(Scope.extend(resource, scope)))
  beforeAll(() => Effect.runPromise(Effect.asVoid(acquired)))
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  // In its own fiber, because the cached effect would also set the clock with which it ran first.
  return Effect.promise(() => Effect.runPromise(acquired))
}
