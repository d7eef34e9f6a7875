/** Fleets over each database, also while it is unavailable. */
import { assert, describe } from "@effect/vitest"
import { SqlTokenStore } from "@store-api/sql"
import * as Fleet from "@store-api/testing/fleet"
import { shared } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import type { Effect } from "effect"
import { clientAt, type Kind } from "./support/clients.js"
import { available, type Database, database } from "./support/servers.js"

const inProcess = Fleet.providers((url) => SqlTokenStore.layerLazy(clientAt(url)))

interface Row extends Pick<Fleet.Outage, "reason" | "when"> {
  readonly name: string
  readonly fault: (database: Database) => Effect.Effect<unknown>
  readonly end: (database: Database) => Effect.Effect<unknown>
}

const query = (...texts: ReadonlyArray<string>) => ({ query }: Database) => query(...texts)

const when = "from the start"

const pause = { fault: ({ pause }: Database) => pause, end: ({ resume }: Database) => resume }

const silent = { ...pause, name: "does not respond for a while", reason: "no response in time" }

const gone = {
  server: { reason: "ECONNREFUSED", fault: ({ stop }: Database) => stop, end: ({ start }: Database) => start },
  sqlite: {
    reason: "ERR_SQLITE_ERROR",
    fault: query("ALTER TABLE store_api_tokens RENAME TO gone"),
    end: query("ALTER TABLE gone RENAME TO store_api_tokens")
  }
}

const servers: ReadonlyArray<Row> = [
  { ...gone.server, name: "is down", when },
  silent,
  { ...silent, name: "does not respond from the start", when }
]

/** Open connections keep the setting. */
const disconnect = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'member'"

const faults: Record<Kind, ReadonlyArray<Row>> = {
  pg: [
    ...servers,
    {
      ...{ name: "accepts no more connections", reason: "53300", when },
      fault: query("ALTER ROLE member CONNECTION LIMIT 0"),
      end: query("ALTER ROLE member CONNECTION LIMIT -1")
    },
    {
      ...{ name: "only reads", reason: "25006", when },
      fault: query("ALTER ROLE member SET default_transaction_read_only = on"),
      end: query("ALTER ROLE member RESET default_transaction_read_only", disconnect)
    },
    {
      ...{ name: "grants no right to the table", reason: "42501" },
      fault: query("REVOKE ALL ON store_api_tokens FROM member"),
      end: query("GRANT ALL ON store_api_tokens TO member")
    },
    {
      ...{ name: "lacks the table, and grants no right to create it", reason: "42P01" },
      fault: query("DROP TABLE store_api_tokens", "REVOKE ALL ON SCHEMA public FROM member, public"),
      end: query("GRANT ALL ON SCHEMA public TO member")
    }
  ],
  mysql: [
    ...servers,
    {
      ...{ name: "only reads", reason: "ER_OPTION_PREVENTS_STATEMENT" },
      fault: query("SET GLOBAL read_only = 1"),
      end: query("SET GLOBAL read_only = 0")
    },
    {
      ...{ name: "grants no right to the tables", reason: "ER_DBACCESS_DENIED_ERROR", when },
      fault: query("REVOKE ALL ON tokens.* FROM member@127.0.0.1"),
      end: query("GRANT ALL ON tokens.* TO member@127.0.0.1")
    }
  ],
  sqlite: [
    { ...pause, name: "is locked by another process", reason: "SQLITE_BUSY" },
    { ...pause, name: "is locked by another process from the start", reason: "SQLITE_BUSY", when }
  ]
}

describe.each(available)("providers in one process, and %s", (kind) => {
  const running = shared(database(kind))

  test.live("six providers call for nine lifetimes, three of them without it: with it, one token request per lifetime", function*() {
    const made = yield* running
    const { end, fault, reason } = gone[kind === "sqlite" ? kind : "server"]
    yield* Fleet.lifetimes(
      (settings) => Fleet.share(inProcess, 6, made, settings),
      { fault: fault(made), end: end(made), reason }
    )
  })

  test.live("an endpoint repeats its token: six providers send at most three requests more than one", function*() {
    const store = yield* running
    const requests = (count: number) => Fleet.repeated((settings) => Fleet.share(inProcess, count, store, settings))
    const one = yield* requests(1)
    assert.isAbove(one, 3, "the endpoint repeats")
    assert.isAtMost(yield* requests(6), one + 3)
  })

  test.live.each(faults[kind])(
    "that $name: each member acquires a token and warns once, until all can share one",
    function*(row) {
      const made = yield* running
      yield* Fleet.outage(
        (settings) => inProcess(3, { ...settings, storeUrl: made.url }),
        { ...row, fault: row.fault(made), end: row.end(made) }
      )
    }
  )
})
