/** Fleets over each database, also while it is unavailable or has too few connections. */
import { assert, describe } from "@effect/vitest"
import { TokenStore } from "@store-api/core"
import { SqlTokenStore } from "@store-api/sql"
import * as Fleet from "@store-api/testing/fleet"
import { shared } from "@store-api/testing/loopback"
import type { Settings, StoreAt } from "@store-api/testing/member"
import { test } from "@store-api/testing/test"
import { Clock, Context, Effect, Layer, Option } from "effect"
import { clientAt, type Kind } from "./support/clients.js"
import { available, type Database, database } from "./support/servers.js"

const storeAt: StoreAt = (url) => SqlTokenStore.layerLazy(clientAt(url))

const program = new URL("./child/member.ts", import.meta.url)

type Row =
  & { readonly name: string }
  & Pick<Fleet.Outage, "reason" | "when">
  & ReturnType<typeof by>

const by = (faults: string | ReadonlyArray<string>, ...ends: ReadonlyArray<string>) => ({
  fault: ({ query }: Database): Effect.Effect<unknown> => query(...[faults].flat()),
  end: ({ query }: Database): Effect.Effect<unknown> => query(...ends)
})

const when = "from the start"
const stop = { fault: ({ stop }: Database) => stop, end: ({ start }: Database) => start }
const pause = { fault: ({ pause }: Database) => pause, end: ({ resume }: Database) => resume }
const silent = {
  ...pause,
  name: "does not respond for a while",
  reason: "no response in time"
}

const servers = [
  { ...stop, name: "is down", reason: "ECONNREFUSED", when },
  silent,
  { ...silent, name: "does not respond from the start", when }
] as const

const readOnly = "default_transaction_read_only"
/** Open connections keep the setting. */
const disconnect =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'member'"
const full =
  "CREATE TRIGGER disk BEFORE INSERT ON store_api_tokens BEGIN SELECT RAISE(ABORT, 'is full'); END"

/** The first of each kind of database makes all operations fail at once. */
const faults: Record<Kind, readonly [Row, ...ReadonlyArray<Row>]> = {
  pg: [
    ...servers,
    {
      name: "accepts no more connections",
      reason: "53300",
      when,
      ...by("ALTER ROLE member CONNECTION LIMIT 0", "ALTER ROLE member CONNECTION LIMIT -1")
    },
    {
      name: "only reads",
      reason: "25006",
      when,
      ...by(
        `ALTER ROLE member SET ${readOnly} = on`,
        `ALTER ROLE member RESET ${readOnly}`,
        disconnect
      )
    },
    {
      name: "grants no right to the table",
      reason: "42501",
      ...by(
        "REVOKE ALL ON store_api_tokens FROM member",
        "GRANT ALL ON store_api_tokens TO member"
      )
    },
    {
      name: "lacks the table, and grants no right to create it",
      reason: "42P01",
      ...by(
        ["DROP TABLE store_api_tokens", "REVOKE ALL ON SCHEMA public FROM member, public"],
        "GRANT ALL ON SCHEMA public TO member"
      )
    }
  ],
  mysql: [
    ...servers,
    {
      name: "accepts no more connections",
      reason: "ER_TOO_MANY_USER_CONNECTIONS",
      when,
      ...by("SET GLOBAL max_user_connections = -1", "SET GLOBAL max_user_connections = 1000")
    },
    {
      name: "only reads",
      reason: "ER_OPTION_PREVENTS_STATEMENT",
      ...by("SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0")
    },
    {
      name: "grants no right to the tables",
      reason: "ER_DBACCESS_DENIED_ERROR",
      when,
      ...by(
        "REVOKE ALL ON tokens.* FROM member@127.0.0.1",
        "GRANT ALL ON tokens.* TO member@127.0.0.1"
      )
    }
  ],
  sqlite: [
    {
      name: "lacks the table",
      reason: "ERR_SQLITE_ERROR",
      ...by(
        "ALTER TABLE store_api_tokens RENAME TO gone",
        "ALTER TABLE gone RENAME TO store_api_tokens"
      )
    },
    { name: "is full", reason: "ERR_SQLITE_ERROR", ...by(full, "DROP TRIGGER disk") },
    { ...pause, name: "is locked by another process", reason: "SQLITE_BUSY" },
    {
      ...pause,
      name: "is locked by another process from the start",
      reason: "SQLITE_BUSY",
      when
    }
  ]
}

describe.each(available)("a fleet and %s", (kind) => {
  const running = shared(database(kind))
  const processes = shared(Fleet.processes(program, 6))
  const started = Effect.map(Effect.all([processes, running]), ([processes, made]) => ({
    made,
    start: (settings: Settings, count = 6) =>
      Fleet.inThese(processes)(count, { ...settings, storeUrl: made.url })
  }))

  describe("a database that fails for three of nine lifetimes", () => {
    Fleet.testLifetimes(
      Effect.map(started, ({ made, start }) => {
        const [{ end, fault, reason }] = faults[kind]
        // The timers of its client use the real clock.
        const pause = Effect.withClock(Effect.sleep("10 seconds"), Clock.make())
        return {
          start,
          outage: {
            fault: Effect.zipRight(fault(made), pause),
            end: end(made),
            reason
          }
        }
      })
    )
  })

  test.live("an endpoint repeats its token: six processes send at most three requests more than one", function*() {
    const { start } = yield* started
    const one = yield* Fleet.repeated((settings) => start(settings, 1))
    assert.isAbove(one, 3, "the endpoint repeats")
    assert.isAtMost(yield* Fleet.repeated(start), one + 3)
  })

  test.live.each(faults[kind])(
    "each process acquires its own token with one warning until the database can be used: one that $name",
    function*(row) {
      const { made, start } = yield* started
      yield* Fleet.outage(start, { ...row, fault: row.fault(made), end: row.end(made) })
    }
  )

  test.live("the process that acquires the token is killed: the others wait for its lease, then one acquires", function*() {
    yield* Fleet.holderIsKilled(program, yield* running)
  })

  test.live("twenty clients race for a lease that half of them never release: no two hold it at once", function*() {
    const { url } = yield* running
    const duration = 300
    let free = 0
    let grants = 0
    const race = Effect.gen(function*() {
      const store = Context.get(yield* Layer.build(storeAt(url)), TokenStore.TokenStore)
      while (grants < 12) {
        const asked = performance.now()
        const lease = yield* store.lease("key", duration)
        if (Option.isNone(lease)) yield* Effect.sleep("20 millis")
        else {
          // A lease lasts from a moment between the question and the answer.
          assert.isAtLeast(performance.now(), free - 5)
          grants++
          free = asked + duration
          if (grants % 2 === 0) continue
          free = 0
          yield* lease.value.release
        }
      }
    })
    yield* Effect.all(Effect.replicate(race, 20), { concurrency: "unbounded" })
  })

  if (kind === "pg") {
    test.live("forty providers that start at once share a token over twenty connections, each with its own client", function*() {
      const [{ query, url }, { tokenRequests, settings }] = yield* Effect.all([
        database("pg"),
        Fleet.shop()
      ])
      yield* query("ALTER ROLE member CONNECTION LIMIT 20")
      // Enough for a busy machine.
      const patient = {
        ...settings,
        storeUrl: url,
        storeTimeout: "30 seconds",
        lease: "30 seconds"
      } as const
      const members = yield* Fleet.providers(storeAt)(40, patient)
      assert.isAtMost(yield* Fleet.tokens(members), 2)
      assert.isAtMost(yield* tokenRequests, 2)
      yield* Fleet.warnedOf(members)
    })
  }
})
