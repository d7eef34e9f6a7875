import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { Context, Effect, Option, TestClock } from "effect"
import { tokenStoreContract } from "./support/tokenStoreContract.js"

tokenStoreContract("TokenStore.layerMemory", TokenStore.layerMemory)

describe("TokenStore.layerMemory", () => {
  it.effect("an entry lives until its life is over, to the millisecond, whatever the wall clock does", () =>
    Effect.gen(function*() {
      const store = yield* TokenStore.makeMemory
      yield* store.put("key", "entry", "10 seconds")
      yield* TestClock.adjust("9999 millis")
      deepStrictEqual(yield* store.get("key"), Option.some("entry"))
      yield* TestClock.adjust("1 millis")
      deepStrictEqual(yield* store.get("key"), Option.none())
    }))

  it.effect("a lease extended begins anew, with its whole duration", () =>
    Effect.gen(function*() {
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
    }))

  it("a store that is missing is named", () => {
    assert.throws(() => Context.unsafeGet(Context.empty(), TokenStore.TokenStore), /: @store-api\/core\/TokenStore /)
  })

  it.effect.each(["get", "put", "remove", "lease", "extend", "release"] as const)(
    "an error of %s can be caught by its tag, and has its public name",
    (operation) =>
      Effect.gen(function*() {
        const error = new TokenStore.TokenStoreError({ operation, reason: "ECONNREFUSED" })
        assert.strictEqual(yield* Effect.catchTag(error, "TokenStoreError", (error) => Effect.succeed(error)), error)
        assert.strictEqual(TokenStore.TokenStoreError.identifier, "@store-api/core/TokenStoreError")
      })
  )

  it("an error says which operation failed, and what to do", () => {
    assert.strictEqual(
      new TokenStore.TokenStoreError({ operation: "put", reason: "ECONNREFUSED" }).message,
      "The token store could not do \"put\" (ECONNREFUSED): check that it runs and can be reached."
    )
  })
})
