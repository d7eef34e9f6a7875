/** Debian's nginx on a free port of loopback, with the requests from its access log. */
import { readFileSync, writeFileSync } from "node:fs"
import * as Http from "node:http"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import * as Program from "./Program.js"

export const nginx = Program.find({
  command: "/usr/sbin/nginx",
  parameters: ["-v"],
  pattern: /nginx\/([\d.]+)/,
  debianPackage: "nginx-light"
})

export interface Options {
  /** Directives of the `server`: its locations. */
  readonly server: string
  /** Directives of the `http` block: its zones and maps. */
  readonly http?: string | undefined
  /** For https: certificate and key in PEM. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
}

export interface LoggedRequest {
  readonly status: number
  readonly path: string
  /** nginx's number of the connection, and the number of the request on it. */
  readonly connection: number
  readonly onConnection: number
}

export interface Running {
  readonly url: string
  /** All requests that have ended so far, in that order, with or without a response. */
  readonly requests: Effect.Effect<ReadonlyArray<LoggedRequest>>
  /** The error log of nginx, at level `info`. */
  readonly errors: () => string
}

export const start = (options: Options): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function*() {
    const folder = yield* Program.folder
    const port = yield* Program.freePort
    const socket = join(folder, "control.sock")
    const files = { "nginx.conf": configuration(options, port, socket), ...tlsFiles(options) }
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content, { mode: 0o644 })
    const { output } = yield* Program.startServer(
      nginx,
      ["-p", folder, "-e", "stderr", "-c", "nginx.conf"],
      ask(socket, "/ready")
    )
    let marks = 0
    return {
      url: `${options.tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
      errors: output,
      // The only worker logs in the order of the responses: earlier requests are in the log before the mark.
      requests: Effect.gen(function*() {
        const mark = `/mark/${++marks}`
        yield* ask(socket, mark)
        const all = yield* Program.eventually(
          Effect.sync(() => logged(readFileSync(join(folder, "access.log"), "utf8"))),
          (all) => all.some(({ path }) => path === mark)
        )
        return all.filter(({ path }) => path !== "/ready" && !path.startsWith("/mark/"))
      })
    }
  })

/** Sends a request to a socket that only the tests know, to check that nginx is up and to mark a place in its log. */
const ask = (socketPath: string, path: string): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    Http.get({ socketPath, path, agent: false }, (response) => {
      response.resume().on("end", () => resume(Effect.succeed(true)))
    }).on("error", () => resume(Effect.succeed(false)))
  })

const tlsFiles = ({ tls }: Options) => tls === undefined ? {} : { "cert.pem": tls.cert, "key.pem": tls.key }

const configuration = ({ http = "", server, tls }: Options, port: number, socket: string): string => `
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr info;
events { worker_connections 1024; }
http {
  log_format counted '$status $request_uri $connection $connection_requests';
  access_log access.log counted;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  default_type text/plain;
  ${http}
  server {
    listen unix:${socket};
    location / { return 204; }
  }
  server {
    listen 127.0.0.1:${port}${tls === undefined ? "" : " ssl"};
    ${tls === undefined ? "" : "ssl_certificate cert.pem; ssl_certificate_key key.pem;"}
    ${server}
  }
}
`

const logged = (log: string): ReadonlyArray<LoggedRequest> =>
  log.split("\n").slice(0, -1).map((line) => {
    const [status, path = "", connection, onConnection] = line.split(" ")
    return { status: Number(status), path, connection: Number(connection), onConnection: Number(onConnection) }
  })
