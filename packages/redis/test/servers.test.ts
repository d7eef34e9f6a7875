import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import { shared } from "../../platform-node/test/utils.js"
import { isLeftOut } from "./support/redisServer.js"
import { documented, storeTests } from "./support/storeTests.js"
import { sentinel } from "./support/topologies.js"

describe.skipIf(isLeftOut)("a store behind sentinels with users", () => {
  storeTests(sentinel, { acl: documented("+pexpire"), sentinelAcl: documented("+sentinel") })
})

describe.skipIf(isLeftOut)("a store behind sentinels without users", () => {
  const servers = shared(sentinel())

  test.live("uses the database of the URL", function*() {
    const { primaryOf, url } = yield* servers
    const store = yield* RedisTokenStore.make({ url: Redacted.make(`${url}/3`) })
    yield* store.put("key", "entry", "1 minute")
    const primary = yield* primaryOf("key")
    assert.include(String(yield* primary.command("INFO", "keyspace")), "db3:keys=1")
    deepStrictEqual(yield* primary.command("KEYS", "*"), [])
  })

  test.live("fails at once with a reason if the sentinels do not know the name", function*() {
    const { url } = yield* servers
    const store = yield* RedisTokenStore.make({ url: Redacted.make(`${url}-of-another`) })
    const { operation, reason } = yield* Effect.flip(store.get("key"))
    deepStrictEqual([operation, reason], ["get", "unknown name"])
  })
})
