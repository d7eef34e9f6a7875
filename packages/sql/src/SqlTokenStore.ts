/**
 * A `TokenStore` in a table of PostgreSQL, MySQL, MariaDB or SQLite, through `@effect/sql`. The entries that it stores
 * are already sealed.
 *
 * @since 1.0.0
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import { type Service, TokenStore } from "@store-api/core/TokenStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as lazyStore from "./internal/lazyStore.js"
import { noFailure } from "./internal/retry.js"
import * as statements from "./internal/statements.js"
import { fromClient } from "./internal/store.js"

/**
 * The options of a store.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /**
   * The name of the table, with a schema and a dot in front if needed. Both consist of letters, digits and
   * underscores. Default: `store_api_tokens`.
   */
  readonly table?: string | undefined
}

/**
 * A database, as `@effect/sql` names it. `mysql` includes MariaDB.
 *
 * @see createTable
 *
 * @since 1.0.0
 * @category models
 */
export type Database = "pg" | "mysql" | "sqlite"

const defaultTable = "store_api_tokens"

/**
 * Returns the statement that creates the table, for your migrations. If the table is missing, the first operation
 * creates it, which needs the right to create tables.
 *
 * @example
 * ```ts
 * import { SqlClient } from "@effect/sql"
 * import { SqlTokenStore } from "@store-api/sql"
 * import { Effect } from "effect"
 *
 * // migrations/0007_store_api_tokens.ts
 * export default Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(SqlTokenStore.createTable("pg")))
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const createTable = (database: Database, table: string = defaultTable): string =>
  statements.createTable(database, table)

/**
 * Creates a store over the client in the context, which the application may use as well. No statement takes part in a
 * transaction of the caller. Fails with `ConfigurationError` if the name of the table is invalid or the client is for
 * another kind of database.
 *
 * For SQLite, use `layerLazy` with a client and a file that nothing else uses, because such a client stops all fibers
 * while another process writes, by default for up to five seconds.
 *
 * @example
 * ```ts
 * import { SqlTokenStore } from "@store-api/sql"
 * import { Effect } from "effect"
 *
 * const isReached = Effect.gen(function*() {
 *   const store = yield* SqlTokenStore.make()
 *   return yield* Effect.isSuccess(store.get("any key"))
 * })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  options?: Options
): Effect.Effect<Service, ConfigurationError, SqlClient.SqlClient> =>
  Effect.flatMap(tableOf(options), (table) => fromClient(table, false, noFailure()))

/**
 * Provides the store of `make`. If the database may be down at the start, use `layerLazy`, because the client's layer
 * usually fails then.
 *
 * @example
 * ```ts
 * import { PgClient } from "@effect/sql-pg"
 * import { NodeStoreAuth } from "@store-api/platform-node"
 * import { SqlTokenStore } from "@store-api/sql"
 * import { Config, Layer } from "effect"
 *
 * const PgLive = PgClient.layerConfig({ url: Config.redacted("DATABASE_URL") })
 *
 * const StoreAuthLive = NodeStoreAuth.layerSharedConfig().pipe(
 *   Layer.provide(SqlTokenStore.layer()),
 *   Layer.provide(PgLive)
 * )
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (
  options?: Options
): Layer.Layer<TokenStore, ConfigurationError, SqlClient.SqlClient> =>
  Layer.effect(TokenStore, make(options))

/**
 * Provides a store with its own client, which it builds in the background, so the layer succeeds even if the database
 * is down. As long as the client cannot be built, operations fail, and each tries to build it again. Fails with
 * `ConfigurationError` if the name of the table is invalid. Two connections are enough for the client.
 *
 * A client of SQLite gets a busy timeout of 50 milliseconds, after which the store tries again without stopping other
 * fibers.
 *
 * @example
 * ```ts
 * import { PgClient } from "@effect/sql-pg"
 * import { NodeStoreAuth } from "@store-api/platform-node"
 * import { SqlTokenStore } from "@store-api/sql"
 * import { Layer } from "effect"
 *
 * const PgLive = PgClient.layer({ host: "127.0.0.1", maxConnections: 2, connectTimeout: "1 second" })
 *
 * const StoreAuthLive = NodeStoreAuth.layerSharedConfig().pipe(Layer.provide(SqlTokenStore.layerLazy(PgLive)))
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerLazy = <E>(
  client: Layer.Layer<SqlClient.SqlClient, E>,
  options?: Options
): Layer.Layer<TokenStore, ConfigurationError> =>
  Layer.scoped(
    TokenStore,
    Effect.flatMap(tableOf(options), (table) => lazyStore.make(client, table))
  )

/** Checks the name, because the statements contain it as it is. */
const tableOf = (options: Options = {}): Effect.Effect<string, ConfigurationError> => {
  if (!Predicate.isReadonlyRecord(options)) {
    return new ConfigurationError({ option: "SqlTokenStore", reason: "must be an object" })
  }
  const { table = defaultTable } = options
  if (Predicate.isString(table) && /^([a-z_]\w{0,62}\.)?[a-z_]\w{0,62}$/i.test(table)) {
    return Effect.succeed(table)
  }
  return new ConfigurationError({
    option: "SqlTokenStore.table",
    reason:
      "must consist of letters, digits and underscores, with a schema and a dot in front if needed"
  })
}
