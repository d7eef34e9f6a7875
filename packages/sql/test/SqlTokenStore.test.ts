import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { rules } from "@store-api/core/TokenStoreContract"
import { SqlTokenStore } from "@store-api/sql"
import { entryOf } from "@store-api/testing/entryOf"
import { shared } from "@store-api/testing/loopback"
import { until } from "@store-api/testing/network"
import { works } from "@store-api/testing/redisServers"
import { renderings } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Option, Scope, Tracer } from "effect"
import { clientAt } from "./support/clients.js"
import { available, type Database, database } from "./support/servers.js"

const built = <E>(layer: Layer.Layer<TokenStore.TokenStore, E>) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, TokenStore.TokenStore))

/** A store with its own client. */
const lazily = (url: string, table?: string) =>
  built(SqlTokenStore.layerLazy(clientAt(url), { table }))

/** A store and the client that it uses. */
const withClient = (url: string) =>
  Effect.map(
    Layer.build(Layer.provideMerge(SqlTokenStore.layer(), clientAt(url))),
    (context) =>
      [
        Context.get(context, TokenStore.TokenStore),
        Context.get(context, SqlClient.SqlClient)
      ] as const
  )

const isHeld = (store: TokenStore.Service, key: string) =>
  Effect.map(store.lease(key, "1 minute"), Option.isNone)

/** All names in a table, whether they have expired or not. */
const names = ({ query }: Database, table: string) =>
  Effect.map(
    query(`SELECT name FROM ${table} ORDER BY name`),
    (rows) => rows.map(([name]) => String(name))
  )

/** How each operation fails: with its own name, and for this reason. */
const failures = (
  { get, lease, put, remove }: TokenStore.Service,
  reason: string,
  key = "key"
) =>
  Effect.gen(function*() {
    const all: ReadonlyArray<Effect.Effect<unknown, TokenStore.TokenStoreError>> = [
      get(key),
      put(key, "entry", 1)
    ]
    const failed = yield* Effect.forEach(
      [...all, remove(key, "entry"), lease(key, 1)],
      Effect.flip
    )
    deepStrictEqual(failed.map(({ operation }) => operation), [
      "get",
      "put",
      "remove",
      "lease"
    ])
    deepStrictEqual(new Set(failed.map(({ reason }) => reason)), new Set([reason]))
    return failed
  })

