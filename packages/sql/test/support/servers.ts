/** Databases: servers of PostgreSQL and MariaDB on loopback, and files of SQLite. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { SqlClient } from "@effect/sql"
import { freePort } from "@store-api/testing/loopback"
import { end, until } from "@store-api/testing/network"
import { Context, Effect, Exit, Layer, type Scope } from "effect"
import { clientAt, type Kind, kinds } from "./clients.js"

export interface Database {
  readonly url: string
  /** Stops the server as a crash does. `start` starts it on the same port and data. */
  readonly stop: Effect.Effect<void>
  readonly start: Effect.Effect<void>
  /** Stops all processes of the server with a signal, and continues them. */
  readonly pause: Effect.Effect<void>
  readonly resume: Effect.Effect<void>
  /** Runs statements over a new connection, as the superuser. Returns the rows of the last. */
  readonly query: (
    ...texts: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<unknown>>>
}

const debian = "/usr/lib/postgresql"

const folders = (existsSync(debian)
  ? readdirSync(debian).map((version) => join(debian, version, "bin"))
  : [])
  .concat((process.env["PATH"] ?? "").split(delimiter), "/usr/sbin")

/** The path of a program, which need not be in the PATH. */
const pathOf = (name: string) =>
  folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? name

const programs = { pg: "postgres", mysql: "mariadbd", sqlite: process.execPath }

const isMissing = (kind: Kind) => spawnSync(pathOf(programs[kind]), ["--version"]).status !== 0

/** Without Debian's `postgresql` and `mariadb-server`, their tests are skipped, except with `CI=true`. */
export const available = kinds.filter((kind) =>
  process.env["CI"] === "true" || !isMissing(kind)
)

for (const kind of kinds) {
  if (!available.includes(kind)) {
    console.warn(`There is no command ${programs[kind]}: tests that need it are skipped.`)
  }
}

const isRoot = process.getuid?.() === 0

/** PostgreSQL refuses to run as root. */
const postgres = () => {
  const [uid, gid] = ["-u", "-g"].map((flag) =>
    Number(spawnSync("id", [flag, "postgres"]).stdout)
  )
  return isRoot ? { uid, gid } : {}
}

const newFolder = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "sql-"))
    chmodSync(folder, 0o777)
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const isDone = <A>(effect: Effect.Effect<A>) => Effect.map(Effect.exit(effect), Exit.isSuccess)

const run = (program: string, parameters: ReadonlyArray<string>, options: object = {}) => {
  const { error, status, stderr } = spawnSync(pathOf(program), [...parameters], {
    encoding: "utf8",
    ...options
  })
  if (status !== 0) throw new Error(`${program} failed: ${error?.message ?? stderr}`)
}

interface Recipe {
  readonly url: (user: string, port: number) => string
  /** Creates the data, and returns how the server starts. */
  readonly install: (
    folder: string,
    port: number
  ) => { readonly command: ReadonlyArray<string>; readonly as?: object }
  /** Creates the user of the members, who has no special rights. */
  readonly prepare: ReadonlyArray<string>
  readonly admin: string
  /** The signal that ends the server without a farewell to its clients. */
  readonly crash: NodeJS.Signals
}

