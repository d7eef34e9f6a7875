/** TLS servers that do not listen. Each connection is passed to one of them, which passes on the decrypted socket. */
import { Buffer } from "node:buffer"
import type { Socket } from "node:net"
import * as Tls from "node:tls"
import * as Effect from "effect/Effect"
import type { TlsFlaw } from "../FaultModel.js"
import * as x509 from "./x509.js"

export interface TlsServers {
  /** The certificate of the authority, as PEM. */
  readonly ca: string
  /** Performs the handshake, with a flaw if one is given, and passes the decrypted socket to `serve` if it succeeds. */
  readonly accept: (socket: Socket, flaw: TlsFlaw | undefined, serve: (socket: Tls.TLSSocket) => void) => void
}

const loopback = [Buffer.from([127, 0, 0, 1]), Buffer.concat([Buffer.alloc(15), Buffer.from([1])])]

export const make = Effect.sync((): TlsServers => {
  const issuer = x509.authority()
  const localhost = { dnsName: "localhost", addresses: loopback }
  const identity = x509.leaf({ ...localhost, issuer })
  const flawed: Record<TlsFlaw, Tls.TlsOptions> = {
    SelfSigned: x509.leaf(localhost),
    Expired: x509.leaf({ ...localhost, issuer, expired: true }),
    WrongHost: x509.leaf({ dnsName: "other.example.invalid", addresses: [], issuer }),
    // OpenSSL offers TLS 1.1 only at security level 0.
    "Tls1.1": { ...identity, minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "DEFAULT:@SECLEVEL=0" }
  }
  return {
    ca: issuer.cert,
    accept: (socket, flaw, serve) => {
      // Sockets of an HTTP server stay half open when the client disconnects; those of a TLS server do not.
      socket.allowHalfOpen = false
      Tls.createServer(flaw === undefined ? identity : flawed[flaw], serve)
        .on("tlsClientError", () => socket.destroy())
        .emit("connection", socket)
    }
  }
})