describe.each(available)("SqlTokenStore on %s", (kind) => {
  const running = shared(database(kind))
  const own = Effect.flatMap(running, ({ url }) => lazily(url))

  for (const { check, rule } of rules) {
    test.live(rule, function*() {
      yield* Effect.provide(
        check,
        SqlTokenStore.layerLazy(clientAt((yield* running).url), { table: "own_table" })
      )
    })
  }

  test.live("no statement takes part in a transaction of the caller", function*() {
    const [{ url }, elsewhere] = yield* Effect.all([running, database("sqlite")])
    const [other, [mine, own]] = yield* Effect.all([lazily(url), withClient(url)])
    const [, foreign] = yield* withClient(elsewhere.url)
    // A client of SQLite has one connection, for which a statement outside of its transaction would wait.
    for (const sql of kind === "sqlite" ? [foreign] : [own, foreign]) {
      const key = `transaction:${sql === own}`
      const rolledBack = Effect.gen(function*() {
        const lease = Option.getOrThrow(yield* mine.lease(key, "1 minute"))
        assert.isTrue(yield* lease.extend)
        yield* mine.put(key, "entry", "1 minute")
        deepStrictEqual([yield* isHeld(other, key), yield* entryOf(other, key)], [
          true,
          Option.some("entry")
        ])
        return yield* Effect.fail("rolled back")
      })
      deepStrictEqual(yield* Effect.flip(sql.withTransaction(rolledBack)), "rolled back")
      deepStrictEqual([yield* isHeld(other, key), yield* entryOf(other, key)], [
        true,
        Option.some("entry")
      ])
    }
  })

  test.live("a lease that is held costs no write", function*() {
    const made = yield* running
    const store = yield* lazily(made.url, "kept")
    deepStrictEqual([yield* isHeld(store, "new"), yield* isHeld(store, "new")], [false, true])
    // PostgreSQL writes the transaction that locks a row to its disk.
    if (kind === "pg") {
      deepStrictEqual(yield* made.query("SELECT DISTINCT xmax::text FROM kept"), [["0"]])
    }
  })

  test.live("a released lease stays in the table until a day after its expiry", function*() {
    const made = yield* running
    const store = yield* lazily(made.url, "released")
    yield* works(store)
    const hours =
      { pg: "interval '23 hours'", mysql: "INTERVAL 23 HOUR", sqlite: "23 * 3600000" }[kind]
    for (const left of [["entry:key", "lease:key"], ["entry:key"]]) {
      yield* made.query(
        `UPDATE released SET expires = expires - ${hours} WHERE name LIKE 'lease:%'`
      )
      yield* store.put("key", "entry", "1 minute")
      deepStrictEqual(yield* names(made, "released"), left)
    }
  })

  test.live("texts that differ by one character are different keys", function*() {
    const store = yield* own
    const keys = ["a", "a ", "A", "ä", "a\u0000", "日本語", "\ud800", "%61", "a'\"`?$1;--"]
    for (const key of keys) yield* store.put(key, `entry of ${key}`, "1 minute")
    for (const key of keys) {
      assert.isFalse(yield* store.remove(key, `entry of ${key} `))
      assert.isTrue(
        yield* store.remove(key, `entry of ${key.replace("\ud800", "\ufffd")}`),
        key
      )
    }
  })

  test.live("a key that does not fit into the table fails instead of becoming another key", function*() {
    const store = yield* own
    const key = (length: number) => "k".repeat(length - "entry:".length)
    yield* store.put(key(255), "entry", "1 minute")
    yield* failures(store, "key too long", key(256))
    deepStrictEqual(yield* entryOf(store, key(255)), Option.some("entry"))
  })

  test.live("a duration that is too long for the dates of the database counts as the longest one of its sign", function*() {
    const store = yield* own
    for (const life of [Infinity, 1e300, Number.MAX_SAFE_INTEGER, -1e300, -Infinity]) {
      yield* store.put("long", "entry", life)
      deepStrictEqual(
        yield* entryOf(store, "long"),
        life > 0 ? Option.some("entry") : Option.none()
      )
      assert.isTrue(Option.isSome(yield* store.lease(`long:${life}`, life)))
      assert.strictEqual(yield* isHeld(store, `long:${life}`), life > 0)
    }
  })

  test.live("the time zone of a connection does not change how long a lease lasts", function*() {
    const { query, url } = yield* running
    const store = yield* own
    yield* store.lease("zone", "1 hour")
    const change = (zone: string) => ({
      pg: `ALTER ROLE member SET timezone = '${zone}'`,
      mysql: `SET GLOBAL time_zone = '${zone}'`,
      sqlite: "SELECT 1"
    })
    for (const zone of ["+09:00", "-09:00"]) {
      yield* query(change(zone)[kind])
      const other = yield* lazily(url)
      assert.isTrue(yield* isHeld(other, "zone"), zone)
      yield* other.put("zone", "entry", "1 hour")
      deepStrictEqual(yield* entryOf(store, "zone"), Option.some("entry"))
      yield* store.lease(`zone:${zone}`, 10)
      yield* until("it has ended", Effect.map(isHeld(other, `zone:${zone}`), (held) => !held))
    }
  })

  test.live("twenty clients that create the table at the same time all succeed", function*() {
    const stores = yield* Effect.all(
      Effect.replicate(lazily((yield* running).url, "new_table"), 20)
    )
    const held = yield* Effect.forEach(stores, (store) => isHeld(store, "key"), {
      concurrency: "unbounded"
    })
    assert.lengthOf(held.filter((isHeld) => !isHeld), 1)
  })

  test.live("spans contain statements without parameters", function*() {
    const store = yield* own
    const seen: Array<Tracer.Span> = []
    const current = yield* Effect.tracer
    const tracer = Tracer.make({
      span: (...options) => {
        const span = current.span(...options)
        seen.push(span)
        return span
      },
      context: (run) => run()
    })
    yield* Effect.withTracer(store.put("a-traced-key", "a-traced-entry", "1 minute"), tracer)
    const text = JSON.stringify(seen.map(({ attributes, name }) => [name, ...attributes]))
    assert.include(text, "INSERT INTO store_api_tokens")
    assert.notInclude(text, "a-traced")
  })

  if (kind !== "sqlite") {
    test.live("the layer closes although its client is still connecting to a database that does not respond", function*() {
      const { pause, resume, url } = yield* running
      const scope = yield* Scope.make()
      const store = yield* Scope.extend(lazily(url), scope)
      yield* Effect.addFinalizer(() => resume)
      yield* pause
      const waiting = yield* Effect.fork(store.get("key"))
      yield* Effect.sleep("100 millis")
      yield* Fiber.interruptFork(waiting)
      yield* Scope.close(scope, Exit.void).pipe(
        // The client would give up after 10 seconds.
        Effect.timeoutFail({ duration: "8 seconds", onTimeout: () => "still open" })
      )
    })

    test.live("a lease behind a lock that nobody waits for any more lasts no longer than its duration", function*() {
      const { url } = yield* running
      const [store, [, other]] = yield* Effect.all([lazily(url, "locked"), withClient(url)])
      yield* store.lease("key", 1)
      yield* other.withTransaction(Effect.gen(function*() {
        yield* other.unsafe("SELECT name FROM locked FOR UPDATE")
        const abandoned = yield* Effect.fork(store.lease("key", "1 second"))
        yield* Effect.sleep("200 millis")
        yield* Fiber.interruptFork(abandoned)
      }))
      yield* until("the lease is free", Effect.map(isHeld(store, "key"), (held) => !held))
    })
  }

  if (kind === "mysql") {
    test.live("a lease is granted once, whichever rows the client counts", function*() {
      const { url } = yield* running
      for (const flags of ["FOUND_ROWS", "-FOUND_ROWS"]) {
        yield* works(yield* lazily(`${url}?flags=${flags}`), flags)
      }
    })
  }
})

