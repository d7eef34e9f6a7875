/** The server on loopback and its open sockets. */
import type { Buffer } from "node:buffer"
import * as Http from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { TLSSocket } from "node:tls"
import * as HttpMiddleware from "@effect/platform/HttpMiddleware"
import type { ServeError } from "@effect/platform/HttpServerError"
import type { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import type { HttpServerResponse } from "@effect/platform/HttpServerResponse"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { steeringPath } from "../EmulatorOptions.js"
import type { Ending } from "../Fault.js"
import { unusable } from "./rules.js"
import type { Settings } from "./settings.js"

type App = Effect.Effect<HttpServerResponse, never, HttpServerRequest>

/** Learns of a request to which Node responds by itself. */
export type OnRefusal = (status: number, reason: string) => void

/** Passes a new connection to the server, unless it meets a fault. */
export type Accept = (socket: Socket, serve: (socket: Socket) => void) => void

export const listen = (
  settings: Settings,
  app: App,
  onRefusal: OnRefusal,
  accept: Accept = (socket, serve) => serve(socket)
) =>
  Effect.gen(function*() {
    const { host, port, steering, tls } = settings
    // A load balancer usually reuses connections for 60 seconds, so servers behind it keep them longer. After Node's
    // default of 5 seconds, a busy client would meet closed connections.
    const nodeServer = Http.createServer({ keepAliveTimeout: 65_000 })
    nodeServer.on("checkExpectation", (_request, response: Http.ServerResponse) => {
      onRefusal(417, "the Expect is unknown")
      response.writeHead(417).end()
    })
    const sockets = interceptConnections(nodeServer, accept, onRefusal, steering)
    const server = yield* NodeHttpServer.make(() => nodeServer, { host, port }).pipe(
      Effect.mapError((error) => explainListenError(error, settings))
    )
    // Runs before the finalizer of the platform, which would wait until every client disconnects.
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        nodeServer.close()
        for (const socket of sockets) socket.destroy()
      })
    )

    // By default handlers are uninterruptible. This ends a request when its client disconnects, also during a delay.
    yield* server.serve(Effect.interruptible(app)).pipe(
      // The platform would add a span per request and a log entry per client that disconnects. Requests hold secrets.
      Effect.locally(HttpMiddleware.currentTracerDisabledWhen, constTrue),
      Effect.withUnhandledErrorLogLevel(Option.none())
    )
    // With a listener for `upgrade`, Node would not read the body of a request that offers h2c. A server may ignore
    // `Upgrade`.
    nodeServer.removeAllListeners("upgrade")

    const { port: boundPort } = nodeServer.address() as AddressInfo // it listens on TCP
    return {
      origin: `${tls ? "https" : "http"}://${host === "::1" ? "[::1]" : host}:${boundPort}`,
      connections: Effect.sync(() => sockets.size)
    }
  })

/**
 * A client that receives bytes and a reset at once reads the reset as an orderly end (libuv does). This pause lets it
 * read the bytes first. It uses the real clock because a test clock might not advance. Between the two sleeps, a client
 * of this process reads, however busy the machine is.
 */
const timeToRead = Effect.withClock(Effect.repeatN(Effect.sleep("10 millis"), 1), Clock.make())

/** Writes bytes to the socket and ends the connection. */
export const breakOff = (socket: Socket, bytes: Uint8Array, ending: Ending) =>
  Effect.gen(function*() {
    if (bytes.length > 0) {
      yield* Effect.async<void>((resume) =>
        void socket.write(bytes, () => resume(Effect.void))
      )
      if (ending === "Reset") yield* timeToRead
    }
    if (ending === "Silence") return
    if (ending === "Close") socket.destroySoon()
    // Node can reset only TCP sockets.
    else if (socket instanceof TLSSocket) socket.destroy()
    else socket.resetAndDestroy()
  })

const explainListenError = ({ cause }: ServeError, { host, port }: Settings) => {
  const code = Predicate.hasProperty(cause, "code") ? String(cause.code) : "unknown error"
  const isInUse = code === "EADDRINUSE"
  const problem = isInUse
    ? `it is in use on ${host}, so stop that program or choose another port (0: a free one)`
    : `the system does not allow it on ${host} (${code}), so choose another port (0: a free one) or host`
  return unusable(
    "port",
    `cannot be ${port}: ${problem}`,
    isInUse ? "PortInUse" : "CannotListen"
  )
}

/** How Node responds to errors of its parser. To all others, it responds with 400. */
const statusOfError: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431
}

/** Receives the connections of a server before the server does. Returns the set of open sockets. */
const interceptConnections = (
  server: Http.Server,
  accept: Accept,
  onRefusal: OnRefusal,
  isSteerable: boolean
) => {
  const sockets = new Set<Socket>()
  const listeners = server.listeners("connection")
  const serve = (socket: Socket) => {
    socket.on("error", ({ code = "" }: NodeJS.ErrnoException) => {
      const status = statusOfError[code] ?? (code.startsWith("HPE_") ? 400 : undefined)
      if (status !== undefined) onRefusal(status, `not valid HTTP (${code})`)
    })
    for (const listener of listeners) Reflect.apply(listener, server, [socket])
  }
  server.removeAllListeners("connection").on("connection", (socket: Socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
    if (!isSteerable) accept(socket, serve)
    else {awaitFirstBytes(socket, (text) =>
        steeringRequest.test(text) ? serve(socket) : accept(socket, serve))}
  })
  return sockets
}

/** Faults of connections and TLS do not apply to these requests, so that they can end such a fault. */
const steeringRequest = new RegExp(`^(GET|POST) ${steeringPath}`)

/** The bytes stay readable. */
const awaitFirstBytes = (socket: Socket, then: (text: string) => void) => {
  socket.on("error", () => undefined).once("readable", () => {
    const bytes = socket.read() as Buffer | null // no encoding is set
    if (bytes === null) socket.destroy()
    else {
      socket.unshift(bytes)
      then(bytes.toString("latin1"))
    }
  })
}
