/** Databases: servers of PostgreSQL and MariaDB on loopback, and files of SQLite. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { SqlClient } from "@effect/sql"
import { freePort } from "@store-api/testing/loopback"
import { until } from "@store-api/testing/network"
import { Effect, type Scope } from "effect"
import { clientAt, type Kind, kinds } from "./clients.js"

export interface Database {
  readonly kind: Kind
  readonly url: string
  /** Stops the server as a crash does. `start` starts it on the same port and data. */
  readonly stop: Effect.Effect<void>
  readonly start: Effect.Effect<void>
  /** Stops all processes of the server with a signal, and continues them. */
  readonly pause: Effect.Effect<void>
  readonly resume: Effect.Effect<void>
  /** Runs one statement over a new connection, as the superuser. Returns the rows. */
  readonly query: (text: string) => Effect.Effect<ReadonlyArray<ReadonlyArray<unknown>>>
}

const debian = "/usr/lib/postgresql"

const folders = (existsSync(debian) ? readdirSync(debian).map((version) => join(debian, version, "bin")) : [])
  .concat((process.env["PATH"] ?? "").split(delimiter), "/usr/sbin")

/** The path of a program, which need not be in the PATH. */
const pathOf = (name: string) => folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? name

const programs = { pg: "postgres", mysql: "mariadbd", sqlite: process.execPath }

const isMissing = (kind: Kind) => spawnSync(pathOf(programs[kind]), ["--version"]).status !== 0

/** Without Debian's `postgresql` and `mariadb-server`, their tests are skipped, except with `CI=true`. */
export const available = kinds.filter((kind) => process.env["CI"] === "true" || !isMissing(kind))

for (const kind of kinds) {
  if (!available.includes(kind)) console.warn(`There is no command ${programs[kind]}: tests that need it are skipped.`)
}

const isRoot = process.getuid?.() === 0

/** PostgreSQL refuses to run as root. */
const postgres = () => {
  const [uid, gid] = ["-u", "-g"].map((flag) => Number(spawnSync("id", [flag, "postgres"]).stdout))
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

const run = (program: string, parameters: ReadonlyArray<string>, options: object = {}) => {
  const { error, status, stderr } = spawnSync(pathOf(program), [...parameters], { encoding: "utf8", ...options })
  if (status !== 0) throw new Error(`${program} failed: ${error?.message ?? stderr}`)
}

interface Recipe {
  readonly url: (port: number) => string
  /** Creates the data, and returns how the server starts. */
  readonly install: (folder: string, port: number) => { readonly command: ReadonlyArray<string>; readonly as?: object }
  /** The signal that ends the server without a farewell to its clients. */
  readonly crash: NodeJS.Signals
}

const recipes: Record<Exclude<Kind, "sqlite">, Recipe> = {
  pg: {
    url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
    install: (folder, port) => {
      const data = join(folder, "data")
      const as = { ...postgres(), cwd: folder }
      run("initdb", ["-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"], as)
      const settings = ["listen_addresses=127.0.0.1", `unix_socket_directories=${folder}`, "fsync=off"]
      return { command: ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])], as }
    },
    crash: "SIGQUIT"
  },
  mysql: {
    url: (port) => `mysql://admin:password@127.0.0.1:${port}/tokens`,
    install: (folder, port) => {
      const data = `--datadir=${join(folder, "data")}`
      const as = isRoot ? ["--user=root"] : []
      run("mariadb-install-db", [
        ...["--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db", ...as]
      ])
      const file = join(folder, "init.sql")
      const user = "admin@127.0.0.1"
      writeFileSync(
        file,
        [
          "CREATE DATABASE IF NOT EXISTS tokens",
          `CREATE USER IF NOT EXISTS ${user} IDENTIFIED BY 'password'`,
          `GRANT ALL ON *.* TO ${user} WITH GRANT OPTION`
        ].map((statement) => `${statement};\n`).join("")
      )
      return {
        command: ["--no-defaults", data, ...as, `--port=${port}`, "--bind-address=127.0.0.1"]
          .concat(`--socket=${join(folder, "socket")}`, `--pid-file=${join(folder, "pid")}`, `--init-file=${file}`)
          .concat("--innodb-flush-log-at-trx-commit=0")
      }
    },
    crash: "SIGKILL"
  }
}

/** Runs a statement over a new client. */
const queryAt = (url: string, text: string) =>
  Effect.provide(Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(text).values), clientAt(url))

/** Starts a server on a free port of loopback. It stops when the scope closes. */
const server = (kind: Exclude<Kind, "sqlite">): Effect.Effect<Database, never, Scope.Scope> =>
  Effect.gen(function*() {
    const [folder, port] = yield* Effect.all([newFolder, freePort])
    const { crash, install, url } = recipes[kind]
    const { as, command } = yield* Effect.sync(() => install(folder, port))
    let child: ChildProcess | undefined

    const stop = Effect.async<void>((resume) => {
      const running = child
      child = undefined
      if (running === undefined || running.exitCode !== null) {
        resume(Effect.void)
        return
      }
      running.once("exit", () => resume(Effect.void))
      // A stopped process does not handle its signal.
      signal("SIGCONT", running)
      running.kill(crash)
    })
    const start = Effect.suspend(() => {
      const server = spawn(pathOf(programs[kind]), [...command], { stdio: "ignore", ...as })
      child = server
      return until(
        `${programs[kind]} responds`,
        Effect.suspend(() =>
          server.exitCode === null
            ? Effect.isSuccess(queryAt(url(port), "SELECT 1"))
            : Effect.dieMessage(`the server ended: ${server.exitCode}`)
        )
      )
    })
    /** Also sends it to the processes that PostgreSQL starts for connections. */
    const signal = (name: NodeJS.Signals, process = child) => {
      if (process?.pid === undefined) return
      process.kill(name)
      const { stdout } = spawnSync("pgrep", ["-P", String(process.pid)], { encoding: "utf8" })
      for (const pid of stdout.split("\n").filter((line) => line !== "")) global.process.kill(Number(pid), name)
    }
    yield* Effect.acquireRelease(start, () => stop)
    return {
      kind,
      url: url(port),
      stop,
      start,
      pause: Effect.sync(() => signal("SIGSTOP")),
      resume: Effect.sync(() => signal("SIGCONT")),
      query: (text) => Effect.orDie(queryAt(url(port), text))
    }
  })

/** A file of SQLite. To stop it is to lock it. */
const file: Effect.Effect<Database, never, Scope.Scope> = Effect.map(newFolder, (folder) => {
  const url = `sqlite:${join(folder, "tokens.sqlite")}`
  const none = Effect.void
  return {
    kind: "sqlite",
    url,
    stop: none,
    start: none,
    pause: none,
    resume: none,
    query: (text) => Effect.orDie(queryAt(url, text))
  }
})

export const database = (kind: Kind): Effect.Effect<Database, never, Scope.Scope> =>
  kind === "sqlite" ? file : server(kind)
