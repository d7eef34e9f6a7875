import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { Effect, Option, TestClock } from "effect"
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
      assert.isTrue(Option.isSome(yield* store.lease("key", "10 seconds")))
    }))

  it("an error says which operation failed, and what to do", () => {
    assert.strictEqual(
      new TokenStore.TokenStoreError({ operation: "put", reason: "ECONNREFUSED" }).message,
      "The token store could not do \"put\" (ECONNREFUSED): check that it runs and can be reached."
    )
  })
})
