/** The server on loopback and its open sockets. */
import type { Buffer } from "node:buffer"
import * as Http from "node:http"
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import * as HttpMiddleware from "@effect/platform/HttpMiddleware"
import type { ServeError } from "@effect/platform/HttpServerError"
import type { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import type { HttpServerResponse } from "@effect/platform/HttpServerResponse"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { steeringPath } from "../EmulatorOptions.js"
import type { Ending, Fault } from "../FaultModel.js"
import { type Settings, unusable } from "./settings.js"
import type { TlsServers } from "./tls.js"

/** Returns the fault for a new connection. */
type TakeFault = (socket: Socket) => Option.Option<Fault>

export const listen = (
  settings: Settings,
  app: Effect.Effect<HttpServerResponse, never, HttpServerRequest>,
  takeFault: TakeFault = Option.none,
  tls?: TlsServers
) =>
  Effect.gen(function*() {
    const { host, port, steering } = settings
    // A load balancer usually reuses connections for 60 seconds, so servers behind it keep them longer. After Node's
    // default of 5 seconds, a busy client would meet closed connections.
    const nodeServer = Http.createServer({ keepAliveTimeout: 65_000 })
    const sockets = interceptConnections(nodeServer, takeFault, steering, tls)
    const server = yield* NodeHttpServer.make(() => nodeServer, { host, port }).pipe(
      Effect.mapError((error) => cannotListen(error, settings))
    )
    // Runs before the finalizer of the platform, which would wait until every client disconnects.
    yield* Effect.addFinalizer(() => closeAll(nodeServer, sockets))

    // By default handlers are uninterruptible. This ends a request when its client disconnects, also during a delay.
    yield* server.serve(Effect.interruptible(app)).pipe(
      // The platform would add a span per request and a log entry per client that disconnects. Requests hold secrets.
      Effect.locally(HttpMiddleware.currentTracerDisabledWhen, constTrue),
      Effect.withUnhandledErrorLogLevel(Option.none())
    )
    // With a listener for `upgrade`, Node would not read the body of a request that offers h2c. A server may ignore
    // `Upgrade`.
    nodeServer.removeAllListeners("upgrade")

    const address = nodeServer.address()
    const boundPort = typeof address === "object" && address !== null ? address.port : port
    return {
      origin: `${tls === undefined ? "http" : "https"}://${host === "::1" ? "[::1]" : host}:${boundPort}`,
      connections: Effect.sync(() => sockets.size)
    }
  })

/** Ends a connection after the last byte is sent. */
export const endConnection = (socket: Socket, ending: Ending): void => {
  if (ending === "Silence") return
  if (ending === "Close") socket.destroySoon()
  // Node can reset only TCP sockets.
  else if (socket instanceof TLSSocket) socket.destroy()
  else socket.resetAndDestroy()
}

const closeAll = (server: Http.Server, sockets: ReadonlySet<Socket>) =>
  Effect.async<void>((resume) => {
    server.close(() => resume(Effect.void))
    for (const socket of sockets) socket.destroy()
  })

const cannotListen = ({ cause }: ServeError, { host, port }: Settings) => {
  const code = Predicate.hasProperty(cause, "code") ? String(cause.code) : "unknown error"
  if (code === "EADDRNOTAVAIL" || code === "EAFNOSUPPORT") {
    const problem = `must be ${host === "::1" ? "127.0.0.1" : "::1"}, because this machine has no address ${host}`
    return unusable("host", problem, "CannotListen")
  }
  const problems: Record<string, string> = {
    EADDRINUSE: `it is in use on ${host}, so stop that program or choose another port (0: a free one)`,
    EACCES: "this user may not listen on it, so choose one above 1023 (0: a free one)"
  }
  const problem = problems[code] ?? `the system does not allow it on ${host} (${code}), so choose another port`
  return unusable("port", `cannot be ${port}: ${problem}`, code === "EADDRINUSE" ? "PortInUse" : "CannotListen")
}

/** Receives the connections of a server before the server does. Returns the set of open sockets. */
const interceptConnections = (server: Http.Server, takeFault: TakeFault, steering: boolean, tls?: TlsServers) => {
  const sockets = new Set<Socket>()
  const listeners = server.listeners("connection")
  const serve = (socket: Socket) => {
    for (const listener of listeners) Reflect.apply(listener, server, [socket])
  }
  const accept = (socket: Socket) => {
    const fault = Option.getOrUndefined(takeFault(socket))
    if (fault?._tag === "Connection") breakOff(socket, fault)
    else if (tls === undefined) serve(socket)
    else tls.accept(socket, fault?._tag === "Tls" ? fault.flaw : undefined, serve)
  }
  server.removeAllListeners("connection").on("connection", (socket: Socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
    if (steering) afterFirstBytes(socket, (text) => (steeringRequest.test(text) ? serve : accept)(socket))
    else accept(socket)
  })
  return sockets
}

/** Faults of connections and TLS do not apply to these requests, so that they can end such a fault. */
const steeringRequest = new RegExp(`^(GET|POST) ${steeringPath}`)

/** The bytes stay readable. */
const afterFirstBytes = (socket: Socket, then: (text: string) => void) => {
  socket.on("error", () => undefined).once("readable", () => {
    const bytes = socket.read() as Buffer | null // no encoding is set
    if (bytes === null) socket.destroy()
    else {
      socket.unshift(bytes)
      then(bytes.toString("latin1"))
    }
  })
}

const breakOff = (socket: Socket, { bytes, ending }: Extract<Fault, { _tag: "Connection" }>) => {
  socket.on("error", () => undefined)
  // Node reports the end of the connection only to a reader.
  socket.on("end", () => socket.destroy()).resume()
  if (bytes.length > 0) socket.write(bytes)
  endConnection(socket, ending)
}
