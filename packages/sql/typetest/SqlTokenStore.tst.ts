/** The options of the store on a database, by their types. docs/reference/api has the type of each function. */
import type { SqlClient } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import type { AccessTokenError, TokenStore } from "@store-api/core"
import { SqlTokenStore } from "@store-api/sql"
import { Layer, Redacted } from "effect"
import { expect, test } from "tstyche"

const client = PgClient.layer({ url: Redacted.make("postgres://127.0.0.1") })

test("SqlTokenStore.layerLazy needs no client, and does not fail like one", () => {
  const { layer, layerLazy } = SqlTokenStore
  type Made<R = never> = Layer.Layer<
    TokenStore.TokenStore,
    AccessTokenError.ConfigurationError,
    R
  >
  expect(layerLazy(client)).type.toBe<Made>()
  expect(layer()).type.toBe<Made<SqlClient.SqlClient>>()
  expect(layerLazy).type.toBeCallableWith(client, { table: "my_tokens" })
  expect(layerLazy).type.not.toBeCallableWith(Layer.empty)
  expect(layer).type.not.toBeCallableWith({ table: 1 })
})

test("SqlTokenStore.createTable takes the dialects of @effect/sql that have a statement", () => {
  expect(SqlTokenStore.createTable).type.toBeCallableWith("pg")
  expect(SqlTokenStore.createTable).type.toBeCallableWith("mysql", "my_tokens")
  expect(SqlTokenStore.createTable).type.not.toBeCallableWith("mssql")
})
