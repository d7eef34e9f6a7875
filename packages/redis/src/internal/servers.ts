import { isIP } from "node:net"
import {
  createClient,
  createCluster,
  type RedisClientType,
  type RedisClusterType
} from "@redis/client"
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Random from "effect/Random"
import { reasonOf } from "./reason.js"

/** How many commands may wait while Redis does not respond. */
const longestQueue = 1000

/**
 * The milliseconds in which one of several servers must accept a connection, and a sentinel must
 * respond.
 */
const serverTimeout = 500

export type Client = RedisClientType | RedisClusterType

export interface Servers {
  /** Whether another server takes over when one fails. A new client then looks for it. */
  readonly canFailOver: boolean
  /** Creates a client that is not connected yet. Fails with the reason. */
  readonly newClient: Effect.Effect<Client, string>
}

/** Reads the URL. The error shows no part of it. */
export const fromUrl = (text: string): Effect.Effect<Servers, ConfigurationError> =>
  Option.match(readUrl(text), {
    onNone: () =>
      new ConfigurationError({
        option: "RedisTokenStore.url",
        reason: Predicate.isString(text) && /[?#]/.test(text) ? withQuery : withoutGrammar
      }),
    onSome: Effect.succeed
  })

const withQuery =
  "must not have a query or a fragment, and ? and # in a user name or password must be percent-encoded"

const withoutGrammar = "must be redis://host, redis+cluster://host,host or " +
  "redis+sentinel://host,host/name, with rediss instead of redis over TLS, " +
  "user:password@ before the hosts, a port after each, and a /database at the end " +
  "where needed, all percent-encoded"

/** The user and the security of all connections to the servers of a URL. */
interface Access {
  readonly isSecure: boolean
  readonly login: { readonly username?: string; readonly password?: string }
}

interface Address {
  readonly host: string
  readonly port: number
  readonly servername?: string
}

interface Single extends Access {
  readonly server: Address
  readonly database: string
}

interface Cluster extends Access {
  readonly nodes: ReadonlyArray<Address>
}

interface Sentinels extends Access {
  readonly sentinels: ReadonlyArray<Address>
  /** The name of the primary. */
  readonly name: string
  readonly database: string
}

/** Its groups: the scheme, the topology, user and password, the hosts, the path in two parts. */
const grammar = new RegExp(
  "^(rediss?)(\\+cluster|\\+sentinel)?://(?:([^:/?#]*):?([^/?#]*)@)?([^@/?#]+)" +
    "(?:/([^@/?#]*))?(?:/(\\d*))?$"
)

const readUrl = (text: string): Option.Option<Servers> =>
  Option.gen(function*() {
    // In JavaScript, the text may be of another type.
    const url = yield* Option.liftPredicate(text, Predicate.isString)
    const [, scheme, topology, user = "", secret = "", list = "", path = "", database] =
      yield* Option.fromNullable(grammar.exec(url.trim()))
    const isSecure = scheme === "rediss"
    const defaultPort = topology === "+sentinel" ? 26_379 : 6379
    const hosts = yield* Option.all(
      list.split(",").map((host) => readHost(isSecure, host, defaultPort))
    )
    const login = {
      ...(user !== "" && { username: yield* decode(user) }),
      ...(secret !== "" && { password: yield* decode(secret) })
    }
    const access: Access = { isSecure, login }
    if (topology === "+sentinel") {
      const name = yield* Option.filter(decode(path), (name) => name !== "")
      return ofSentinels({ ...access, sentinels: hosts, name, database: database ?? "" })
    }
    const [server, ...others] = hosts
    if (server === undefined || database !== undefined) return yield* Option.none()
    if (topology === "+cluster") {
      return path === "" ? ofCluster({ ...access, nodes: hosts }) : yield* Option.none()
    }
    return others.length === 0 && /^\d*$/.test(path)
      ? ofSingle({ ...access, server, database: path })
      : yield* Option.none()
  })

const decode = Option.liftThrowable(decodeURIComponent)

const readHost = (isSecure: boolean, text: string, defaultPort: number) => {
  if (text === "") return Option.none()
  return Option.map(parseUrl(`redis://${text}`), ({ hostname, port }) => {
    const host = hostname.replace(/[[\]]/g, "")
    return addressOf(isSecure, host, port === "" ? defaultPort : Number(port))
  })
}

const parseUrl = Option.liftThrowable((text: string) => new URL(text))

/** Node sends the name of a server (SNI, RFC 6066 §3) only when it is given, and no address. */
const addressOf = (isSecure: boolean, host: string, port: number): Address =>
  isSecure && isIP(host) === 0 ? { host, port, servername: host } : { host, port }

const options = {
  // Without a connection a command fails at once, so that no command is sent late.
  disableOfflineQueue: true,
  commandsQueueMaxLength: longestQueue,
  maintNotifications: "disabled"
} as const

/** Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED=0 has no effect. */
const tlsOf = ({ isSecure }: Access) =>
  isSecure ? { tls: true, rejectUnauthorized: true } as const : {}

const databaseOf = (number: string) => number === "" ? {} : { database: Number(number) }

const ofSingle = (single: Single): Servers => {
  // A duplicate does not define a class with all commands again, which takes 15 milliseconds.
  const template = createClient(options)
  const socket = { ...tlsOf(single), ...single.server }
  const newClient = Effect.sync(() =>
    template.duplicate({ ...single.login, ...databaseOf(single.database), socket })
  )
  return { canFailOver: false, newClient }
}

/** A server that failed may come back as a replica, so the client does not reconnect to it. */
const failoverSocketOf = (access: Access) => ({
  ...tlsOf(access),
  connectTimeout: serverTimeout,
  reconnectStrategy: false as const
})

const ofCluster = (cluster: Cluster): Servers => ({
  canFailOver: true,
  newClient: Effect.sync(() =>
    createCluster({
      // Only the search for nodes has this limit. Without it, a silent node would block it.
      rootNodes: cluster.nodes.map((node) => ({
        socket: { ...node, socketTimeout: serverTimeout }
      })),
      defaults: { ...options, ...cluster.login, socket: failoverSocketOf(cluster) },
      nodeAddressMap: (address) => {
        const colon = address.lastIndexOf(":")
        const port = Number(address.slice(colon + 1))
        return addressOf(cluster.isSecure, address.slice(0, colon), port)
      },
      // Connects only to the nodes that have the keys.
      minimizeConnections: true
    })
  )
})

const question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME"]

const ofSentinels = (servers: Sentinels): Servers => {
  const { database, isSecure, login, name, sentinels } = servers
  const template = createClient(options)
  const newClient = (address: Address, more: object) =>
    template.duplicate({ ...more, socket: { ...failoverSocketOf(servers), ...address } })

  /** Asks a sentinel for the address of the primary. */
  const ask = (sentinel: Address, login: object) =>
    Effect.acquireUseRelease(
      Effect.sync(() => newClient(sentinel, login).on("error", () => undefined)),
      (client) =>
        Effect.tryPromise({ try: () => client.connect(), catch: reasonOf }).pipe(
          Effect.zipRight(Effect.tryPromise({
            try: () => client.sendCommand<[string, string] | null>([...question, name]),
            catch: reasonOf
          })),
          Effect.timeoutFail({
            duration: serverTimeout,
            onTimeout: () => "no response in time"
          }),
          Effect.filterOrFail((found) => found !== null, () => "unknown name"),
          Effect.map(([host, port]) => addressOf(isSecure, host, Number(port)))
        ),
      (client) => Effect.sync(() => destroy(client))
    )
  // Many sentinels don't have their own users.
  const needsUser = (reason: string) => reason === "NOAUTH" || reason === "NOPERM"
  const findPrimary = (sentinel: Address) =>
    Effect.catchIf(ask(sentinel, {}), needsUser, () => ask(sentinel, login))
  return {
    canFailOver: true,
    // In another order each time, in case one is cut off from the others.
    newClient: Random.shuffle(sentinels).pipe(
      Effect.flatMap((all) => Effect.firstSuccessOf(Array.from(all, findPrimary))),
      Effect.map((primary) => newClient(primary, { ...login, ...databaseOf(database) }))
    )
  }
}

/** Also destroys a client that is still connecting, which would open its connection later. */
export const destroy = (client: Client | undefined): void => {
  if (client === undefined) return
  const connections = "masters" in client
    ? client.masters.map((node) => node.client)
    : [client]
  for (const connection of connections) connection?.on("connect", () => connection.destroy())
  client.destroy()
}
