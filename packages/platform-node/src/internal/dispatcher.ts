import * as Net from "node:net"
import * as Undici from "@effect/platform-node/Undici"
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as proxy from "./proxy.js"
import * as tls from "./tls.js"

interface Options extends tls.Options {
  readonly connections?: number | undefined
  readonly proxy?: proxy.Choice | undefined
}

/** Undici's dispatcher as the options want it, destroyed with the scope. */
export const make = (
  options: Options
): Effect.Effect<Undici.Dispatcher, ConfigurationError, Scope.Scope> =>
  Effect.gen(function*() {
    yield* checkConnections(options)
    const { forProxies, forServers } = yield* tls.make(options)
    const sockets = yield* Effect.acquireRelease(Effect.sync(() => new Set<Net.Socket>()), destroyAll)
    return yield* proxy.dispatcher(options.proxy ?? "env", {
      connections: options.connections ?? null,
      connect: tracked(Undici.buildConnector(forServers), sockets),
      // Behind a proxy undici makes the connector itself, over a socket of the client to the proxy.
      requestTls: forServers,
      clientFactory: (origin) =>
        new Undici.Pool(origin, { connect: tracked(Undici.buildConnector(forProxies), sockets) })
    })
  })

const checkConnections = ({ connections }: Options): Effect.Effect<void, ConfigurationError> =>
  connections === undefined || (Number.isSafeInteger(connections) && connections >= 1)
    ? Effect.void
    : Effect.fail(new ConfigurationError({ option: "connections", reason: "must be a whole number from 1" }))

/**
 * A destroyed dispatcher forgets the sockets that were still connecting, and they hold the process for undici's connect
 * timeout of 10 seconds: so they are remembered here.
 */
const tracked = (
  connect: (...parameters: Parameters<Undici.buildConnector.connector>) => unknown, // the socket; undici types it void
  sockets: Set<Net.Socket>
): Undici.buildConnector.connector =>
(options, callback) => {
  const socket = connect(options, callback)
  if (!(socket instanceof Net.Socket)) return
  sockets.add(socket)
  socket.once("close", () => sockets.delete(socket))
}

/** With an error, since undici's connector waits for one or for the connection. */
const destroyAll = (sockets: ReadonlySet<Net.Socket>): Effect.Effect<void> =>
  Effect.sync(() => sockets.forEach((socket) => socket.destroy(new Undici.errors.ClientDestroyedError())))
