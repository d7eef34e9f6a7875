/** The statements of the store, in the dialect of each database. */
export type Database = "pg" | "mysql" | "sqlite"

export const createTable = (database: Database, table: string): string =>
  `CREATE TABLE IF NOT EXISTS ${table} ${dialects[database].columns}`

export const statementsOf = (database: Database, table: string) => {
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
