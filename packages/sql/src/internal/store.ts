import * as SqlClient from "@effect/sql/SqlClient"
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import {
  type Lease,
  type Service,
  TokenStore,
  TokenStoreError
} from "@store-api/core/TokenStore"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import { reasonOf } from "./reason.js"
import { type LastFailure, type Operation, retry } from "./retry.js"
import { createTable, type Database, statementsOf } from "./statements.js"

/** Creates the store over the client in the context. */
export const fromClient = (table: string, hasOwnClient: boolean, lastFailure: LastFailure) =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    return storeOf({ sql, database: yield* databaseOf(sql), table, hasOwnClient, lastFailure })
  })

interface Connected {
  readonly sql: SqlClient.SqlClient
  readonly database: Database
  readonly table: string
  readonly hasOwnClient: boolean
  readonly lastFailure: LastFailure
}

/** One row per entry and per lease. Only `clean` deletes rows, because deletions can cause deadlocks in InnoDB. */
const storeOf = (connected: Connected): Service => {
  const { database, lastFailure, table } = connected
  const statements = statementsOf(database, table)
  const { changes, execute, rows } = executorOf(connected)
  const withTable = prepareTable(connected, { execute, rows })

  /** Runs statements about one row, whose name must fit into its column. */
  const run = <A>(operation: Operation, name: string, effect: Effect.Effect<A, string>) =>
    name.length > 255
      ? new TokenStoreError({ operation, reason: "key too long" })
      : retry(operation, withTable(effect), lastFailure)

  const grant = (name: string, owner: string, millis: number) =>
    database === "mysql"
      ? Effect.flatMap(
        changes(statements.takeOver, owner, millis, name),
        (isTaken) =>
          isTaken ? Effect.succeed(true) : changes(statements.insertNew, name, owner, millis)
      )
      : changes(statements.lease, name, owner, millis, name)

  // Old rows remain only after a secret was changed. Deleting them by name locks no other row.
  const clean = Effect.flatMap(
    rows(statements.findOld),
    (names) => Effect.forEach(names, ([name]) => execute(statements.deleteOld, String(name)))
  )

  return TokenStore.of({
    get: (key) =>
      Effect.map(
        run("get", entryOf(key), rows(statements.get, entryOf(key))),
        ([row]) => Option.flatMap(Option.fromNullable(row), storedOf)
      ),
    put: (key, entry, life) => {
      const put = execute(statements.put, entryOf(key), encode(entry), millisOf(life))
      return run("put", entryOf(key), Effect.zipRight(put, Effect.ignore(clean)))
    },
    remove: (key, entry) =>
      run("remove", entryOf(key), changes(statements.expire, entryOf(key), encode(entry))),
    lease: (key, duration) =>
      Effect.suspend(() => {
        const name = `lease:${encode(key)}`
        const owner = globalThis.crypto.randomUUID()
        const millis = millisOf(duration)
        const lease: Lease = {
          extend: run("extend", name, changes(statements.extend, millis, name, owner)),
          release: Effect.asVoid(run("release", name, changes(statements.expire, name, owner)))
        }
        return Effect.whenEffect(
          Effect.succeed(lease),
          run("lease", name, grant(name, owner, millis))
        )
      }),
    lastFailure: Ref.get(lastFailure)
  })
}

/** Reads a row. Drivers return a decimal number as a number or a text. */
const storedOf = ([value, millis]: ReadonlyArray<unknown>) =>
  decode(String(value)).pipe(
    Option.map((entry) => ({ entry, remaining: Number(millis) })),
    // The row may have expired since the statement compared its time.
    Option.filter(({ remaining }) => remaining > 0)
  )

type Values = ReadonlyArray<string | number>

type Execute = (text: string, ...values: Values) => Effect.Effect<unknown, string>

