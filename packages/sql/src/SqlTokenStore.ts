/**
 * A `TokenStore` in a table of PostgreSQL, MySQL, MariaDB or SQLite, through `@effect/sql`. The entries that it stores
 * are already sealed.
 *
 * @since 1.0.0
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import {
  type Lease,
  type Service,
  TokenStore,
  TokenStoreError
} from "@store-api/core/TokenStore"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"

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
  `CREATE TABLE IF NOT EXISTS ${table} ${dialects[database].columns}`

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
    Effect.flatMap(tableOf(options), (table) => makeLazy(client, table))
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

const fromClient = (table: string, hasOwnClient: boolean, lastFailure: LastFailure) =>
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

/** Why the last attempt of an operation failed, or none if it succeeded. */
type LastFailure = Ref.Ref<Option.Option<string>>

const noFailure = (): LastFailure => Ref.unsafeMake(Option.none())

type Operation = TokenStoreError["operation"]

/** One row per entry and per lease. Only `clean` deletes rows, because deletions can cause deadlocks in InnoDB. */
const storeOf = (connected: Connected): Service => {
  const { database, lastFailure, table } = connected
  const statements = statementsOf(database, table)
  const { changes, execute, rows } = executorOf(connected)
  const prepared = preparing(connected, execute)

  /** Runs statements about one row, whose name must fit into its column. */
  const run = <A>(operation: Operation, name: string, effect: Effect.Effect<A, string>) =>
    name.length > 255
      ? new TokenStoreError({ operation, reason: "key too long" })
      : retry(operation, prepared(effect), lastFailure)

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
  const outside = (context: Context.Context<never>) =>
    // No type says that a transaction is in the context.
    Context.omit(SqlClient.TransactionConnection)(
      context as Context.Context<SqlClient.TransactionConnection>
    )
  const attempt = <A>(effect: Effect.Effect<A, unknown>) =>
    Effect.mapError(Effect.mapInputContext(effect, outside), codeOf)
  const statement = (text: string, values: Values) =>
    sql.unsafe(database === "pg" ? numbered(text) : text, [...values])

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
const numbered = (text: string): string => {
  let index = 0
  return text.replace(/\?/g, () => `$${++index}`)
}

/**
 * Creates the table if it is missing. PostgreSQL asks for the right to create a table even if it exists, so it gets
 * this only when the table is missing. The client of SQLite does not prepare a failed statement again for ten minutes,
 * so the table has to exist before.
 */
const preparing = ({ database, hasOwnClient, table }: Connected, execute: Execute) => {
  const create = execute(createTable(database, table))
  const busyTimeout = hasOwnClient ? execute("PRAGMA busy_timeout = 50") : Effect.void
  let isPrepared = database !== "sqlite"
  const prepare = Effect.suspend(() =>
    isPrepared ? Effect.void : Effect.map(Effect.zipRight(busyTimeout, create), () => {
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

const statementsOf = (database: Database, table: string) => {
  const { later, now, remaining, replace, yesterday } = dialects[database]
  const isStored = `name = ? AND value = ? AND expires > ${now}`
  const row = `INTO ${table} (name, value, expires)`
  const values = `VALUES (?, ?, ${later})`
  return {
    get: `SELECT value, ${remaining} FROM ${table} WHERE name = ? AND expires > ${now}`,
    put: `INSERT ${row} ${values} ${replace}`,
    expire: `UPDATE ${table} SET expires = ${now} WHERE ${isStored}`,
    extend: `UPDATE ${table} SET expires = ${later} WHERE ${isStored}`,
    // `ON CONFLICT` alone would lock the row of a lease that is held, and PostgreSQL would write to its disk for that.
    lease: `INSERT ${row} SELECT ?, ?, ${later} ` +
      `WHERE NOT EXISTS (SELECT 1 FROM ${table} WHERE name = ? AND expires > ${now}) ` +
      `${replace} WHERE ${table}.expires <= ${now}`,
    // `ON DUPLICATE KEY UPDATE` changes the row in any case, so MySQL needs two statements.
    takeOver:
      `UPDATE ${table} SET value = ?, expires = ${later} WHERE name = ? AND expires <= ${now}`,
    insertNew: `INSERT IGNORE ${row} ${values}`,
    findOld: `SELECT name FROM ${table} WHERE expires < ${yesterday}`,
    deleteOld: `DELETE FROM ${table} WHERE name = ? AND expires < ${yesterday}`
  }
}

/** Texts in one dialect. `?` is a value. `now` and `later` are times of the database. */
interface Dialect {
  readonly columns: string
  readonly now: string
  /** With one value, in milliseconds. */
  readonly later: string
  /** The milliseconds until a row expires. */
  readonly remaining: string
  readonly yesterday: string
  /** Assigns the inserted values to the row that is in the way. */
  readonly replace: string
}

const sqliteNow = "(julianday('now') - 2440587.5) * 86400000"

const replaceOnConflict =
  "ON CONFLICT (name) DO UPDATE SET value = excluded.value, expires = excluded.expires"

const dialects: Record<Database, Dialect> = {
  pg: {
    columns: "(name text PRIMARY KEY, value text NOT NULL, expires timestamptz NOT NULL)",
    // `now()` is the start of the transaction.
    now: "clock_timestamp()",
    later: "clock_timestamp() + CAST(? AS double precision) * interval '1 millisecond'",
    remaining: "extract(epoch from expires - clock_timestamp()) * 1000",
    yesterday: "clock_timestamp() - interval '1 day'",
    replace: replaceOnConflict
  },
  mysql: {
    // Other collations ignore spaces at the end, and a TEXT is one byte too short.
    columns: "(name VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, " +
      "value MEDIUMTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL, expires DATETIME(6) NOT NULL) ENGINE = InnoDB",
    // `NOW` follows the time zone of the session, and summer time.
    now: "UTC_TIMESTAMP(6)",
    later: "UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND",
    remaining: "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires) / 1000",
    yesterday: "UTC_TIMESTAMP(6) - INTERVAL 1 DAY",
    replace: "ON DUPLICATE KEY UPDATE value = VALUES(value), expires = VALUES(expires)"
  },
  sqlite: {
    columns: "(name TEXT PRIMARY KEY, value TEXT NOT NULL, expires REAL NOT NULL)",
    now: sqliteNow,
    later: `${sqliteNow} + ?`,
    remaining: `expires - ${sqliteNow}`,
    yesterday: `${sqliteNow} - 86400000`,
    replace: replaceOnConflict
  }
}

/** Creates the client in the background, and again in a later operation if that failed. */
const makeLazy = <E>(
  client: Layer.Layer<SqlClient.SqlClient, E>,
  table: string
): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.gen(function*() {
    const context = yield* Effect.context<never>()
    const fibers = yield* Scope.make()
    const lastFailure = noFailure()
    let building: Deferred.Deferred<Service, E | ConfigurationError> | undefined
    let scope: Scope.CloseableScope | undefined
    yield* Effect.addFinalizer((exit) =>
      Effect.gen(function*() {
        // Does not wait, because a client that connects to an unresponsive server cannot be interrupted.
        yield* Effect.forkDaemon(Scope.close(fibers, exit))
        if (scope !== undefined) yield* Scope.close(scope, exit)
      })
    )

    const build = Effect.gen(function*() {
      const own = yield* Scope.make()
      scope = own
      return yield* Layer.buildWithScope(client, own).pipe(
        Effect.flatMap((built) => Effect.provide(fromClient(table, true, lastFailure), built)),
        Effect.onError((cause) => Scope.close(own, Exit.failCause(cause))),
        // The client belongs to the layer, so it must not inherit a transaction of the first caller.
        Effect.mapInputContext((_: Context.Context<never>) => context)
      )
    })

    /** Starts a build, unless there is one. */
    const start = Effect.uninterruptible(Effect.suspend(() => {
      if (building !== undefined) return Effect.succeed(building)
      const built = building = Deferred.unsafeMake<Service, E | ConfigurationError>(
        FiberId.none
      )
      const work = Effect.flatMap(
        Effect.exit(Effect.interruptible(build)),
        (exit) => Deferred.done(built, exit)
      )
      return Effect.as(Effect.forkIn(work, fibers), built)
    }))

    /** Returns the store once the client is built. A time limit of this operation does not stop the build. */
    const store = (operation: Operation): Effect.Effect<Service, TokenStoreError> =>
      Effect.flatMap(start, (built) =>
        Effect.catchAllCause(Deferred.await(built), (cause) => {
          if (building === built) building = undefined
          const error = Cause.squash(cause)
          return Effect.fail(
            error instanceof ConfigurationError ? "unsupported database" : codeOf(error)
          )
        })).pipe((attempt) => retry(operation, attempt, lastFailure))

    // So the time limit of the first operation usually does not include the connection.
    yield* Effect.forkScoped(Effect.interruptible(Effect.ignore(store("get"))))

    return TokenStore.of({
      get: (key) => Effect.flatMap(store("get"), (store) => store.get(key)),
      put: (key, entry, life) =>
        Effect.flatMap(store("put"), (store) => store.put(key, entry, life)),
      remove: (key, entry) =>
        Effect.flatMap(store("remove"), (store) => store.remove(key, entry)),
      lease: (key, duration) =>
        Effect.flatMap(store("lease"), (store) => store.lease(key, duration)),
      lastFailure: Ref.get(lastFailure)
    })
  })

/** The codes of PostgreSQL and MySQL for a missing table. */
const missingTable = new Set(["42P01", "ER_NO_SUCH_TABLE"])

const transient = new Set([
  // A deadlock, a conflict of transactions, or a locked file of SQLite: the statement had no effect.
  ...["40001", "40P01", "ER_LOCK_DEADLOCK", "ER_CHECKREAD", "SQLITE_BUSY"],
  // When a statement is interrupted as it ends, `PgClient` cancels the next one of its connection.
  "57014",
  // Other processes use all connections, usually only for a moment.
  ...["53300", "ER_CON_COUNT_ERROR", "ER_TOO_MANY_USER_CONNECTIONS"]
])

/** Waits between attempts without stopping other fibers, as the driver of SQLite would. */
const retry = <A>(
  operation: Operation,
  attempt: Effect.Effect<A, string>,
  lastFailure: LastFailure
): Effect.Effect<A, TokenStoreError> =>
  attempt.pipe(
    Effect.tapError((code) => Ref.set(lastFailure, Option.some(code))),
    Effect.retry({
      while: (code) => transient.has(code),
      schedule: Schedule.spaced("200 millis").pipe(
        Schedule.jittered,
        Schedule.upTo("30 seconds")
      )
    }),
    Effect.zipLeft(Ref.set(lastFailure, Option.none())),
    Effect.mapError((reason) => new TokenStoreError({ operation, reason }))
  )

/** Errors by their messages: drivers have no code for the last two, and several for the first. */
const known: ReadonlyArray<readonly [message: RegExp, reason: string]> = [
  [/database( table)? is locked/i, "SQLITE_BUSY"],
  [/timed? ?out/i, "no response in time"],
  [/connection (is |was )?(terminated|closed)/i, "connection closed"]
]

/** The driver's error in short: its code, because the rest can contain parameters. */
const codeOf = (error: unknown): string => {
  // A variable that the layer of the client reads is missing or invalid.
  if (Predicate.isTagged(error, "ConfigError")) return "unusable configuration"
  const causes = causesOf(error)
  const texts = causes.map((cause) => "message" in cause ? String(cause.message) : "")
  const codes = causes.map((cause) => "code" in cause ? String(cause.code) : "")
  return known.find(([message]) => texts.some((text) => message.test(text)))?.[1] ??
    codes.find((code) => /^[A-Z0-9_]+$/.test(code)) ??
    "unknown"
}

/** An error, its cause, the cause of that, and so on. */
const causesOf = (error: unknown): ReadonlyArray<object> =>
  Predicate.isObject(error)
    ? [error, ...causesOf(Predicate.hasProperty(error, "cause") ? error.cause : undefined)]
    : []

const longest = 10 * 365 * 24 * 60 * 60_000

/** Ten years at most, which every database can add to the present. */
const millisOf = (duration: Duration.DurationInput): number =>
  Math.min(Math.max(0, Math.ceil(Duration.toMillis(duration))), longest)

/** Encodes as ASCII without spaces, which every database keeps and compares as it is. Leaves sealed entries as is. */
const encode = (text: string): string =>
  encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\uFFFD"))

const decode = Option.liftThrowable(decodeURIComponent)

/** The name of the row of an entry. */
const entryOf = (key: string): string => `entry:${encode(key)}`
