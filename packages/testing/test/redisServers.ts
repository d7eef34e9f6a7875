/** Servers of Redis: one, a cluster, and a primary behind sentinels. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { createClient } from "@redis/client"
import type { TokenStore } from "@store-api/core"
import { Effect, Option, type Scope } from "effect"
import { filesOf, selfSigned } from "./certificates.js"
import { entryOf } from "./entryOf.js"
import { freePort, newFolder, shared } from "./loopback.js"
import { end, until } from "./network.js"

/** This variable replaces `redis-server` with another server with the same commands, such as Valkey. */
const program = process.env["REDIS_SERVER"] ?? "redis-server"

/** Without Debian's `redis-server`, its tests are skipped, except with `CI=true`. */
export const isLeftOut: boolean = spawnSync(program, ["--version"]).status !== 0 &&
  process.env["CI"] !== "true"

if (isLeftOut) {
  console.warn("There is no command redis-server: tests that need it are skipped.")
}

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

// `createClient` defines a class with all commands unless its options equal those of the last call, which takes 15 ms.
// The store has other options, so the commands of the tests use duplicates of one client.
const template = createClient()

/** A client that is connected to this URL until its scope closes. */
export const clientAt = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(() => template.duplicate({ url }).on("error", () => undefined).connect()),
    (client) => Effect.sync(() => client.destroy())
  )

/** Starts a server on a free port of loopback, in memory only. It stops when the scope closes. */
export const redisServer = (
  parameters: ReadonlyArray<string> = [],
  { at, configuration = "", password }: {
    readonly at?: number
    readonly configuration?: string
    readonly password?: string | undefined
  } = {}
): Effect.Effect<RedisServer, never, Scope.Scope> =>
  Effect.gen(function*() {
    const port = at ?? (yield* freePort)
    const folder = yield* newFolder("redis")
    // A sentinel writes to its configuration file.
    const file = join(folder, "redis.conf")
    writeFileSync(file, configuration)
    let child: ChildProcess | undefined

    const stop = Effect.suspend(() => end(child, "SIGKILL"))
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
      return until("redis-server responds", isUp)
    })

    const signal = (name: NodeJS.Signals) => Effect.sync(() => void child?.kill(name))

    yield* Effect.acquireRelease(start, () => stop)
    const url = `redis://${password === undefined ? "" : `:${password}@`}127.0.0.1:${port}`
    const command: RedisServer["command"] = (...words) =>
      Effect.scoped(
        Effect.flatMap(
          clientAt(url),
          (client) => Effect.promise(() => client.sendCommand<unknown>([...words]))
        )
      )
    return {
      url: `redis://127.0.0.1:${port}`,
      port,
      stop,
      start,
      pause: signal("SIGSTOP"),
      resume: signal("SIGCONT"),
      command,
      // The client that asks is the one whose last command is this one.
      connected: Effect.map(
        command("CLIENT", "LIST"),
        (list) =>
          String(list).trim().split("\n").filter((line) =>
            !/ cmd=(client\|list|monitor) /.test(line)
          ).length
      )
    }
  })

/** A server that the tests of the surrounding `describe` share. It is empty at the start of each test. */
export const sharedRedis = (): Effect.Effect<RedisServer> =>
  Effect.tap(shared(redisServer()), ({ command }) => command("FLUSHALL"))

/** Performs each operation once on a store. */
export const works = (store: TokenStore.Service, key = "key") =>
  Effect.gen(function*() {
    yield* store.put(key, "entry", "1 minute")
    deepStrictEqual(yield* entryOf(store, key), Option.some("entry"))
    const lease = Option.getOrThrow(yield* store.lease(key, "1 minute"))
    assert.isTrue(Option.isNone(yield* store.lease(key, "1 minute")))
    assert.isTrue(yield* lease.extend)
    yield* lease.release
    deepStrictEqual([yield* lease.extend, yield* store.remove(key, "entry")], [false, true])
  })

/** One server or several ones. */
export interface Servers {
  readonly url: string
  /** The servers that hold data. */
  readonly servers: ReadonlyArray<RedisServer>
  /** The path of the certificate, with TLS. */
  readonly cert: string
}

/** Several servers, of which one takes over when another fails. */
export interface Topology extends Servers {
  /** The server that accepts writes of this key. */
  readonly primaryOf: (key: string) => Effect.Effect<RedisServer>
  /** Breaks a primary, and waits until another server has taken over. */
  readonly failOver: (
    primary: RedisServer,
    fault: Effect.Effect<unknown>
  ) => Effect.Effect<void>
}

export interface Options {
  /** The part of the URL before the hosts. */
  readonly user?: string
  /** A user of each server of data, as in its configuration. */
  readonly acl?: ReadonlyArray<string>
  /** A user of each sentinel. They then also have a password. */
  readonly sentinelAcl?: ReadonlyArray<string>
  /** The name in the certificate. Without it there is no TLS. */
  readonly tls?: { readonly name?: string }
}

export type Start<A extends Servers = Topology> = (
  options?: Options
) => Effect.Effect<A, never, Scope.Scope>

