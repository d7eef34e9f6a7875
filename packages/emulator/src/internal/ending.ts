/** What becomes of a socket after the last byte. */
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import type { Ending } from "../FaultModel.js"

export const end = (socket: Socket, ending: Ending): void => {
  if (ending === "Silence") return
  if (ending === "Close") {
    socket.destroySoon()
    return
  }
  // Node resets TCP sockets only.
  if (socket instanceof TLSSocket) socket.destroy()
  else socket.resetAndDestroy()
}
