import { isIP } from "node:net"
import {
  createClient,
  createCluster,
  type RedisClientType,
  type RedisClusterType
} from "@redis/client"
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { reasonOf } from "./reason.js"

/** How many commands may wait while Redis does not respond. */
const longestQueue = 1000

/** The milliseconds in which one of several servers must accept a connection, and a sentinel must respond. */
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
  Effect.try(() => parse(text)).pipe(
    Effect.filterOrFail((parts) => parts.isUsable),
    Effect.map(serversOf),
    Effect.mapError(() =>
      new ConfigurationError({
        option: "RedisTokenStore.url",
        reason:
          "must be redis://host, redis+cluster://host,host or redis+sentinel://host,host/name, with rediss " +
          "instead of redis over TLS, user:password@ before the hosts, a port after each, and a /database at the end " +
          "where needed, all percent-encoded"
      })
    )
  )

type Parts = ReturnType<typeof parse>
type Host = Parts["hosts"][number]

/** Throws if a part of the URL cannot be read. */
const parse = (text: string) => {
  const [, scheme = "", kind = "", user = "", list = "", path = ""] =
    /^(rediss?)(\+cluster|\+sentinel)?:\/\/(.*@)?([^@/?#]+)(?:\/([^?#]*))?$/.exec(
      text.trim()
    ) ?? []
  const [name = "", ...rest] = kind === "+sentinel" ? path.split("/") : ["", path]
  const database = rest.join("/")
  const urls = list.split(",").map((host) => new URL(`${scheme}://${user}${host}`))
  const { password, username } = new URL(`${scheme}://${user}host`)
  const isSecure = scheme === "rediss"
  /** Node sends the name of a server (SNI, RFC 6066 §3) only when it is given. It accepts no address there. */
  const at = (host: string, port: number) => ({
    host,
    port,
    ...(isSecure && isIP(host) === 0 && { servername: host })
  })
  return {
    isUsable:
      urls.every(({ hash, hostname, pathname, search }) =>
        hostname !== "" && pathname + search + hash === ""
      ) &&
      (kind === "" ? urls.length === 1 : kind === "+cluster" ? path === "" : name !== "") &&
      /^\d*$/.test(database),
    kind,
    name: decodeURIComponent(name),
    at,
    hosts: urls.map(({ hostname, port }) =>
      at(
        hostname.replace(/[[\]]/g, ""),
        Number(port || (kind === "+sentinel" ? 26_379 : 6379))
      )
    ),
    user: {
      ...(username !== "" && { username: decodeURIComponent(username) }),
      ...(password !== "" && { password: decodeURIComponent(password) })
    },
    database: database === "" ? {} : { database: Number(database) },
    // Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED=0 has no effect.
    tls: isSecure ? { tls: true, rejectUnauthorized: true } as const : {}
  }
}

const serversOf = (parts: Parts): Servers => {
  if (parts.kind === "") return single(parts)
  return {
    canFailOver: true,
    newClient: parts.kind === "+cluster" ? ofCluster(parts) : ofSentinels(parts)
  }
}

const options = {
  // Without a connection a command fails at once, so that no command is sent late.
  disableOfflineQueue: true,
  commandsQueueMaxLength: longestQueue,
  maintNotifications: "disabled"
} as const

const single = ({ database, hosts, tls, user }: Parts): Servers => {
  // A duplicate does not define a class with all commands again, which takes 15 milliseconds.
  const template = createClient(options)
  const socket = { ...tls, ...hosts[0] }
  return {
    canFailOver: false,
    newClient: Effect.sync(() => template.duplicate({ ...user, ...database, socket }))
  }
}

/** A server that failed may come back as a replica, so that the client does not connect to it again. */
const oneOfSeveral = (
  { tls }: Parts
) => ({ ...tls, connectTimeout: serverTimeout, reconnectStrategy: false } as const)

const ofCluster = (parts: Parts): Servers["newClient"] =>
  Effect.sync(() =>
    createCluster({
      // Only the search for nodes uses this limit. Otherwise a node that does not respond would block it.
      rootNodes: parts.hosts.map((host) => ({
        socket: { ...host, socketTimeout: serverTimeout }
      })),
      defaults: { ...options, ...parts.user, socket: oneOfSeveral(parts) },
      nodeAddressMap: (address) => {
        const colon = address.lastIndexOf(":")
        return parts.at(address.slice(0, colon), Number(address.slice(colon + 1)))
      },
      // Connects only to the nodes that have the keys.
      minimizeConnections: true
    })
  )

const ofSentinels = (parts: Parts): Servers["newClient"] => {
  const { at, database, hosts, name, user } = parts
  const template = createClient(options)
  const to = (host: Host, more: object = {}) =>
    template.duplicate({ ...more, socket: { ...oneOfSeveral(parts), ...host } })

  /** Asks a sentinel for the primary. */
  const ask = (host: Host, user = {}) =>
    Effect.acquireUseRelease(
      Effect.sync(() => to(host, user).on("error", () => undefined)),
      (sentinel) =>
        Effect.tryPromise({ try: () => sentinel.connect(), catch: reasonOf }).pipe(
          Effect.zipRight(Effect.tryPromise({
            try: () =>
              sentinel.sendCommand<[string, string] | null>([
                "SENTINEL",
                "GET-MASTER-ADDR-BY-NAME",
                name
              ]),
            catch: reasonOf
          })),
          Effect.timeoutFail({
            duration: serverTimeout,
            onTimeout: () => "no response in time"
          }),
          Effect.filterOrFail((found) => found !== null, () => "unknown name"),
          Effect.map(([host, port]) => at(host, Number(port)))
        ),
      (sentinel) => Effect.sync(() => destroy(sentinel))
    )
  // Many sentinels don't have their own users.
  const needsUser = (reason: string) => reason === "NOAUTH" || reason === "NOPERM"
  const primary = (host: Host) => Effect.catchIf(ask(host), needsUser, () => ask(host, user))
  // In another order each time, in case one is cut off from the others.
  return Effect.map(
    Effect.flatMap(
      Random.shuffle(hosts),
      (hosts) => Effect.firstSuccessOf(Array.from(hosts, primary))
    ),
    (host) => to(host, { ...user, ...database })
  )
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
