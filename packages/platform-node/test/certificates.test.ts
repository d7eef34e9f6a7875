import { readFileSync, writeFileSync } from "node:fs"
import { createSecureServer } from "node:http2"
import Tls, { TLSSocket } from "node:tls"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { Effect, Layer, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import { canMakeCertificates, filesOf, selfSigned } from "./support/certificates.js"
import { at, authorized, call, get, listen, onThisMachine, startTlsStore, withVariables } from "./utils.js"

onThisMachine()

/** Replaces `getCACertificates` of Node, which Node has since 22.15. */
const withCACertificates =
  (getCACertificates: ((type: string) => ReadonlyArray<string>) | undefined) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const own: unknown = Reflect.get(Tls, "getCACertificates")
        Reflect.set(Tls, "getCACertificates", getCACertificates)
        return own
      }),
      () => effect,
      (own) => Effect.sync(() => Reflect.set(Tls, "getCACertificates", own))
    )

const code = ({ cause }: { readonly cause?: unknown }) => (cause as { readonly code?: unknown }).code

describe.runIf(canMakeCertificates)("ca", () => {
  test.live("makes the client trust a self-signed server; without it the token request fails after one attempt", function*() {
    const identity = yield* selfSigned()
    const server = yield* startTlsStore(identity)
    const error = yield* Effect.flip(Effect.provide(call(), NodeStoreAuth.layer(at(server.url))))
    assert(error._tag === "TokenRequestError")
    assert.strictEqual(error.reason, "Certificate")
    assert.strictEqual(server.opened(), 1)

    const other = yield* selfSigned("other.example")
    const bytes = new TextEncoder().encode(identity.cert)
    for (
      const ca of [identity.cert, bytes, [other.cert, identity.cert], `a comment\n${other.cert}${identity.cert}`]
    ) {
      const live = NodeStoreAuth.layer({ ...at(server.url), http: { ca } })
      deepStrictEqual(yield* Effect.provide(call(), live), authorized)
    }
  })

  test.live("uses HTTP/1.1, even if the server offers HTTP/2", function*() {
    const identity = yield* selfSigned()
    const versions: Array<string> = []
    const server = createSecureServer({ ...identity, allowHTTP1: true }, (request, response) => {
      versions.push(request.httpVersion)
      response.end()
    })
    const { url } = yield* listen(server, { host: "localhost", protocol: "https" })
    yield* Effect.provide(get(url), NodeHttp.layer({ ca: identity.cert }))
    deepStrictEqual(versions, ["1.1"])
  })

  test.live("does not accept a trusted certificate for another name", function*() {
    const identity = yield* selfSigned("other.example")
    const server = yield* startTlsStore(identity)
    const live = NodeStoreAuth.layer({ ...at(server.url), http: { ca: identity.cert } })
    const error = yield* Effect.flip(Effect.provide(call(), live))
    assert(error._tag === "TokenRequestError")
    assert.strictEqual(error.reason, "Certificate")
  })

  test.live("adds to the certificates that Node trusts, including NODE_EXTRA_CA_CERTS", function*() {
    const [identity, other] = [yield* selfSigned(), yield* selfSigned("other.example")]
    const server = yield* startTlsStore(identity)
    const output = Effect.provide(get(server.url), NodeHttp.layer({ ca: other.cert }))
    const error = yield* Effect.flip(output.pipe(withCACertificates(undefined)))
    assert(error._tag === "RequestError")
    assert.strictEqual(code(error), "DEPTH_ZERO_SELF_SIGNED_CERT")

    const trusted = yield* output.pipe(withCACertificates((type) => type === "default" ? [identity.cert] : []))
    assert.strictEqual(trusted, `{"authorization":"none"}`)
    const { cert } = yield* filesOf(identity)
    const extra = yield* output.pipe(withVariables({ NODE_EXTRA_CA_CERTS: cert }), withCACertificates(undefined))
    assert.strictEqual(extra, `{"authorization":"none"}`)
  })

  test.live("is the only way to trust a server: NODE_TLS_REJECT_UNAUTHORIZED=0 has no effect", function*() {
    const server = yield* startTlsStore(yield* selfSigned())
    yield* Effect.gen(function*() {
      const error = yield* Effect.flip(Effect.provide(get(server.url), NodeHttp.layer()))
      assert(error._tag === "RequestError")
      assert.strictEqual(code(error), "DEPTH_ZERO_SELF_SIGNED_CERT")
      const control = yield* Effect.provide(get(server.url), NodeHttpClient.layerUndici)
      assert.strictEqual(control, `{"authorization":"none"}`, "undici alone obeys the variable")
    }).pipe(withVariables({ NODE_TLS_REJECT_UNAUTHORIZED: "0" }))
  })
})

describe.runIf(canMakeCertificates)("cert and key", () => {
  test.live("authenticate the client to a server that requires a certificate", function*() {
    const [identity, client] = [yield* selfSigned(), yield* selfSigned("client.example")]
    const server = yield* startTlsStore(
      identity,
      { requestCert: true, ca: client.cert },
      ({ socket }, response) => response.end(socket instanceof TLSSocket ? socket.getPeerCertificate().subject.CN : "")
    )
    const withKey = NodeHttp.layer({ ca: identity.cert, cert: client.cert, key: Redacted.make(client.key) })
    assert.strictEqual(yield* Effect.provide(get(server.url), withKey), "client.example")
    const error = yield* Effect.flip(Effect.provide(get(server.url), NodeHttp.layer({ ca: identity.cert })))
    assert.strictEqual(error._tag, "RequestError")
  })

  test.live("are those of the time when the layer was built: a renewed certificate is used by the next layer", function*() {
    const identity = yield* selfSigned()
    const [first, second] = [yield* selfSigned("first.example"), yield* selfSigned("second.example")]
    const requesting = { requestCert: true, ca: [first.cert, second.cert] }
    const server = yield* startTlsStore(identity, requesting, ({ socket }, response) => {
      // Each request needs a new connection.
      response.setHeader("Connection", "close")
      response.end(socket instanceof TLSSocket ? socket.getPeerCertificate().subject.CN : "")
    })
    const files = yield* filesOf(first)
    const live = Layer.unwrapEffect(Effect.sync(() =>
      NodeHttp.layer({
        ca: identity.cert,
        cert: readFileSync(files.cert),
        key: Redacted.make(readFileSync(files.key, "utf8"))
      })
    ))
    const renewed = Effect.gen(function*() {
      const before = yield* get(server.url)
      writeFileSync(files.cert, second.cert)
      writeFileSync(files.key, second.key)
      return [before, yield* get(server.url), yield* Effect.provide(get(server.url), Layer.fresh(live))]
    })
    deepStrictEqual(yield* Effect.provide(renewed, live), ["first.example", "first.example", "second.example"])
  })
})
