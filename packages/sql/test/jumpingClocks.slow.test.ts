import { describe } from "@effect/vitest"
import { TokenStore } from "@store-api/core"
import { SqlTokenStore } from "@store-api/sql"
import { runRandomFleets, runScenarios } from "@store-api/testing/jumpingClocksLive"
import { shared } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Context, Effect, Layer } from "effect"
import { clientAt } from "./support/clients.js"
import { available, database } from "./support/servers.js"

const seed = Number(process.env["MODEL_SEED"] ?? Math.floor(Math.random() * 2 ** 31))

describe.each(available)(
  "processes with wrong wall clocks that share a token in %s",
  (kind) => {
    const running = shared(database(kind))
    const store = Effect.flatMap(
      running,
      ({ url }) => Layer.build(SqlTokenStore.layerLazy(clientAt(url)))
    ).pipe(
      Effect.map(Context.get(TokenStore.TokenStore))
    )

    test.live("every call gets a valid token while one wall clock is ahead, behind or set back", function*() {
      yield* runScenarios(yield* store)
    })

    test.live(`every call gets a valid token while all wall clocks jump at random (MODEL_SEED=${seed})`, function*() {
      yield* runRandomFleets(yield* store, 20, seed)
    })
  }
)