/** The users that docs/guides/several-instances.md recommends, as in the configuration of a server. */
export const documented = (right: string): ReadonlyArray<string> => {
  const page = readFileSync(
    new URL("../../../docs/guides/several-instances.md", import.meta.url),
    "utf8"
  )
  const user = page.split("\n").find((line) =>
    line.startsWith("user store-api ") && line.includes(right)
  )
  assert(user !== undefined, right)
  return user.split(" ").slice(1)
}

/** That user in a URL. */
export const user = "store-api:password@"

const host = "127.0.0.1"

/** The milliseconds without a response after which another server takes over: only when a test breaks one. */
const [impatient, patient] = ["500", "60000"]

/** Asks all servers that respond. */
const ask = (servers: ReadonlyArray<RedisServer>, ...words: ReadonlyArray<string>) =>
  Effect.forEach(
    servers,
    ({ command }) => Effect.map(command(...words), (reply) => JSON.stringify(reply)),
    {
      concurrency: "unbounded"
    }
  )

const all = (
  servers: ReadonlyArray<RedisServer>,
  text: string,
  ...words: ReadonlyArray<string>
) =>
  until(
    text,
    Effect.map(ask(servers, ...words), (answers) =>
      answers.every((answer) => answer.includes(text)))
  )

/** The ports and parameters of servers, with TLS where it is wanted. */
const security = ({ tls }: Options) =>
  Effect.map(
    tls === undefined
      ? Effect.succeed({ cert: "", key: "" })
      : Effect.flatMap(selfSigned(tls.name ?? host), filesOf),
    ({ cert, key }) => ({
      files: { cert, key },
      /** The port that servers and clients use, from the plain port of the tests' commands. */
      used: (plain: number) => (tls === undefined ? plain : plain + 1),
      parameters: (plain: number, acl: ReadonlyArray<string> = []) => [
        ...(acl.length === 0 ? [] : ["--user", ...acl]),
        ...(tls === undefined ?
          [] :
          [
            "--tls-port",
            String(plain + 1),
            "--tls-cert-file",
            cert,
            "--tls-key-file",
            key,
            "--tls-ca-cert-file",
            cert
          ]
            .concat("--tls-auth-clients", "no", "--tls-replication", "yes"))
      ]
    })
  )

const urlOf = (
  kind: string,
  { tls, user = "" }: Options,
  ports: ReadonlyArray<number>,
  path = ""
) =>
  `${tls === undefined ? "redis" : "rediss"}${kind}://${user}${
    ports.map((port) => `${host}:${port}`).join()
  }${path}`

export const single: Start<Servers> = (options = {}) =>
  Effect.gen(function*() {
    const [{ files, parameters, used }, port] = [yield* security(options), yield* freePort]
    const server = yield* redisServer(parameters(port, options.acl), { at: port })
    return { ...files, url: urlOf("", options, [used(port)]), servers: [server] }
  })

/** Three primaries, each with a replica. */
export const cluster: Start = (options = {}) =>
  Effect.gen(function*() {
    const { files, parameters, used } = yield* security(options)
    const folder = yield* newFolder("redis")
    const nodes = yield* Effect.forEach(Array.from({ length: 6 }).keys(), (index) =>
      Effect.map(
        Effect.zip(freePort, freePort),
        ([port, bus]) => ({ port, bus, index, id: `${index}`.repeat(40) })
      ))
    const ranges = ["0-5460", "5461-10922", "10923-16383"]
    /** As the nodes would write it once they had met. */
    const configuration = (own: number) =>
      nodes.map(({ bus, id, index, port }) => {
        const role = index < 3 ? "master -" : `slave ${nodes[index - 3]?.id}`
        const flags = index === own ? `myself,${role}` : role
        return `${id} ${host}:${used(port)}@${bus} ${flags} 0 0 ${(index % 3) + 1} connected ${
          ranges[index] ?? ""
        }\n`
      }).join("") + "vars currentEpoch 3 lastVoteEpoch 0\n"
    const servers = yield* Effect.forEach(nodes, ({ bus, index, port }) => {
      const file = join(folder, `${index}.conf`)
      writeFileSync(file, configuration(index))
      return redisServer(
        [
          "--cluster-enabled",
          "yes",
          "--cluster-config-file",
          file,
          "--cluster-port",
          String(bus)
        ].concat(
          ["--cluster-node-timeout", patient, "--cluster-replica-validity-factor", "0"],
          [
            "--repl-diskless-sync-delay",
            "0",
            "--tls-cluster",
            options.tls === undefined ? "no" : "yes"
          ],
          parameters(port, options.acl)
        ),
        { at: port }
      )
    }, { concurrency: "unbounded" })
    yield* all(servers, "cluster_state:ok", "CLUSTER", "INFO")
    yield* all(servers.slice(3), "master_link_status:up", "INFO", "replication")

    /** The first and last slot of each primary, with its port, from the view of this server. */
    const rangesOf = ({ command }: RedisServer) =>
      Effect.map(command("CLUSTER", "SLOTS"), (ranges) =>
        (ranges as ReadonlyArray<[number, number, [string, number]]>)
          .map(([from, to, [, port]]) => ({ from, to, port })))
    /** The port of the node that has this slot, from the view of this server. */
    const portOf = (asked: RedisServer, slot: number) =>
      Effect.map(rangesOf(asked), (all) =>
        all.find(({ from, to }) =>
          from <= slot && slot <= to
        )?.port)
    const at = (port: number | undefined) =>
      Option.getOrThrow(Option.fromNullable(servers.find((server) =>
        server.port === port
      )))
    const [first] = servers
    assert(first !== undefined)
    return {
      ...files,
      url: urlOf(
        "+cluster",
        options,
        nodes.slice(0, 3).map(({ port }) => used(port))
      ),
      servers,
      primaryOf: (key) =>
        first.command("CLUSTER", "KEYSLOT", key).pipe(
          Effect.flatMap((slot) => portOf(first, Number(slot))),
          Effect.map(at)
        ),
      failOver: (primary, fault) =>
        Effect.gen(function*() {
          const others = servers.filter((server) => server !== primary)
          const mine = (yield* rangesOf(primary)).find(({ port }) => port === primary.port)
          assert(mine !== undefined)
          yield* ask(servers, "CONFIG", "SET", "cluster-node-timeout", impatient)
          yield* fault
          const areMoved = Effect.map(
            Effect.forEach(others, (other) => portOf(other, mine.from)),
            (ports) => ports.every((port) => port !== primary.port)
          )
          yield* until("a replica has taken over", areMoved)
          yield* all(others, "cluster_state:ok", "CLUSTER", "INFO")
          yield* ask(others, "CONFIG", "SET", "cluster-node-timeout", patient)
        })
    }
  })

