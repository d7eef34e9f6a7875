import { describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import { canMakeCertificates } from "../../platform-node/test/support/certificates.js"
import { connected, reasonsOf, renewal, shop, until } from "./support/fleet.js"
import { open, processes } from "./support/processes.js"
import { isLeftOut, redisOverTls } from "./support/redisServer.js"

const limit = 60_000

/** Node reads NODE_EXTRA_CA_CERTS when a process starts. */
const twoThatTrust = (
  redis: { readonly cert: string; readonly tlsUrl: string },
  settings: Parameters<typeof open>[1]
) =>
  Effect.flatMap(
    processes(2, { NODE_EXTRA_CA_CERTS: redis.cert }),
    (all) =>
      Effect.forEach(all, (process) => open(process, { ...settings, redisUrl: redis.tlsUrl }), { concurrency: 2 })
  )

describe.skipIf(isLeftOut || !canMakeCertificates)("over TLS", () => {
  it.scopedLive("processes that trust the authority share a token", () =>
    Effect.gen(function*() {
      const [redis, { asked, settings }] = yield* Effect.all([redisOverTls("no"), shop()])
      const members = yield* twoThatTrust(redis, settings)
      yield* connected(members)
      deepStrictEqual(yield* renewal(members, asked), { requests: 1, tokens: 1 })
      deepStrictEqual(yield* reasonsOf(members), [[], []])
    }), limit)

  it.scopedLive(
    "a trusted certificate of another host is refused: a token and a warning each",
    () =>
      Effect.gen(function*() {
        const [redis, { asked, settings }] = yield* Effect.all([redisOverTls("no", "redis.shop.example"), shop()])
        const members = yield* twoThatTrust(redis, settings)
        deepStrictEqual(yield* renewal(members, asked), { requests: 2, tokens: 2 })
        const reason = "ERR_TLS_CERT_ALTNAME_INVALID"
        deepStrictEqual(yield* reasonsOf(members), [[reason], [reason]])
        yield* until("no member is connected", Effect.map(redis.connected, (count) => count === 0))
      }),
    limit
  )
})