const recipes: Record<Exclude<Kind, "sqlite">, Recipe> = {
  pg: {
    url: (user, port) => `postgres://${user}@127.0.0.1:${port}/postgres`,
    install: (folder, port) => {
      const data = join(folder, "data")
      const as = { ...postgres(), cwd: folder }
      run(
        "initdb",
        ["-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"],
        as
      )
      const settings = [
        "listen_addresses=127.0.0.1",
        `unix_socket_directories=${folder}`,
        "fsync=off"
      ]
      return {
        command: [
          "-D",
          data,
          "-p",
          String(port),
          ...settings.flatMap((setting) => ["-c", setting])
        ],
        as
      }
    },
    prepare: ["CREATE ROLE member LOGIN", "GRANT ALL ON SCHEMA public TO member"],
    admin: "postgres",
    crash: "SIGQUIT"
  },
  mysql: {
    url: (user, port) => `mysql://${user}:password@127.0.0.1:${port}/tokens`,
    install: (folder, port) => {
      const data = `--datadir=${join(folder, "data")}`
      const user = isRoot ? ["--user=root"] : []
      // A server deletes the temporary tables of others in a folder that they share.
      const as = { env: { ...process.env, TMPDIR: folder } }
      const options = [
        "--no-defaults",
        data,
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        ...user
      ]
      run("mariadb-install-db", options, as)
      const file = join(folder, "init.sql")
      const admin = "admin@127.0.0.1"
      writeFileSync(
        file,
        [
          "CREATE DATABASE IF NOT EXISTS tokens",
          `CREATE USER IF NOT EXISTS ${admin} IDENTIFIED BY 'password'`,
          `GRANT ALL ON *.* TO ${admin} WITH GRANT OPTION`
        ].map((statement) => `${statement};\n`).join("")
      )
      return {
        as,
        command: ["--no-defaults", data, ...user, `--port=${port}`, "--bind-address=127.0.0.1"]
          .concat(
            `--socket=${join(folder, "socket")}`,
            `--pid-file=${join(folder, "pid")}`,
            `--init-file=${file}`
          )
          // Each commit survives the end of the process. With 0, a lease that was released could be held again.
          .concat("--innodb-flush-log-at-trx-commit=2", "--max-user-connections=1000")
      }
    },
    prepare: [
      "CREATE USER member@127.0.0.1 IDENTIFIED BY 'password'",
      "GRANT ALL ON tokens.* TO member@127.0.0.1"
    ],
    admin: "admin",
    crash: "SIGKILL"
  }
}

/** Runs statements over a new client. */
const queryAt = (url: string) => (...texts: ReadonlyArray<string>) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => Effect.forEach(texts, (text) => sql.unsafe(text).values)
  ).pipe(
    Effect.map((results) => results.at(-1) ?? []),
    Effect.provide(clientAt(url)),
    Effect.orDie
  )

/** Starts a server on a free port of loopback. It stops when the scope closes. */
const server = (kind: Exclude<Kind, "sqlite">): Effect.Effect<Database, never, Scope.Scope> =>
  Effect.gen(function*() {
    const [folder, port] = yield* Effect.all([newFolder, freePort])
    const { admin, crash, install, prepare, url } = recipes[kind]
    const query = queryAt(url(admin, port))
    const { as, command } = yield* Effect.sync(() => install(folder, port))
    let child: ChildProcess | undefined

    const stop = Effect.suspend(() => {
      // A stopped process does not handle its signal.
      signal("SIGCONT")
      return end(child, crash)
    })
    const start = Effect.suspend(() => {
      const server = spawn(pathOf(programs[kind]), [...command], { stdio: "ignore", ...as })
      child = server
      return until(
        `${programs[kind]} responds`,
        Effect.suspend(() =>
          server.exitCode === null
            ? isDone(query("SELECT 1"))
            : Effect.dieMessage(`the server ended: ${server.exitCode}`)
        )
      )
    })
    /** Also sends it to the processes that PostgreSQL starts for connections. */
    const signal = (name: NodeJS.Signals) => {
      if (child?.kill(name) !== true) return
      const { stdout } = spawnSync("pgrep", ["-P", String(child.pid)], { encoding: "utf8" })
      // One that has ended in the meantime does not matter.
      spawnSync("kill", [
        "-s",
        name.slice("SIG".length),
        ...stdout.split("\n").filter((line) => line !== "")
      ])
    }
    yield* Effect.acquireRelease(start, () => stop)
    yield* query(...prepare)
    return {
      url: url("member", port),
      stop,
      start,
      pause: Effect.sync(() => signal("SIGSTOP")),
      resume: Effect.sync(() => signal("SIGCONT")),
      query
    }
  })

/** A file of SQLite. It has no server; another writer locks it instead of a pause. */
const file: Effect.Effect<Database, never, Scope.Scope> = Effect.gen(function*() {
  const url = `sqlite:${join(yield* newFolder, "tokens.sqlite")}`
  const writer = Context.get(
    yield* Effect.orDie(Layer.build(clientAt(url))),
    SqlClient.SqlClient
  )
  const write = (text: string) => Effect.asVoid(Effect.orDie(writer.unsafe(text)))
  const [stop, start] = [Effect.void, Effect.void]
  return {
    url,
    stop,
    start,
    pause: write("BEGIN IMMEDIATE"),
    resume: write("ROLLBACK"),
    query: queryAt(url)
  }
})

export const database = (kind: Kind): Effect.Effect<Database, never, Scope.Scope> =>
  kind === "sqlite" ? file : server(kind)