const name = "tokens"

/** A primary with two replicas, and three sentinels. */
export const sentinel: Start = (options = {}) =>
  Effect.gen(function*() {
    const { files, parameters, used } = yield* security(options)
    const [first = 0, ...others] = yield* Effect.all(Effect.replicate(freePort, 3))
    const [primary, ...replicas] = yield* Effect.forEach([first, ...others], (port) =>
      redisServer(
        parameters(port, options.acl).concat(
          port === first ? [] : ["--replicaof", host, String(used(first))],
          ["--repl-diskless-sync-delay", "0"]
        ),
        { at: port }
      ), { concurrency: 3 })
    assert(primary !== undefined)
    yield* all(replicas, "master_link_status:up", "INFO", "replication")

    const password = options.sentinelAcl === undefined ? undefined : "of-sentinels"
    const ports = yield* Effect.all(Effect.replicate(freePort, 3))
    const idOf = (port: number) =>
      String(port).repeat(8)
    /** As a sentinel would write it once it had met the others. */
    const configuration = (own: number) =>
      [
        `myid ${idOf(own)}`,
        `monitor ${name} ${host} ${used(first)} 2`,
        `down-after-milliseconds ${name} ${patient}`,
        `failover-timeout ${name} 2000`,
        ...(password === undefined ? [] : [`sentinel-pass ${password}`]),
        ...others.map((port) =>
          `known-replica ${name} ${host} ${used(port)}`
        ),
        ...ports.filter((port) => port !== own).map((port) =>
          `known-sentinel ${name} ${host} ${used(port)} ${idOf(port)}`
        )
      ].map((line) => `sentinel ${line}\n`).join("")
    const sentinels = yield* Effect.forEach(ports, (port) =>
      redisServer([...parameters(port, options.sentinelAcl), "--sentinel"], {
        at: port,
        configuration: configuration(port),
        password
      }), { concurrency: 3 })
    yield* all(
      sentinels,
      `"num-slaves":"2","num-other-sentinels":"2"`,
      "SENTINEL",
      "MASTER",
      name
    )
    // A sentinel that a busy machine has stopped for 2 seconds (Redis calls it TILT) would do nothing for the next 30.
    yield* all(sentinels, "OK", "SENTINEL", "DEBUG", "tilt-trigger", "60000")
    const servers = [primary, ...replicas]
    const isNamed = (addresses: ReadonlyArray<string>) => ({ port }: RedisServer) =>
      addresses.every((address) =>
        address === JSON.stringify([host, String(used(port))])
      )
    const current = Effect.map(
      ask(sentinels, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", name),
      (addresses) =>
        servers.filter(isNamed(addresses))
    )
    return {
      ...files,
      url: urlOf(
        "+sentinel",
        options,
        sentinels.map(({ port }) =>
          used(port)
        ),
        `/${name}`
      ),
      servers,
      primaryOf: () =>
        Effect.map(current, ([primary]) => Option.getOrThrow(Option.fromNullable(primary))),
      failOver: (primary, fault) =>
        Effect.gen(function*() {
          const wait = (millis: string) =>
            ask(sentinels, "SENTINEL", "SET", name, "down-after-milliseconds", millis)
          yield* Effect.zipRight(wait(impatient), fault)
          const isReplaced = Effect.map(
            current,
            ([other]) => other !== undefined && other !== primary
          )
          yield* Effect.zipRight(until("a replica has taken over", isReplaced), wait(patient))
        })
    }
  })
