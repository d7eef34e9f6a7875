import { describe } from "@effect/vitest"
import { SqlTokenStore } from "@store-api/sql"
import { Effect, Layer } from "effect"
import { tokenStoreContract } from "../../core/test/support/tokenStoreContract.js"
import { shared } from "../../platform-node/test/utils.js"
import { clientAt } from "./support/clients.js"
import { available, database } from "./support/servers.js"

describe.each(available)("SqlTokenStore on %s", (kind) => {
  const running = shared(database(kind))
  const over = Effect.map(running, ({ url }) => Layer.provide(SqlTokenStore.layer(), clientAt(url)))
  tokenStoreContract(`SqlTokenStore.layer on ${kind}`, Layer.unwrapEffect(over))
  const lazily = Effect.map(running, ({ url }) => SqlTokenStore.layerLazy(clientAt(url), { table: "lazy" }))
  tokenStoreContract(`SqlTokenStore.layerLazy on ${kind}`, Layer.unwrapEffect(lazily))
})
