import { MysqlClient } from "@effect/sql-mysql2"
import { PgClient } from "@effect/sql-pg"
import { SqliteClient } from "@effect/sql-sqlite-node"
import { Redacted } from "effect"

/** The kinds of databases that have a client. */
export const kinds = ["pg", "mysql", "sqlite"] as const

export type Kind = typeof kinds[number]

/** The layer of a client, as an application has it. The URL of SQLite is `sqlite:`, then the path of the file. */
export const clientAt = (url: string) => {
  if (url.startsWith("sqlite:")) return SqliteClient.layer({ filename: url.slice("sqlite:".length) })
  const options = { url: Redacted.make(url), maxConnections: 2 }
  return url.startsWith("mysql:") ? MysqlClient.layer(options) : PgClient.layer({ ...options, connectTimeout: 1000 })
}
