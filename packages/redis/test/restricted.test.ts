/** Servers that forbid what the store needs. */
import { assert, describe } from "@effect/vitest"
import { RedisTokenStore } from "@store-api/redis"
import { isLeftOut, redisServer } from "@store-api/testing/redisServers"
import { test } from "@store-api/testing/test"
import { Effect, Redacted } from "effect"

describe.skipIf(isLeftOut)("a Redis without EVAL", () => {
  test.live("has a reason that names EVAL", function*() {
    const { url } = yield* redisServer(["--rename-command", "EVAL", ""])
    const store = yield* RedisTokenStore.make({ url: Redacted.make(url) })
    const failure = yield* Effect.flip(store.lease("key", "1 second"))
    assert.strictEqual(failure.reason, "EVAL is disabled")
  })

  test.live("has the reason NOPERM if only this user may not use it", function*() {
    const { command, url } = yield* redisServer()
    yield* command("ACL", "SETUSER", "default", "-eval")
    const store = yield* RedisTokenStore.make({ url: Redacted.make(url) })
    const failure = yield* Effect.flip(store.lease("key", "1 second"))
    assert.strictEqual(failure.reason, "NOPERM")
  })
})
