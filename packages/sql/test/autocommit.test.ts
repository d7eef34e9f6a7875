/** A connection of MySQL or MariaDB that does not commit its statements. */
import { assert, describe } from "@effect/vitest"
import { TokenStore } from "@store-api/core"
import { SqlTokenStore } from "@store-api/sql"
import { test } from "@store-api/testing/test"
import { Context, Effect, Layer } from "effect"
import { clientAt } from "./support/clients.js"
import { available, database } from "./support/servers.js"

describe.skipIf(!available.includes("mysql"))("autocommit", () => {
  test.live("that is off is the reason of each operation, until it is on", function*() {
    const { query, url } = yield* database("mysql")
    // For connections of users without special rights.
    yield* query("SET GLOBAL init_connect = 'SET autocommit = 0'")
    const context = yield* Layer.build(SqlTokenStore.layerLazy(clientAt(url)))
    const store = Context.get(context, TokenStore.TokenStore)
    const failures = [
      store.get("key"),
      store.put("key", "entry", "1 hour"),
      store.lease("key", "1 hour")
    ]
    for (const operation of failures) {
      assert.strictEqual((yield* Effect.flip(operation)).reason, "autocommit is off")
    }
  })
})
