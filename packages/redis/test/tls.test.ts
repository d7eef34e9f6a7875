import { readFileSync } from "node:fs"
import { describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { createClient } from "@redis/client"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Option } from "effect"
import { test } from "../../core/test/support/test.js"
import { canMakeCertificates } from "../../platform-node/test/support/certificates.js"
import { withVariables } from "../../platform-node/test/utils.js"
import { inProcess, reasonsOf, renewal, shop, until } from "./support/fleet.js"
import { isLeftOut, redisOverTls } from "./support/redisServer.js"

const limit = 60_000

/**
 * Connects a client with these TLS options, and returns the entry of its store. Returns `None` if it cannot connect.
 */
const reaches = (url: string, options: Readonly<Record<string, unknown>>) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      createClient({ url, socket: { tls: true, reconnectStrategy: false, ...options } }).on("error", () => undefined)
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

const entry = Option.some(Option.some("entry"))

describe.skipIf(isLeftOut || !canMakeCertificates)("over TLS", () => {
  test.live(
    "a server that Node does not trust is not used, even with NODE_TLS_REJECT_UNAUTHORIZED=0",
    function*() {
      const [redis, { tokenRequests, settings }] = yield* Effect.all([redisOverTls("no"), shop()])
      const ownTokens = Effect.gen(function*() {
        const members = yield* inProcess(1, { ...settings, redisUrl: redis.tlsUrl })
        deepStrictEqual(yield* renewal(members, tokenRequests), { requests: 1, tokens: 1 })
        deepStrictEqual(yield* reasonsOf(members), [["DEPTH_ZERO_SELF_SIGNED_CERT"]])
      })
      yield* ownTokens
      yield* Effect.gen(function*() {
        yield* ownTokens
        yield* until("no member is connected", Effect.map(redis.connected, (count) => count === 0))
        deepStrictEqual(yield* reaches(redis.tlsUrl, {}), entry, "control: the variable affects other clients")
      }).pipe(withVariables({ NODE_TLS_REJECT_UNAUTHORIZED: "0" }))
    },
    limit
  )

  test.live("a client of the application can authenticate with a certificate", function*() {
    const redis = yield* redisOverTls("yes")
    const pem = (path: string) => readFileSync(path, "utf8")
    const ca = pem(redis.cert)
    deepStrictEqual(yield* reaches(redis.tlsUrl, { ca, cert: ca, key: pem(redis.key) }), entry)
    deepStrictEqual(yield* reaches(redis.tlsUrl, { ca }), Option.none())
  }, limit)
})
