/** Servers, proxies, certificates and processes for the tests. All of them on loopback, all gone with the scope. */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import Dns from "node:dns"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import * as Http from "node:http"
import * as Https from "node:https"
import * as Net from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { HttpClient } from "@effect/platform"
import { AuthorizedHttpClient } from "@store-api/core"
import { Effect, Redacted, Schedule, type Scope } from "effect"

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

// As a hosts file could have it: these names are this machine, and nobody is asked for them.
const { lookup } = Dns
Dns.lookup = ((name: string, ...rest: [Dns.LookupAllOptions, () => void]) => {
  lookup(/\.(example|localhost)$/.test(name) ? "127.0.0.1" : name, ...rest)
}) as typeof lookup

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

export interface Identity {
  readonly key: string
  readonly cert: string
  readonly certPath: string
}

/** Certificates are made by the command `openssl`. CI has it, and fails without it. */
export const canMakeCertificates = spawnSync("openssl", ["version"]).status === 0 || process.env["CI"] === "true"

if (!canMakeCertificates) console.warn("There is no command openssl: tests that need certificates are skipped.")

/** A self-signed certificate, for localhost by default, made anew; nothing of it is kept. */
export const selfSigned = (name = "localhost"): Effect.Effect<Identity, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "certificate-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    ),
    (folder) => {
      const [keyPath, certPath] = [join(folder, "key.pem"), join(folder, "cert.pem")]
      execFileSync(
        "openssl",
        ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"].concat(
          ["-keyout", keyPath, "-out", certPath, "-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`]
        ),
        { stdio: "pipe" }
      )
      return { key: readFileSync(keyPath, "utf8"), cert: readFileSync(certPath, "utf8"), certPath }
    }
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

// Where the tests run may be a proxy; the layers' default would go through it.
for (const name of proxyVariables) Reflect.deleteProperty(process.env, name)

export interface Outcome {
  readonly output: string
  readonly errors: string
  /** Milliseconds from the line that the program writes at its end to its exit; none when it had to be killed. */
  readonly lingered: number | undefined
}

/** Milliseconds for a test that runs processes: each loads and translates its modules anew. */
export const processTimeout = 60_000

/** Runs `child/request.ts`. A process that is still there 3 seconds after its work is killed. */
export const run = (
  parameters: ReadonlyArray<string>,
  changes: Readonly<Record<string, string>> = {}
): Effect.Effect<Outcome> =>
  Effect.async((resume) => {
    const path = (name: string) => fileURLToPath(new URL(`./child/${name}`, import.meta.url))
    const child = spawn(
      process.execPath,
      [
        "--no-warnings",
        "--import",
        new URL("./child/sources.mjs", import.meta.url).href,
        path("request.ts"),
        ...parameters
      ],
      { env: { ...process.env, NODE_OPTIONS: "", ...changes }, stdio: ["ignore", "pipe", "pipe"] }
    )
    let output = ""
    let errors = ""
    let wrote = 0
    let patience: NodeJS.Timeout | undefined
    child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()))
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      wrote = performance.now()
      patience ??= setTimeout(() => child.kill(), 3000)
    })
    child.on("close", (code) => {
      clearTimeout(patience)
      const lingered = code === null ? undefined : performance.now() - wrote
      resume(Effect.succeed({ output: output.trim(), errors, lingered }))
    })
    return Effect.sync(() => child.kill())
  })
