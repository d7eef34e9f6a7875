import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Option, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import { clientAt, isLeftOut, sharedRedis } from "./support/redisServer.js"
import { documented } from "./support/storeTests.js"

const rights = documented("+pexpire")

const key = "store-api-token-v1:0123456789abcdef"

/** Performs each operation once, and returns the results. */
const useAll = (store: Effect.Effect.Success<ReturnType<typeof RedisTokenStore.make>>) =>
  Effect.gen(function*() {
    yield* store.put(key, "an entry", "1 minute")
    const entry = yield* store.get(key)
    const lease = Option.getOrThrow(yield* store.lease(key, "1 minute"))
    const extended = yield* lease.extend
    yield* lease.release
    return { entry, extended, removed: yield* store.remove(key, "an entry") }
  })

describe.skipIf(isLeftOut)("the rights that docs/guides/redis.md recommends", () => {
  const emptyRedis = sharedRedis()

  /** Creates a user with these rights. Returns a client of the administrator, and the URL for the user. */
  const serverWith = ([name = "", ...rights]: ReadonlyArray<string>) =>
    Effect.gen(function*() {
      const { url } = yield* emptyRedis
      const administrator = yield* clientAt(url)
      yield* Effect.promise(() => administrator.sendCommand(["ACL", "SETUSER", name, "reset", ...rights]))
      return { administrator, url: `${url.replace("redis://", "redis://store-api:password@")}/1` }
    })

  /** A store that signs in as a user with these rights. */
  const storeOf = (user: ReadonlyArray<string>) =>
    Effect.flatMap(serverWith(user), ({ url }) => RedisTokenStore.make({ url: Redacted.make(url) }))

  test.live("are enough for each operation", function*() {
    deepStrictEqual(yield* useAll(yield* storeOf(rights)), {
      entry: Option.some("an entry"),
      extended: true,
      removed: true
    })
  })

  test.live("do not cover other keys", function*() {
    const store = yield* storeOf(rights)
    const error = yield* Effect.flip(store.get("another key"))
    assert.strictEqual(error.reason, "NOPERM")
  })

  it.scopedLive.each([
    "CLIENT LIST",
    "CLIENT PAUSE 1",
    "CLIENT KILL TYPE normal SKIPME yes",
    "KEYS *",
    "SCAN 0",
    "FLUSHALL",
    "CONFIG GET maxmemory",
    "ACL LIST"
  ])("do not include %s, which the administrator can do", (command) =>
    Effect.gen(function*() {
      const { administrator, url } = yield* serverWith(rights)
      const user = yield* clientAt(url)
      const refusal = (client: typeof user) =>
        Effect.promise(() => client.sendCommand(command.split(" ")).then(() => "none", String))
      assert.include(yield* refusal(user), "NOPERM")
      assert.strictEqual(yield* refusal(administrator), "none")
    }))

  it.scopedLive.each(["+select", "+get", "+set", "+del", "+eval", "+pexpire", "~store-api-token-v1:*"])(
    "are not enough without %s",
    (right) =>
      Effect.gen(function*() {
        const fewer = rights.filter((word) => word !== right)
        assert.lengthOf(fewer, rights.length - 1)
        const error = yield* Effect.flip(useAll(yield* storeOf(fewer)))
        assert.strictEqual(error._tag, "TokenStoreError")
      })
  )
})
