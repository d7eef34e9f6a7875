/** Connections as they come in: counted, met by a fault, or handed on to the HTTP server. */
import type * as Http from "node:http"
import type { Socket } from "node:net"
import * as Option from "effect/Option"
import type { Fault } from "../FaultModel.js"
import { end } from "./ending.js"
import type { TlsServers } from "./tls.js"

export interface Meeting {
  readonly take: () => Option.Option<Fault>
  readonly tls: TlsServers | undefined
}

/** Puts itself before a server that is not listening yet; answers the set of open sockets. */
export const intercept = (server: Http.Server, { take, tls }: Meeting): ReadonlySet<Socket> => {
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
  // Somebody has to read, or nobody would see the client go.
  socket.on("end", () => socket.destroy())
  socket.resume()
  if (bytes.length > 0) socket.write(bytes)
  end(socket, ending)
}