/** The longest time in milliseconds for which the event loop stands still during an effect. */
const longestStop = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const times = [performance.now()]
    const timer = setInterval(() => times.push(performance.now()), 5)
    yield* effect
    clearInterval(timer)
    return Math.max(...times.slice(1).map((time, index) => time - (times[index] ?? NaN)))
  })

/** How long the store with this client stops the event loop while another process writes for two seconds. */
const stopOf = (client: "own" | "given") =>
  Effect.gen(function*() {
    const { url } = yield* database("sqlite")
    const [own, [given, sql], [, writer]] = yield* Effect.all([
      lazily(url),
      withClient(url),
      withClient(url)
    ])
    yield* sql.unsafe("PRAGMA busy_timeout = 1000")
    yield* Effect.all([
      own.put("key", "entry", "1 minute"),
      given.put("key", "entry", "1 minute")
    ])
    const begun = yield* Deferred.make<void>()
    const write = writer.unsafe("UPDATE store_api_tokens SET value = value")
    const begin = Effect.zipRight(write, Deferred.succeed(begun, undefined))
    yield* Effect.fork(
      writer.withTransaction(Effect.zipRight(begin, Effect.sleep("2 seconds")))
    )
    yield* Deferred.await(begun)
    const stop = yield* longestStop(
      (client === "own" ? own : given).put("key", "another", "1 minute")
    )
    deepStrictEqual(yield* entryOf(own, "key"), Option.some("another"))
    return stop
  })

test.live("the store's own client does not stop the event loop for long while another process writes", function*() {
  // The default of SQLite is one stop of 5 seconds.
  assert.isBelow(yield* stopOf("own"), 4000)
})

test.live("a given client stops the event loop while another process writes", function*() {
  assert.isAbove(yield* stopOf("given"), 900)
})

/** A store in a folder that is missing until `makeFolder`, and the spans in which its client was built. */
const inMissingFolder = Effect.gen(function*() {
  const { url } = yield* database("sqlite")
  const spans: Array<Option.Option<unknown>> = []
  const note = Layer.effectDiscard(
    Effect.map(Effect.option(Effect.currentSpan), (span) => spans.push(span))
  )
  const client = Layer.provide(
    clientAt(url.replace("tokens.sqlite", "new/tokens.sqlite")),
    note
  )
  const store = yield* built(SqlTokenStore.layerLazy(client))
  const makeFolder = Effect.sync(() =>
    mkdirSync(dirname(url.slice("sqlite:".length)) + "/new")
  )
  return { makeFolder, spans, store }
})

