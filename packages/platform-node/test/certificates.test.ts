import { TLSSocket } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { Effect, Redacted } from "effect"
import {
  at,
  authorized,
  call,
  canMakeCertificates,
  get,
  processTimeout,
  run,
  selfSigned,
  startTlsStore
} from "./utils.js"

/** What the store answers to a request without a token. */
const answer = `{"authorization":"none"}`

describe.runIf(canMakeCertificates)("ca", () => {
  it.scopedLive("makes a self-signed server trusted; without it the token request fails, and is sent once", () =>
    Effect.gen(function*() {
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
    }))

  it.scopedLive("does not make a trusted certificate good for another name", () =>
    Effect.gen(function*() {
      const identity = yield* selfSigned("other.example")
      const server = yield* startTlsStore(identity)
      const live = NodeStoreAuth.layer({ ...at(server.url), http: { ca: identity.cert } })
      const error = yield* Effect.flip(Effect.provide(call(), live))
      assert(error._tag === "TokenRequestError")
      assert.strictEqual(error.reason, "Certificate")
    }))

  it.scopedLive("adds to NODE_EXTRA_CA_CERTS", () =>
    Effect.gen(function*() {
      const [one, other] = [yield* selfSigned(), yield* selfSigned()]
      const server = yield* startTlsStore(one)
      const outcomes = yield* Effect.forEach([
        { TEST_CA: other.certPath, NODE_EXTRA_CA_CERTS: one.certPath },
        { TEST_CA: one.certPath, NODE_EXTRA_CA_CERTS: other.certPath },
        { TEST_CA: other.certPath }
      ], (variables) =>
        Effect.map(run([server.url], variables), ({ output }) => output), { concurrency: 2 })
      deepStrictEqual(outcomes, [answer, answer, "DEPTH_ZERO_SELF_SIGNED_CERT"])
    }), processTimeout)

  it.scopedLive("is the only way: NODE_TLS_REJECT_UNAUTHORIZED=0 does not count", () =>
    Effect.gen(function*() {
      const server = yield* startTlsStore(yield* selfSigned())
      const lax = { NODE_TLS_REJECT_UNAUTHORIZED: "0" }
      // The second is the control: undici as it comes obeys the variable.
      const outcomes = yield* Effect.forEach(["", "undici"], (layer) => run([server.url, layer], lax), {
        concurrency: 2
      })
      deepStrictEqual(outcomes.map(({ output }) => output), ["DEPTH_ZERO_SELF_SIGNED_CERT", answer])
    }), processTimeout)
})

describe.runIf(canMakeCertificates)("cert and key", () => {
  it.scopedLive("reach a server that asks for them", () =>
    Effect.gen(function*() {
      const [identity, client] = [yield* selfSigned(), yield* selfSigned("client.example")]
      const server = yield* startTlsStore(identity, { requestCert: true, ca: client.cert }, ({ socket }, response) =>
        response.end(socket instanceof TLSSocket ? socket.getPeerCertificate().subject.CN : ""))
      const withKey = NodeHttp.layer({ ca: identity.cert, cert: client.cert, key: Redacted.make(client.key) })
      assert.strictEqual(yield* Effect.provide(get(server.url), withKey), "client.example")
      const error = yield* Effect.flip(Effect.provide(get(server.url), NodeHttp.layer({ ca: identity.cert })))
      assert.strictEqual(error._tag, "RequestError")
    }))
})
