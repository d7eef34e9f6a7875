/** TLS servers that listen nowhere: each connection is handed to one of them, which hands on what it has decrypted. */
import { Buffer } from "node:buffer"
import type { Socket } from "node:net"
import * as Tls from "node:tls"
import * as Effect from "effect/Effect"
import type { TlsFlaw } from "../FaultModel.js"
import * as x509 from "./x509.js"

export interface TlsServers {
  /** The certificate of the authority, as PEM. */
  readonly ca: string
  /** Shakes hands as the flaw says, or well without one; `serve` gets what is left of it, if anything is. */
  readonly accept: (socket: Socket, flaw: TlsFlaw | undefined, serve: (socket: Tls.TLSSocket) => void) => void
}

const loopback = [Buffer.from([127, 0, 0, 1]), Buffer.concat([Buffer.alloc(15), Buffer.from([1])])]

export const make: Effect.Effect<TlsServers> = Effect.sync(() => {
  const issuer = x509.authority()
  const good = { dnsNames: ["localhost"], addresses: loopback, expired: false, issuer }
  const identity = x509.leaf(good)
  const options = {
    Good: identity,
    SelfSigned: x509.leaf({ ...good, issuer: undefined }),
    Expired: x509.leaf({ ...good, expired: true }),
    WrongHost: x509.leaf({ ...good, dnsNames: ["other.example.invalid"], addresses: [] }),
    // OpenSSL offers nothing that old above security level 0.
    "Tls1.1": { ...identity, minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "DEFAULT:@SECLEVEL=0" }
  } as const satisfies Record<TlsFlaw | "Good", Tls.TlsOptions>

  return {
    ca: issuer.cert,
    accept: (socket, flaw, serve) => {
      // As sockets of a TLS server are; those of an HTTP server stay half open when the client goes away.
      socket.allowHalfOpen = false
      Tls.createServer(options[flaw ?? "Good"], serve)
        .on("tlsClientError", () => socket.destroy())
        .emit("connection", socket)
    }
  }
})