test.live("operations fail until the folder of the file exists", function*() {
  const { makeFolder, store } = yield* inMissingFolder
  for (const _ of [1, 2]) {
    assert.strictEqual((yield* Effect.flip(store.get("key"))).reason, "SQLITE_CANTOPEN")
  }
  yield* makeFolder
  yield* works(store)
})

test.live("no build of a client is a part of an operation", function*() {
  const { makeFolder, spans, store } = yield* inMissingFolder
  yield* Effect.withSpan(Effect.flip(store.get("key")), "operation")
  yield* makeFolder
  yield* Effect.withSpan(works(store), "operation")
  deepStrictEqual(new Set(spans.map(Option.isNone)), new Set([true]))
})

/** The statements of the clients that `playing` returns. */
const executed: Array<string> = []

/** A store over a client whose statements end like this, one after the other. The last one repeats. */
const playing = (
  dialect: string,
  ...results: ReadonlyArray<Effect.Effect<unknown, unknown>>
) => {
  const next = [...results]
  const result = Effect.suspend(() =>
    (next.length > 1 ? next.shift() : next[0]) ?? Effect.void
  )
  const client = {
    onDialectOrElse: (of: Record<string, () => unknown>) => (of[dialect] ?? of["orElse"])?.(),
    unsafe: (text: string) => {
      const executing = Effect.zipRight(Effect.sync(() => executed.push(text)), result)
      return { raw: executing, values: executing }
    },
    // Only Effect 4 has it.
    transactionService: { key: "transaction" }
  } as unknown as SqlClient.SqlClient // the store uses only these
  return Layer.succeed(SqlClient.SqlClient, client)
}

/** Gets the entry of `playing`. This is the last failure of the store until it has the entry. */
const isLastFailure = (
  { get, lastFailure = Effect.succeedNone }: TokenStore.Service,
  code: string
) =>
  Effect.gen(function*() {
    const getting = yield* Effect.fork(get("key"))
    yield* until("an attempt has failed", Effect.map(lastFailure, Option.contains(code)))
    deepStrictEqual(
      yield* Fiber.join(getting),
      Option.some({ entry: "an entry", remaining: 1000 })
    )
    deepStrictEqual(yield* lastFailure, Option.none())
  })

test.live.each<[remaining: unknown, expected: number | undefined]>([
  [60_000, 60_000],
  ["59999.5000", 59_999.5],
  [60_000n, 60_000],
  [0, undefined],
  ["-0.1", undefined],
  [null, undefined],
  ["NaN", undefined]
])(
  "an entry of which the database returns that %s milliseconds remain is valid for %s",
  function*([remaining, expected]) {
    const client = playing("pg", Effect.succeed([["an%20entry", remaining]]))
    const { get } = yield* built(Layer.provide(SqlTokenStore.layer(), client))
    deepStrictEqual(
      Option.map(yield* get("key"), (found) => found.remaining),
      Option.fromNullable(expected)
    )
  }
)

test.live("an entry whose text the store did not write is a miss", function*() {
  const client = playing("pg", Effect.succeed([["100%", 60_000]]))
  deepStrictEqual(
    yield* (yield* built(Layer.provide(SqlTokenStore.layer(), client))).get("key"),
    Option.none()
  )
})

test.live.each<[dialect: string, code: string, error: unknown]>([
  ["pg", "40001", { code: "40001" }],
  ["pg", "40P01", { code: "40P01" }],
  ["pg", "57014", { code: "57014" }],
  ["mysql", "ER_LOCK_DEADLOCK", { code: "ER_LOCK_DEADLOCK" }],
  ["mysql", "ER_CHECKREAD", { code: "ER_CHECKREAD" }],
  ["pg", "SQLITE_BUSY", { code: "SQLITE_BUSY_SNAPSHOT", message: "database is locked" }],
  ["pg", "SQLITE_BUSY", { code: "ERR_SQLITE_ERROR", message: "database is locked" }]
])(
  "a statement that fails on %s with %s is repeated with its code as the last failure",
  function*([dialect, code, error]) {
    const failed = Effect.fail({ cause: error })
    const client = () =>
      playing(dialect, failed, failed, Effect.succeed([["an%20entry", 1000]]))
    for (
      const layer of [
        Layer.provide(SqlTokenStore.layer(), client()),
        SqlTokenStore.layerLazy(client())
      ]
    ) {
      yield* isLastFailure(yield* built(layer), code)
    }
  }
)

