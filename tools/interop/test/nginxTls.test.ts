/** nginx uses TLS, with a certificate from an authority that only the tests know. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import { eventually, isLeftOut } from "../src/debian/Program.js"
import * as certificate from "../src/nginx/certificate.js"
import * as Front from "../src/nginx/Front.js"
import { nginx } from "../src/nginx/Nginx.js"
import { oidcProvider } from "../src/oidcProvider.js"

const timeout = 60_000

const leftOut = isLeftOut(nginx) || isLeftOut(certificate.program)

const start = Effect.gen(function*() {
  const { ca, cert, key } = yield* certificate.make
  const running = yield* oidcProvider.start({ life: 600 })
  return { ca, running, front: yield* Front.before(running, { tls: { cert, key } }) }
})

/** Connections that a client ended in the handshake, or right after it without a request, as nginx logs them. */
const turnedAway = ({ errors }: Front.Front) =>
  errors().match(/(SSL_do_handshake\(\) failed|client closed connection while).*client: 127\.0\.0\.1/g)?.length ?? 0

describe.skipIf(leftOut)("TLS of nginx", () => {
  it.scopedLive("with the authority in `ca`: token and call over https", () =>
    Effect.gen(function*() {
      const { ca, front } = yield* start
      const client = yield* Front.client(front.running, { ca })
      assert.strictEqual(yield* Front.call(client), 200)
      deepStrictEqual([yield* front.tokens, yield* front.calls], [[200], [200]])
      yield* Front.tell(front, {
        fault: "https, its authority in `ca`",
        outcome: "a token, and the response to the call"
      })
    }), timeout)

  it.scopedLive("without it, and with another: Certificate, and nothing is sent", () =>
    Effect.gen(function*() {
      const { front, running } = yield* start
      const other = yield* certificate.make
      for (const [index, http] of [undefined, { ca: other.ca }].entries()) {
        const { provider } = yield* Front.client(front.running, http)
        const error = yield* Effect.flip(provider.get)
        assert(error._tag === "TokenRequestError")
        deepStrictEqual([error.reason, error.attempts], ["Certificate", 1])
        Front.assertHidden(error, [running.credentials.clientSecret])
        // The client refused the certificate of this nginx.
        yield* eventually(Effect.sync(() => turnedAway(front)), (times) => times === index + 1)
        deepStrictEqual([yield* front.requests, yield* running.tokenRequests], [[], 0])
        yield* Front.tell(front, {
          fault: http === undefined ? "https, its authority unknown" : "https, another authority in `ca`",
          outcome: Front.inWords(error)
        })
      }
    }), timeout)
})
