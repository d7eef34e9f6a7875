/** Several servers, of which one takes over when another fails: a cluster, and a primary behind sentinels. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Option, type Scope } from "effect"
import { filesOf, selfSigned } from "../../../platform-node/test/support/certificates.js"
import { freePort } from "../../../platform-node/test/utils.js"
import { until } from "./fleet.js"
import { type RedisServer, redisServer } from "./redisServer.js"

export interface Topology {
  readonly url: string
  /** The servers that hold data. */
  readonly servers: ReadonlyArray<RedisServer>
  /** The server that accepts writes of this key. */
  readonly primaryOf: (key: string) => Effect.Effect<RedisServer>
  /** Breaks a primary, and waits until another server has taken over. */
  readonly failOver: (primary: RedisServer, fault: Effect.Effect<unknown>) => Effect.Effect<void>
}

export interface Options {
  /** How long a server does not respond before another takes over, in milliseconds. Default a minute. */
  readonly patience?: number
  /** The part of the URL before the hosts. */
  readonly user?: string
  /** A user of each server of data, as in its configuration. */
  readonly acl?: ReadonlyArray<string>
  /** A user of each sentinel. They then also have a password. */
  readonly sentinelAcl?: ReadonlyArray<string>
  readonly overTls?: boolean
}

export type Start = (options?: Options) => Effect.Effect<Topology & { readonly cert: string }, never, Scope.Scope>

const host = "127.0.0.1"

/** Asks all servers that respond. */
const ask = (servers: ReadonlyArray<RedisServer>, ...words: ReadonlyArray<string>) =>
  Effect.forEach(servers, ({ command }) => Effect.map(command(...words), (reply) => JSON.stringify(reply)), {
    concurrency: "unbounded"
  })

const all = (servers: ReadonlyArray<RedisServer>, text: string, ...words: ReadonlyArray<string>) =>
  until(text, Effect.map(ask(servers, ...words), (answers) => answers.every((answer) => answer.includes(text))))

/** The ports and parameters of servers, with TLS where it is wanted. */
const security = (overTls = false) =>
  Effect.map(Effect.flatMap(selfSigned(host), filesOf), ({ cert, key }) => ({
    cert,
    /** The port that servers and clients use, from the plain port of the tests' commands. */
    used: (plain: number) => (overTls ? plain + 1 : plain),
    parameters: (plain: number, acl: ReadonlyArray<string> = []) => [
      ...(acl.length === 0 ? [] : ["--user", ...acl]),
      ...(overTls
        ? ["--tls-port", String(plain + 1), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert]
          .concat("--tls-auth-clients", "no", "--tls-replication", "yes")
        : [])
    ]
  }))

const urlOf = (kind: string, { overTls, user = "" }: Options, ports: ReadonlyArray<number>, path = "") =>
  `${overTls ? "rediss" : "redis"}+${kind}://${user}${ports.map((port) => `${host}:${port}`).join()}${path}`

/** Three primaries, each with a replica. */
export const cluster: Start = (options = {}) =>
  Effect.gen(function*() {
    const { cert, parameters, used } = yield* security(options.overTls)
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "cluster-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    const nodes = yield* Effect.forEach(Array.from({ length: 6 }).keys(), (index) =>
      Effect.map(Effect.zip(freePort, freePort), ([port, bus]) => ({ port, bus, index, id: `${index}`.repeat(40) })))
    const ranges = ["0-5460", "5461-10922", "10923-16383"]
    /** As the nodes would write it once they had met. */
    const configuration = (own: number) =>
      nodes.map(({ bus, id, index, port }) => {
        const role = index < 3 ? "master -" : `slave ${nodes[index - 3]?.id}`
        const flags = index === own ? `myself,${role}` : role
        return `${id} ${host}:${used(port)}@${bus} ${flags} 0 0 ${(index % 3) + 1} connected ${ranges[index] ?? ""}\n`
      }).join("") + "vars currentEpoch 3 lastVoteEpoch 0\n"
    const servers = yield* Effect.forEach(nodes, ({ bus, index, port }) => {
      const file = join(folder, `${index}.conf`)
      writeFileSync(file, configuration(index))
      return redisServer(
        ["--cluster-enabled", "yes", "--cluster-config-file", file, "--cluster-port", String(bus)].concat(
          ["--cluster-node-timeout", String(options.patience ?? 60_000), "--cluster-replica-validity-factor", "0"],
          ["--repl-diskless-sync-delay", "0", "--tls-cluster", options.overTls ? "yes" : "no"],
          parameters(port, options.acl)
        ),
        undefined,
        { at: Effect.succeed(port) }
      )
    }, { concurrency: "unbounded" })
    yield* all(servers, "cluster_state:ok", "CLUSTER", "INFO")
    yield* all(servers.slice(3), "master_link_status:up", "INFO", "replication")

    /** The port of the node that has this slot, from the view of this server. */
    const portOf = (asked: RedisServer, slot: number) =>
      Effect.map(asked.command("CLUSTER", "SLOTS"), (ranges) => {
        const found = (ranges as ReadonlyArray<[number, number, [string, number]]>)
          .find(([from, to]) =>
            from <= slot && slot <= to
          )
        return found?.[2][1]
      })
    const slotOf = (asked: RedisServer, key: string) => Effect.map(asked.command("CLUSTER", "KEYSLOT", key), Number)
    const at = (port: number | undefined) =>
      Option.getOrThrow(Option.fromNullable(servers.find((server) => server.port === port)))
    const [first] = servers
    assert(first !== undefined)
    return {
      cert,
      url: urlOf("cluster", options, nodes.slice(0, 3).map(({ port }) => used(port))),
      servers,
      primaryOf: (key) => Effect.map(Effect.flatMap(slotOf(first, key), (slot) => portOf(first, slot)), at),
      failOver: (primary, fault) =>
        Effect.gen(function*() {
          const others = servers.filter((server) => server !== primary)
          const [asked] = others
          assert(asked !== undefined)
          const [mine] =
            ((yield* primary.command("CLUSTER", "SLOTS")) as ReadonlyArray<[number, number, [string, number]]>)
              .filter(([, , [, port]]) => port === primary.port)
          assert(mine !== undefined)
          yield* fault
          const areMoved = Effect.map(
            Effect.forEach(others, (other) => portOf(other, mine[0])),
            (ports) => ports.every((port) => port !== primary.port)
          )
          yield* until("a replica has taken over", areMoved)
          yield* all(others, "cluster_state:ok", "CLUSTER", "INFO")
        })
    }
  })