test.live("a failure to build the client is the last failure until the build succeeds", function*() {
  let builds = 0
  const client = Layer.unwrapEffect(Effect.suspend(() =>
    builds++ < 2
      ? Effect.fail({ cause: { code: "53300" } })
      : Effect.succeed(playing("pg", Effect.succeed([["an%20entry", 1000]])))
  ))
  yield* isLastFailure(yield* built(SqlTokenStore.layerLazy(client)), "53300")
})

test.live.each<[reason: string, error: unknown]>([
  ["23505", {
    cause: { code: "23505", detail: "Key (name)=(an-invented-key) already exists." }
  }],
  ["ECONNREFUSED", {
    cause: { cause: { code: "ECONNREFUSED", message: "an-invented-host" } }
  }],
  ["SQLITE_FULL", { cause: { code: "SQLITE_FULL" } }],
  ["unknown", { cause: { code: "AN-invented-CODE", errno: 7 } }],
  ["unknown", { cause: new Error("an-invented-password") }],
  ["unknown", "an-invented-text"],
  ["no response in time", { cause: new Error("Connection timed out: an-invented-host") }],
  ["no response in time", { cause: new Error("timeout exceeded: an-invented-host") }],
  ["connection closed", {
    cause: new Error("Connection terminated unexpectedly: an-invented-host")
  }],
  ["unusable configuration", {
    _tag: "ConfigError",
    message: "Missing data at AN_INVENTED_VARIABLE: invented"
  }],
  ["42P01", { cause: { code: "42P01" } }]
])(
  "a failed statement has the reason %s without any other part of the driver's error",
  function*([reason, error]) {
    const failed = Effect.fail(error)
    const client = () =>
      playing(
        "pg",
        failed,
        reason === "42P01" ? Effect.fail("an-invented-right") : failed,
        failed
      )
    const layers = [client(), Layer.effect(SqlClient.SqlClient, failed)].map((of) =>
      SqlTokenStore.layerLazy(of)
    )
    for (const layer of [...layers, Layer.provide(SqlTokenStore.layer(), client())]) {
      const failed = yield* failures(yield* built(layer), reason)
      for (const failure of failed) assert.notInclude(renderings(failure), "invented")
    }
    const leased = yield* built(
      Layer.provide(SqlTokenStore.layer(), playing("pg", Effect.succeed([[1]]), failed))
    )
    const { extend, release } = Option.getOrThrow(yield* leased.lease("key", 1))
    const operations = [
      (yield* Effect.flip(extend)).operation,
      (yield* Effect.flip(release)).operation
    ]
    deepStrictEqual(operations, ["extend", "release"])
  }
)

/** Tells when a client was built, was closed, or was interrupted while it was built. */
const recordingClients = () => {
  const events: Array<string> = []
  const add = (event: string) => Effect.sync(() => events.push(event))
  const closing = Layer.scopedDiscard(Effect.acquireRelease(add("built"), () => add("closed")))
  return {
    events,
    working: Layer.merge(playing("pg", Effect.succeed([])), closing),
    endless: Layer.effect(
      SqlClient.SqlClient,
      Effect.zipRight(
        add("started"),
        Effect.onInterrupt(Effect.never, () => add("stopped"))
      )
    )
  }
}

test.live("layerLazy builds its client once, before the first operation", function*() {
  const { events, working } = recordingClients()
  const store = yield* built(SqlTokenStore.layerLazy(working))
  yield* until("it is built", Effect.sync(() => events.length === 1))
  yield* Effect.all(Effect.replicate(store.get("key"), 50), { concurrency: "unbounded" })
  deepStrictEqual(events, ["built"])
})

test.live("closing the scope of layerLazy closes its client", function*() {
  const { events, working } = recordingClients()
  const scope = yield* Scope.make()
  yield* Scope.extend(built(SqlTokenStore.layerLazy(working)), scope)
  yield* until("it is built", Effect.sync(() => events.length === 1))
  yield* Scope.close(scope, Exit.void)
  yield* until("it is closed", Effect.sync(() => events.length === 2))
  deepStrictEqual(events, ["built", "closed"])
})

