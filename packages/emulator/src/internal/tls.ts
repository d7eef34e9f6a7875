/**
 * TLS servers that do not listen. Each accepts a connection from the HTTP server and returns the decrypted socket to
 * it.
 */
import { Buffer } from "node:buffer"
import type { Socket } from "node:net"
import * as Tls from "node:tls"
import * as Effect from "effect/Effect"
import type { TlsFlaw } from "../Fault.js"
import * as x509 from "./x509.js"

export type TlsServers = Effect.Effect.Success<typeof make>

const loopback = [
  Buffer.from([127, 0, 0, 1]),
  Buffer.concat([Buffer.alloc(15), Buffer.from([1])])
]

export const make = Effect.sync(() => {
  const issuer = x509.makeAuthority()
  const identity = x509.makeLeaf("localhost", loopback, { issuer })
  const flawedOptions: Record<TlsFlaw, Tls.TlsOptions> = {
    SelfSigned: x509.makeLeaf("localhost", loopback),
    Expired: x509.makeLeaf("localhost", loopback, { issuer, isExpired: true }),
    WrongHost: x509.makeLeaf("other.example.invalid", [], { issuer }),
    // OpenSSL offers TLS 1.1 only at security level 0.
    "Tls1.1": {
      ...identity,
      minVersion: "TLSv1.1",
      maxVersion: "TLSv1.1",
      ciphers: "DEFAULT:@SECLEVEL=0"
    }
  }
  return {
    /** The certificate of the authority, as PEM. */
    ca: issuer.cert,
    /** Performs the handshake, with a flaw if one is given. Passes the decrypted socket to `serve` if it succeeds. */
    accept: (
      socket: Socket,
      flaw: TlsFlaw | undefined,
      serve: (socket: Tls.TLSSocket) => void
    ) => {
      // Sockets of an HTTP server stay half open when the client disconnects; those of a TLS server do not.
      socket.allowHalfOpen = false
      Tls.createServer(flaw === undefined ? identity : flawedOptions[flaw], serve)
        .on("tlsClientError", () => socket.destroy())
        .emit("connection", socket)
    }
  }
})
