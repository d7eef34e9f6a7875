/** Fleets of processes over each database, and of more clients than PostgreSQL has connections for. */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { SqlTokenStore } from "@store-api/sql"
import * as Fleet from "@store-api/testing/fleet"
import type { StoreAt } from "@store-api/testing/member"
import { test } from "@store-api/testing/test"
import { Context, Effect, Layer, Option } from "effect"
import { clientAt } from "./support/clients.js"
import { available, database } from "./support/servers.js"

const limit = 120_000

const storeAt: StoreAt = (url) => SqlTokenStore.layerLazy(clientAt(url))

const inProcess = Fleet.providers(storeAt)

const program = new URL("./child/member.ts", import.meta.url)

describe.each(available)("processes and %s", { timeout: limit }, (kind) => {
  test.live("the process that acquires the token is killed: the others wait for its lease, then one acquires", function*() {
    const outcome = yield* Fleet.holderIsKilled(program, yield* database(kind))
    deepStrictEqual(outcome, { tokens: 1, requests: 2, holder: "Failure" })
  })

  test.live("twenty clients race for a lease that half of them never release: no two hold it at once", function*() {
    const { url } = yield* database(kind)
    const duration = 300
    let free = 0
    let grants = 0
    const race = Effect.gen(function*() {
      const store = Context.get(yield* Layer.build(storeAt(url)), TokenStore.TokenStore)
      while (grants < 12) {
        const asked = performance.now()
        const lease = yield* store.lease("key", duration)
        if (Option.isNone(lease)) yield* Effect.sleep("20 millis")
        else {
          // A lease lasts from a moment between the question and the answer.
          assert.isAtLeast(performance.now(), free - 5)
          grants++
          free = asked + duration
          if (grants % 2 === 0) continue
          free = 0
          yield* lease.value.release
        }
      }
    })
    yield* Effect.all(Effect.replicate(race, 20), { concurrency: "unbounded" })
  })
})

describe.runIf(available.includes("pg"))("PostgreSQL with twenty connections", { timeout: limit }, () => {
  test.live("forty providers that start at once, each with its own client, share a token", function*() {
    const [{ query, url }, { tokenRequests, settings }] = yield* Effect.all([database("pg"), Fleet.shop()])
    yield* query("ALTER ROLE member CONNECTION LIMIT 20")
    // Enough for a busy machine.
    const patient = { ...settings, storeUrl: url, storeTimeout: "30 seconds", lease: "30 seconds" } as const
    const members = yield* inProcess(40, patient)
    assert.isAtMost(yield* Fleet.tokens(members), 2)
    assert.isAtMost(yield* tokenRequests, 2)
    yield* Fleet.warnedOf(members)
  })
})