test.live("closing the scope of layerLazy ends the build of its client", function*() {
  const { endless, events } = recordingClients()
  const scope = yield* Scope.make()
  yield* Scope.extend(built(SqlTokenStore.layerLazy(endless)), scope)
  yield* until("it has started", Effect.sync(() => events.length === 1))
  yield* Scope.close(scope, Exit.void)
  yield* until("it has ended", Effect.sync(() => events.length === 2))
  deepStrictEqual(events, ["started", "stopped"])
})

test.live("layerLazy goes on building its client when the operation that waits for it is interrupted", function*() {
  let builds = 0
  const connected = yield* Deferred.make<void>()
  const slow = Layer.unwrapEffect(Effect.suspend(() => {
    builds++
    return Effect.as(Deferred.await(connected), playing("pg", Effect.succeed([])))
  }))
  const store = yield* built(SqlTokenStore.layerLazy(slow))
  const abandoned = yield* Effect.fork(store.get("key"))
  yield* until("it is being built", Effect.sync(() => builds === 1))
  yield* Fiber.interrupt(abandoned)
  yield* Deferred.succeed(connected, undefined)
  deepStrictEqual(yield* store.get("key"), Option.none())
  assert.strictEqual(builds, 1)
})

test.live("layerLazy builds its client once more for all operations after a build that failed", function*() {
  let builds = 0
  const failing = Layer.effect(
    SqlClient.SqlClient,
    Effect.suspend(() => {
      builds++
      return Effect.zipRight(Effect.sleep("20 millis"), Effect.fail("an error"))
    })
  )
  const store = yield* built(SqlTokenStore.layerLazy(failing))
  const attempt = Effect.all(Effect.replicate(Effect.flip(store.get("key")), 50), {
    concurrency: "unbounded"
  })
  yield* attempt
  assert.strictEqual(builds, 1)
  yield* attempt
  assert.strictEqual(builds, 2)
})

/** The first words of the statements for two operations of a store over SQLite. */
const wordsOfTwo = (store: Layer.Layer<TokenStore.TokenStore, unknown>) =>
  Effect.gen(function*() {
    executed.splice(0)
    const { get } = yield* built(store)
    yield* Effect.zipRight(get("key"), get("key"))
    return executed.map((text) => text.split(" ")[0])
  })

const sqlite = playing("sqlite", Effect.succeed([]))

test.live("SqlTokenStore creates the table of SQLite once", function*() {
  deepStrictEqual(yield* wordsOfTwo(Layer.provide(SqlTokenStore.layer(), sqlite)), [
    "CREATE",
    "SELECT",
    "SELECT"
  ])
})

test.live("SqlTokenStore sets a busy timeout for its own client of SQLite", function*() {
  deepStrictEqual(yield* wordsOfTwo(SqlTokenStore.layerLazy(sqlite)), [
    "PRAGMA",
    "CREATE",
    "SELECT",
    "SELECT"
  ])
})

test.live.each(["mssql", "clickhouse"])(
  "SqlTokenStore refuses a client for %s",
  function*(dialect) {
    const { message } = yield* Effect.flip(
      built(Layer.provide(SqlTokenStore.layer(), playing(dialect)))
    )
    assert.match(message, /SqlTokenStore\.client.* must be a client/)
  }
)

test.live("layerLazy closes a client that it refuses", function*() {
  let open = 0
  const counter = Effect.acquireRelease(
    Effect.sync(() => open++),
    () => Effect.sync(() => open--)
  )
  const client = Layer.merge(playing("mssql"), Layer.scopedDiscard(counter))
  yield* failures(yield* built(SqlTokenStore.layerLazy(client)), "unsupported database")
  assert.strictEqual(open, 0)
})

test.live("SqlTokenStore takes a table only by a name that needs no quotes", function*() {
  const client = playing("pg", Effect.succeed([]))
  for (const table of ["tokens", "_Tokens1", "my_schema.tokens", "t".repeat(63)]) {
    yield* built(SqlTokenStore.layerLazy(client, { table }))
  }
  for (
    const table of [
      "",
      "my tokens",
      "1tokens",
      "a.b.c",
      "\"a\"",
      "a;DROP TABLE b",
      "a--",
      "t".repeat(64)
    ]
  ) {
    const layers = [
      Layer.provide(SqlTokenStore.layer({ table }), client),
      SqlTokenStore.layerLazy(client, { table })
    ]
    for (const layer of layers) {
      assert.match(
        (yield* Effect.flip(built(layer))).message,
        /Store\.table.* must consist of/
      )
    }
  }
})