/** Executes statements, outside of any transaction of the caller. Fails with the reason. */
const executorOf = ({ database, sql }: Connected) => {
  // A transaction of the caller would lock the lease until it ends, and may belong to another client.
  const leaveTransaction = (context: Context.Context<never>) =>
    // No type says that a transaction is in the context.
    Context.omit(SqlClient.TransactionConnection)(
      context as Context.Context<SqlClient.TransactionConnection>
    )
  const attempt = <A>(effect: Effect.Effect<A, unknown>) =>
    Effect.mapError(Effect.mapInputContext(effect, leaveTransaction), reasonOf)
  const statement = (text: string, values: Values) =>
    sql.unsafe(database === "pg" ? numberParameters(text) : text, [...values])

  const execute: Execute = (text, ...values) => attempt(statement(text, values).raw)
  const rows = (text: string, ...values: Values) => attempt(statement(text, values).values)
  /** Returns whether the statement changed a row. */
  const changes = (text: string, ...values: Values) =>
    database === "mysql"
      ? Effect.map(execute(text, ...values), (result) =>
        Predicate.hasProperty(result, "affectedRows") && result.affectedRows !== 0)
      : Effect.map(rows(`${text} RETURNING 1`, ...values), ({ length }) =>
        length > 0)
  return { changes, execute, rows }
}

/** PostgreSQL numbers its parameters. */
const numberParameters = (text: string): string => {
  let index = 0
  return text.replace(/\?/g, () => `$${++index}`)
}

/**
 * Creates the table if it is missing. PostgreSQL asks for the right to create a table even if it exists, so it gets
 * this only when the table is missing. The client of SQLite does not prepare a failed statement again for ten minutes,
 * so the table has to exist before. MySQL and MariaDB keep what a statement writes only if they commit it.
 */
const prepareTable = (
  { database, hasOwnClient, table }: Connected,
  { execute, rows }: Pick<ReturnType<typeof executorOf>, "execute" | "rows">
) => {
  const create = execute(createTable(database, table))
  const busyTimeout = hasOwnClient ? execute("PRAGMA busy_timeout = 50") : Effect.void
  const preparations: Record<Database, Effect.Effect<unknown, string>> = {
    pg: Effect.void,
    mysql: Effect.filterOrFail(
      rows("SELECT @@autocommit"),
      ([row]) => Number(row?.[0]) !== 0,
      () => "autocommit is off"
    ),
    sqlite: Effect.zipRight(busyTimeout, create)
  }
  let isPrepared = false
  const prepare = Effect.suspend(() =>
    isPrepared ? Effect.void : Effect.map(preparations[database], () => {
      isPrepared = true
    })
  )
  return <A>(effect: Effect.Effect<A, string>): Effect.Effect<A, string> =>
    Effect.zipRight(prepare, effect).pipe(
      // If several processes create it at once, all but one may fail.
      Effect.catchIf(
        (code) => missingTable.has(code),
        () => Effect.zipRight(Effect.ignore(create), effect)
      )
    )
}

/** The codes of PostgreSQL and MySQL for a missing table. */
const missingTable = new Set(["42P01", "ER_NO_SUCH_TABLE"])

const databaseOf = (sql: SqlClient.SqlClient): Effect.Effect<Database, ConfigurationError> =>
  sql.onDialectOrElse({
    pg: () => Effect.succeed("pg" as const),
    mysql: () => Effect.succeed("mysql" as const),
    sqlite: () => Effect.succeed("sqlite" as const),
    orElse: () =>
      new ConfigurationError({
        option: "SqlTokenStore.client",
        reason: "must be a client for PostgreSQL, MySQL, MariaDB or SQLite"
      })
  })

const tenYears = 10 * 365 * 24 * 60 * 60_000

/** Ten years at most, which every database can add to the present. */
const millisOf = (duration: Duration.DurationInput): number =>
  Math.min(Math.max(0, Math.ceil(Duration.toMillis(duration))), tenYears)

/** Encodes as ASCII without spaces, which every database keeps and compares as it is. Leaves sealed entries as is. */
const encode = (text: string): string =>
  encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\uFFFD"))

const decode = Option.liftThrowable(decodeURIComponent)

/** The name of the row of an entry. */
const entryOf = (key: string): string => `entry:${encode(key)}`
