import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { test } from "@store-api/testing/test"
import { tokenStoreContract } from "@store-api/testing/tokenStoreContract"
import { Context, Effect, Option, TestClock } from "effect"

tokenStoreContract("TokenStore.layerMemory", TokenStore.layerMemory)

describe("TokenStore.layerMemory", () => {
  test("keeps an entry for its time to live, to the millisecond", function*() {
    const store = yield* TokenStore.makeMemory
    yield* store.put("key", "entry", "10 seconds")
    yield* TestClock.adjust("9999 millis")
    deepStrictEqual(yield* store.get("key"), Option.some("entry"))
    yield* TestClock.adjust("1 millis")
    deepStrictEqual(yield* store.get("key"), Option.none())
  })

  test("restarts a lease for its whole duration when it is extended", function*() {
    const store = yield* TokenStore.makeMemory
    const lease = Option.getOrThrow(yield* store.lease("key", "10 seconds"))
    yield* TestClock.adjust("9999 millis")
    assert.isTrue(yield* lease.extend)
    yield* TestClock.adjust("9999 millis")
    assert.isTrue(Option.isNone(yield* store.lease("key", "10 seconds")))
    yield* TestClock.adjust("1 millis")
    assert.isFalse(yield* lease.extend)
    yield* lease.release
    assert.isTrue(Option.isSome(yield* store.lease("key", "10 seconds")))
  })

  it("names the service when no store is provided", () => {
    assert.throws(() => Context.unsafeGet(Context.empty(), TokenStore.TokenStore), /: @store-api\/core\/TokenStore\b/)
  })

  test("FailedAttempt ignores the reasons of a store that is used directly", function*() {
    const report = yield* TokenStore.FailedAttempt
    report("ECONNREFUSED")
    assert.strictEqual(TokenStore.FailedAttempt.key, "@store-api/core/TokenStore/FailedAttempt")
  })

  test.each(["get", "put", "remove", "lease", "extend", "release"] as const)(
    "TokenStoreError of %s is caught by its tag, and has its identifier",
    function*(operation) {
      const error = new TokenStore.TokenStoreError({ operation, reason: "ECONNREFUSED" })
      assert.strictEqual(yield* Effect.catchTag(error, "TokenStoreError", (error) => Effect.succeed(error)), error)
      assert.strictEqual(TokenStore.TokenStoreError.identifier, "@store-api/core/TokenStoreError")
    }
  )

  it("TokenStoreError names the operation that failed and says what to do", () => {
    assert.strictEqual(
      new TokenStore.TokenStoreError({ operation: "put", reason: "ECONNREFUSED" }).message,
      "The token store failed at put (ECONNREFUSED): check that it runs and is reachable."
    )
  })
})
