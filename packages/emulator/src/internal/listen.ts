/** The server on loopback, and the sockets it holds. */
import * as Http from "node:http"
import type { Socket } from "node:net"
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpMiddleware from "@effect/platform/HttpMiddleware"
import type { ServeError } from "@effect/platform/HttpServerError"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import { EmulatorError } from "../EmulatorError.js"
import type { Fault } from "../FaultModel.js"
import { end } from "./ending.js"
import type { Settings } from "./settings.js"
import type { TlsServers } from "./tls.js"

export interface Listening {
  readonly origin: string
  readonly connections: Effect.Effect<number>
}

export const listen = (
  settings: Settings,
  app: HttpApp.Default,
  meeting: Meeting
): Effect.Effect<Listening, EmulatorError, Scope.Scope> =>
  Effect.gen(function*() {
    const nodeServer = Http.createServer()
    const sockets = intercept(nodeServer, meeting)

    const server = yield* NodeHttpServer.make(() => nodeServer, { host: settings.host, port: settings.port }).pipe(
      Effect.mapError((error) => cannotListen(error, settings))
    )
    // Runs before the platform's own finalizer, which would wait for every client to leave.
    yield* Effect.addFinalizer(() => closeAll(nodeServer, sockets))

    yield* server.serve(app).pipe(
      // Nobody's traces and logs are about the emulator, and its requests hold secrets; the platform would add a span for
      // each, and a log entry for each client that goes away.
      Effect.locally(HttpMiddleware.currentTracerDisabledWhen, constTrue),
      Effect.withUnhandledErrorLogLevel(Option.none())
    )
    // Without a listener Node ignores `Upgrade`, as a server may; with one, a request that offers h2c has no body.
    nodeServer.removeAllListeners("upgrade")

    const host = settings.host === "::1" ? "[::1]" : settings.host
    const port = server.address._tag === "TcpAddress" ? server.address.port : settings.port
    return {
      origin: `${meeting.tls === undefined ? "http" : "https"}://${host}:${port}`,
      connections: Effect.sync(() => sockets.size)
    }
  })

const closeAll = (server: Http.Server, sockets: ReadonlySet<Socket>) =>
  Effect.async((resume: (exit: Effect.Effect<void>) => void) => {
    server.close(() => resume(Effect.void))
    for (const socket of sockets) socket.destroy()
  })

const cannotListen = ({ cause }: ServeError, { host, port }: Settings) => {
  const code = Predicate.hasProperty(cause, "code") ? String(cause.code) : "unknown error"
  switch (code) {
    case "EADDRINUSE":
      return new EmulatorError({
        reason: "PortInUse",
        option: "port",
        problem:
          `cannot be ${port}: something listens there on ${host}, so stop it or choose another port (0 takes a free one)`
      })
    case "EACCES":
      return new EmulatorError({
        reason: "CannotListen",
        option: "port",
        problem: `cannot be ${port}: this user may not open it, so choose one above 1023 (0 takes a free one)`
      })
    case "EADDRNOTAVAIL":
    case "EAFNOSUPPORT":
      return new EmulatorError({
        reason: "CannotListen",
        option: "host",
        problem: `must be ${host === "::1" ? "127.0.0.1" : "::1"}, because this machine has no address ${host}`
      })
    default:
      return new EmulatorError({
        reason: "CannotListen",
        option: "port",
        problem: `cannot be ${port} of ${host} (${code}): choose another port`
      })
  }
}

interface Meeting {
  readonly take: () => Option.Option<Fault>
  readonly tls: TlsServers | undefined
}

/** Puts itself before a server that is not listening yet; answers the set of open sockets. */
const intercept = (server: Http.Server, { take, tls }: Meeting): ReadonlySet<Socket> => {
  const sockets = new Set<Socket>()
  const listeners = server.listeners("connection")
  const serve = (socket: Socket) => {
    for (const listener of listeners) Reflect.apply(listener, server, [socket])
  }
  server.removeAllListeners("connection")
  server.on("connection", (socket: Socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
    const fault = Option.getOrUndefined(take())
    if (fault?._tag === "Connection") {
      breakOff(socket, fault)
    } else if (tls === undefined) {
      serve(socket)
    } else {
      tls.accept(socket, fault?._tag === "Tls" ? fault.flaw : undefined, serve)
    }
  })
  return sockets
}

const breakOff = (socket: Socket, { bytes, ending }: Extract<Fault, { _tag: "Connection" }>) => {
  socket.on("error", () => undefined)
  // Without a reader, the end of the connection goes unnoticed.
  socket.on("end", () => socket.destroy())
  socket.resume()
  if (bytes.length > 0) socket.write(bytes)
  end(socket, ending)
}