const name = "tokens"

/** A primary with two replicas, and three sentinels. */
export const sentinel: Start = (options = {}) =>
  Effect.gen(function*() {
    const { cert, parameters, used } = yield* security(options.overTls)
    const [first = 0, ...others] = yield* Effect.all(Effect.replicate(freePort, 3))
    const [primary, ...replicas] = yield* Effect.forEach([first, ...others], (port) =>
      redisServer(
        parameters(port, options.acl).concat(
          port === first ? [] : ["--replicaof", host, String(used(first))],
          ["--repl-diskless-sync-delay", "0"]
        ),
        undefined,
        { at: Effect.succeed(port) }
      ), { concurrency: 3 })
    assert(primary !== undefined)
    yield* all(replicas, "master_link_status:up", "INFO", "replication")

    const password = options.sentinelAcl === undefined ? undefined : "of-sentinels"
    const ports = yield* Effect.all(Effect.replicate(freePort, 3))
    const idOf = (port: number) => String(port).repeat(8)
    /** As a sentinel would write it once it had met the others. */
    const configuration = (own: number) =>
      [
        `myid ${idOf(own)}`,
        `monitor ${name} ${host} ${used(first)} 2`,
        `down-after-milliseconds ${name} ${options.patience ?? 60_000}`,
        `failover-timeout ${name} 2000`,
        ...(password === undefined ? [] : [`sentinel-pass ${password}`]),
        ...others.map((port) => `known-replica ${name} ${host} ${used(port)}`),
        ...ports.filter((port) => port !== own).map((port) =>
          `known-sentinel ${name} ${host} ${used(port)} ${idOf(port)}`
        )
      ].map((line) => `sentinel ${line}\n`).join("")
    const sentinels = yield* Effect.forEach(ports, (port) =>
      redisServer([...parameters(port, options.sentinelAcl), "--sentinel"], password, {
        at: Effect.succeed(port),
        configuration: configuration(port)
      }), { concurrency: 3 })
    yield* all(sentinels, `"num-slaves":"2","num-other-sentinels":"2"`, "SENTINEL", "MASTER", name)
    // A sentinel that a busy machine has stopped for 2 seconds (Redis calls it TILT) would do nothing for the next 30.
    yield* all(sentinels, "OK", "SENTINEL", "DEBUG", "tilt-trigger", "60000")
    const servers = [primary, ...replicas]
    const current = Effect.map(
      ask(sentinels, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", name),
      (addresses) =>
        servers.filter(({ port }) =>
          addresses.every((address) =>
            address === JSON.stringify([host, String(used(port))])
          )
        )
    )
    return {
      cert,
      url: urlOf("sentinel", options, sentinels.map(({ port }) => used(port)), `/${name}`),
      servers,
      primaryOf: () => Effect.map(current, ([primary]) => Option.getOrThrow(Option.fromNullable(primary))),
      failOver: (primary, fault) =>
        fault.pipe(
          Effect.zipRight(until(
            "a replica has taken over",
            Effect.map(current, ([other]) => other !== undefined && other !== primary)
          ))
        )
    }
  })
