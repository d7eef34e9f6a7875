import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createClient } from "@redis/client"
import { Effect, type Scope } from "effect"
import { filesOf, selfSigned } from "../../../platform-node/test/support/certificates.js"
import { shared } from "../../../platform-node/test/utils.js"
import { freePort } from "../../../platform-node/test/utils.js"

/** This variable replaces `redis-server` with another server with the same commands, such as Valkey. */
const program = process.env["REDIS_SERVER"] ?? "redis-server"

/** Without Debian's `redis-server`, its tests are skipped, except with `CI=true`. */
export const isLeftOut: boolean = spawnSync(program, ["--version"]).status !== 0 && process.env["CI"] !== "true"

if (isLeftOut) console.warn("There is no command redis-server: tests that need it are skipped.")

export interface RedisServer {
  readonly url: string
  readonly port: number
  /** Kills the process. `start` starts an empty one on the same port. */
  readonly stop: Effect.Effect<void>
  readonly start: Effect.Effect<void>
  /** Stops the process with a signal, and continues it. */
  readonly pause: Effect.Effect<void>
  readonly resume: Effect.Effect<void>
  /** Sends one command over a new connection. An error of Redis is a defect. */
  readonly command: (...words: ReadonlyArray<string>) => Effect.Effect<unknown>
  /** The number of connected clients, except those of this count. */
  readonly connected: Effect.Effect<number>
}

const responds = (port: number): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    const socket = connect({ host: "127.0.0.1", port })
    const end = (is: boolean) => {
      socket.destroy()
      resume(Effect.succeed(is))
    }
    socket.on("error", () => end(false))
    socket.once("close", () => end(false))
    // Another program that has this port may not respond.
    socket.setTimeout(1000, () => end(false))
    socket.once("connect", () => socket.write("PING\r\n"))
    // A server with a password responds with an error, which also shows that it runs.
    socket.once("data", () => end(true))
  })

type Words = ReadonlyArray<string>

// `createClient` defines a class with all commands unless its options equal those of the last call, which takes 15 ms.
// The store has other options, so the commands of the tests use duplicates of one client.
const template = createClient()

/** A client that is connected to this URL until its scope closes. */
export const clientAt = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(() => template.duplicate({ url }).on("error", () => undefined).connect()),
    (client) => Effect.sync(() => client.destroy())
  )

/** Opens a connection, uses it and closes it. */
const over =
  (url: string) => <A>(use: (command: (...words: Words) => Promise<unknown>) => Promise<A>): Effect.Effect<A> =>
    Effect.flatMap(
      clientAt(url),
      (client) => Effect.promise(() => use((...words) => client.sendCommand([...words])))
    ).pipe(Effect.scoped)

/** The lines of `CLIENT LIST`, without monitors and without the connections that request this list. */
const clientsIn = (list: string, asking: string) =>
  list.trim().split("\n").filter((line) =>
    !line.startsWith(`id=${asking} `) && !/ cmd=(client\|list|monitor) /.test(line)
  )

/** Starts a server on a free port of loopback, in memory only. It stops when the scope closes. */
export const redisServer = (
  parameters: ReadonlyArray<string> = [],
  password?: string,
  { configuration = "", at = freePort }: {
    readonly configuration?: string
    readonly at?: Effect.Effect<number>
  } = {}
): Effect.Effect<RedisServer, never, Scope.Scope> =>
  Effect.gen(function*() {
    const port = yield* at
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "redis-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    // A sentinel writes to its configuration file.
    const file = join(folder, "redis.conf")
    writeFileSync(file, configuration)
    let child: ChildProcess | undefined

    const stop = Effect.async<void>((resume) => {
      const running = child
      child = undefined
      if (running === undefined || running.exitCode !== null) {
        resume(Effect.void)
        return
      }
      running.once("exit", () => resume(Effect.void))
      running.kill("SIGKILL")
    })

    const start = Effect.suspend(() => {
      const server = spawn(
        program,
        [file, "--port", String(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
          .concat(password === undefined ? [] : ["--requirepass", password], parameters),
        { stdio: "ignore" }
      )
      child = server
      const isUp = Effect.suspend(() =>
        server.exitCode === null
          ? responds(port)
          : Effect.dieMessage(`redis-server ended: ${server.exitCode}`)
      )
      return Effect.repeat(Effect.zipLeft(isUp, Effect.sleep("10 millis")), { until: (is) => is })
    }).pipe(Effect.asVoid)

    const signal = (name: NodeJS.Signals) => Effect.sync(() => void child?.kill(name))

    yield* Effect.acquireRelease(start, () => stop)
    const connection = over(`redis://${password === undefined ? "" : `:${password}@`}127.0.0.1:${port}`)
    return {
      url: `redis://127.0.0.1:${port}`,
      port,
      stop,
      start,
      pause: signal("SIGSTOP"),
      resume: signal("SIGCONT"),
      command: (...words) => connection((command) => command(...words)),
      connected: connection(async (command) => {
        const own = await command("CLIENT", "ID")
        return clientsIn(String(await command("CLIENT", "LIST")), String(own)).length
      })
    }
  })

/** A server with a port for TLS, and one without it for the commands of the tests. */
export const redisOverTls = (clients: "yes" | "no", name = "127.0.0.1") =>
  Effect.gen(function*() {
    const [{ cert, key }, port] = yield* Effect.all([Effect.flatMap(selfSigned(name), filesOf), freePort])
    const redis = yield* redisServer(
      ["--tls-port", String(port), "--tls-cert-file", cert, "--tls-key-file", key].concat(
        ["--tls-ca-cert-file", cert, "--tls-auth-clients", clients]
      )
    )
    return { ...redis, cert, key, tlsUrl: `rediss://127.0.0.1:${port}` }
  })

/** A server that the tests of the surrounding `describe` share. It is empty at the start of each test. */
export const sharedRedis = (): Effect.Effect<RedisServer> =>
  Effect.tap(shared(redisServer()), ({ command }) => command("FLUSHALL"))
