/** Clients of databases, as applications have them. */
import { createRequire } from "node:module"
import { Reactivity } from "@effect/experimental"
import { SqlClient, SqlError, Statement } from "@effect/sql"
import { MysqlClient } from "@effect/sql-mysql2"
import { PgClient } from "@effect/sql-pg"
import type * as Sqlite from "@photostructure/sqlite"
import { Effect, Layer, Redacted, Stream } from "effect"

// The bundle of a child process cannot contain its binary.
const { DatabaseSync } = createRequire(`${process.cwd()}/packages/sql/`)(
  "@photostructure/sqlite"
) as typeof Sqlite

export type Kind = "pg" | "mysql" | "sqlite"

/** The kinds of databases that have a client. */
export const kinds: ReadonlyArray<Kind> = ["pg", "mysql", "sqlite"]

/** The layer of a client for a URL. That of SQLite is `sqlite:`, then the path of the file. */
export const clientAt = (url: string): Layer.Layer<SqlClient.SqlClient, unknown> => {
  if (url.startsWith("sqlite:")) return sqlite(url.slice("sqlite:".length))
  const options = { url: Redacted.make(url), maxConnections: 2 }
  return url.startsWith("mysql:")
    ? MysqlClient.layer(options)
    : PgClient.layer({ ...options, connectTimeout: "10 seconds", idleTimeout: "10 millis" })
}

/** Like `@effect/sql-sqlite-node`, whose driver has to be compiled, but with a connection for each transaction. */
const sqlite = (file: string) => {
  const connect = Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new DatabaseSync(file)),
      (database) => Effect.sync(() => database.close())
    ),
    (database) => {
      database.exec("PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL")
      const prepared = new Map<string, Sqlite.StatementSyncInstance | Error>()
      const prepare = (text: string) => {
        try {
          return database.prepare(text)
        } catch (error) {
          return error as Error // it is the driver's
        }
      }
      const run =
        (areArrays: boolean) => (text: string, parameters: ReadonlyArray<unknown> = []) =>
          Effect.try({
            try: () => {
              const statement = prepared.get(text) ?? prepare(text)
              // An error stays as well, as in the other client.
              prepared.set(text, statement)
              if (statement instanceof Error) throw statement
              statement.setReturnArrays(areArrays)
              return statement.all(...parameters as ReadonlyArray<string>) as ReadonlyArray<
                ReadonlyArray<unknown>
              >
            },
            catch: (error) => new SqlError.SqlError({ cause: error })
          })
      const [rows, arrays] = [run(false), run(true)]
      return {
        execute: rows,
        executeRaw: rows,
        executeUnprepared: rows,
        executeValues: arrays,
        executeValuesUnprepared: arrays,
        executeStream: () => Stream.die("the store reads no stream")
      }
    }
  )
  return Layer.scoped(
    SqlClient.SqlClient,
    Effect.flatMap(connect, (connection) => {
      const options = {
        driver: "sqlite",
        acquirer: Effect.succeed(connection),
        transactionAcquirer: connect
      }
      return SqlClient.make({
        ...options,
        compiler: Statement.makeCompilerSqlite(),
        spanAttributes: []
      })
    })
  ).pipe(Layer.provide(Reactivity.layer))
}
