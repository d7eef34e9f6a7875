import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { createClient } from "@redis/client"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Option } from "effect"
import { canMakeCertificates, certificate } from "./support/certificates.js"
import { all, connected, members, renewal, shop, warningsOf } from "./support/fleet.js"
import { freePort, isLeftOut, redisServer } from "./support/redisServer.js"

const limit = 60_000

/** A Redis that is reached over TLS too; plain text is for the tests. */
const overTls = (clients: "yes" | "no", name?: string) =>
  Effect.gen(function*() {
    const [{ cert, key }, port] = yield* Effect.all([certificate(name), freePort])
    const redis = yield* redisServer(
      ["--tls-port", String(port), "--tls-cert-file", cert, "--tls-key-file", key].concat(
        ["--tls-ca-cert-file", cert, "--tls-auth-clients", clients]
      )
    )
    return { ...redis, cert, key, tlsUrl: `rediss://127.0.0.1:${port}` }
  })

describe.skipIf(isLeftOut || !canMakeCertificates)("over TLS", () => {
  it.scopedLive("processes that trust the authority share a token", () =>
    Effect.gen(function*() {
      const [redis, { asked, settings }] = yield* Effect.all([overTls("no"), shop()])
      const fleet = yield* members(2, { NODE_EXTRA_CA_CERTS: redis.cert })
      yield* all(fleet, "open", { ...settings, redisUrl: redis.tlsUrl })
      yield* connected(fleet)
      const { requests, tokens } = yield* renewal(fleet, asked)
      deepStrictEqual([requests, tokens], [1, 1])
      deepStrictEqual((yield* warningsOf(fleet)).flat(), [])
    }), limit)

  it.scopedLive(
    "processes that do not trust it buy a token each, and are warned; NODE_TLS_REJECT_UNAUTHORIZED or not",
    () =>
      Effect.gen(function*() {
        const [redis, { asked, settings }, other] = yield* Effect.all([overTls("no"), shop(), certificate()])
        const fleet = (yield* Effect.all([
          members(1, { NODE_EXTRA_CA_CERTS: other.cert }),
          members(1, { NODE_EXTRA_CA_CERTS: other.cert, NODE_TLS_REJECT_UNAUTHORIZED: "0" })
        ])).flat()
        yield* all(fleet, "open", { ...settings, redisUrl: redis.tlsUrl })
        const { requests, tokens } = yield* renewal(fleet, asked)
        deepStrictEqual([requests, tokens], [2, 2])
        const reasons = (yield* warningsOf(fleet)).map((of) => of.map(({ annotations }) => annotations["reason"]))
        deepStrictEqual(reasons, [["DEPTH_ZERO_SELF_SIGNED_CERT"], ["DEPTH_ZERO_SELF_SIGNED_CERT"]])
        assert.strictEqual(yield* redis.connected, 0)
      }),
    limit
  )

  it.scopedLive(
    "a certificate that is trusted, but of another host, is none: a token each, and a warning",
    () =>
      Effect.gen(function*() {
        const [redis, { asked, settings }] = yield* Effect.all([overTls("no", "DNS:redis.shop.example"), shop()])
        const fleet = yield* members(2, { NODE_EXTRA_CA_CERTS: redis.cert })
        yield* all(fleet, "open", { ...settings, redisUrl: redis.tlsUrl })
        const { requests, tokens } = yield* renewal(fleet, asked)
        deepStrictEqual([requests, tokens], [2, 2])
        const reasons = (yield* warningsOf(fleet)).map((of) => of.map(({ annotations }) => annotations["reason"]))
        deepStrictEqual(reasons, [["ERR_TLS_CERT_ALTNAME_INVALID"], ["ERR_TLS_CERT_ALTNAME_INVALID"]])
        assert.strictEqual(yield* redis.connected, 0)
      }),
    limit
  )

  it.scopedLive("a client of one's own has a certificate to show", () =>
    Effect.gen(function*() {
      const redis = yield* overTls("yes")
      const pem = (path: string) => readFileSync(path, "utf8")
      const reaches = (identity: { readonly cert?: string; readonly key?: string }) =>
        Effect.acquireRelease(
          Effect.sync(() =>
            createClient({
              url: redis.tlsUrl,
              socket: { tls: true, ca: pem(redis.cert), reconnectStrategy: false, ...identity }
            }).on("error", () => undefined)
          ),
          (client) => Effect.sync(() => client.destroy())
        ).pipe(
          Effect.tap((client) => Effect.tryPromise(() => client.connect())),
          Effect.flatMap((client) => {
            const store = RedisTokenStore.fromClient(client)
            return Effect.zipRight(store.put("key", "entry", "1 minute"), store.get("key"))
          }),
          Effect.option
        )
      const identity = { cert: pem(redis.cert), key: pem(redis.key) }
      deepStrictEqual(yield* reaches(identity), Option.some(Option.some("entry")))
      deepStrictEqual(yield* reaches({}), Option.none())
    }), limit)
})
