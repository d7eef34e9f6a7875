import type * as Net from "node:net"
import * as Undici from "@effect/platform-node/Undici"
import type { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as bun from "./bun.js"
import { check, checkRecord, unusable } from "./options.js"
import * as proxy from "./proxy.js"
import * as tls from "./tls.js"

/** Those of `NodeHttp.Options`. */
interface Options extends tls.Options {
  readonly connections?: number | undefined
  readonly proxy?: URL | "env" | "none" | undefined
  readonly dispatcher?: object | undefined
}

/** Returns the user's own dispatcher, which stays open, or one that is destroyed with the scope. */
export const make = (
  options: Options
): Effect.Effect<Undici.Dispatcher, ConfigurationError, Scope.Scope> =>
  Effect.gen(function*() {
    yield* checkRecord("http", options)
    if (bun.isRunning()) {
      return yield* unusable("http", "cannot be a dispatcher on Bun, which replaces undici")
    }
    const { dispatcher, ...others } = options
    return yield* dispatcher === undefined ? create(others) : checkOwn(dispatcher, others)
  })

const checkOwn = (own: object, others: object) =>
  Effect.gen(function*() {
    const other = Object.entries(others).find(([, value]) => value !== undefined)
    if (other !== undefined) {
      return yield* unusable(
        "http.dispatcher",
        `must not be given together with http.${other[0]}`
      )
    }
    const isDispatcher = ["dispatch", "request"].every((name) =>
      Predicate.hasProperty(own, name) && Predicate.isFunction(own[name])
    )
    yield* check("http.dispatcher", isDispatcher, "must be a dispatcher of undici")
    // Users may have another version of undici, whose types differ.
    return own as Undici.Dispatcher
  })

const create = (options: Omit<Options, "dispatcher">) =>
  Effect.gen(function*() {
    const { connections, proxy: choice = "env" } = options
    const isUsable = connections === undefined ||
      (Number.isSafeInteger(connections) && connections >= 1)
    yield* check("http.connections", isUsable, "must be a whole number from 1")
    const { forProxies, forServers } = yield* tls.make(options)
    const sockets = yield* Effect.acquireRelease(
      Effect.sync(() => new Set<Net.Socket>()),
      destroyAll
    )
    return yield* proxy.makeDispatcher(choice, {
      connections: connections ?? null,
      ...http1,
      connect: trackSockets(Undici.buildConnector({ ...forServers, ...http1 }), sockets),
      // Without a tunnel, which is the default of undici 8, a proxy could read requests to http URLs.
      proxyTunnel: true,
      // For connections through a proxy, undici creates the connector itself, over a socket of `clientFactory`.
      requestTls: { ...forServers, ...http1 },
      clientFactory: (origin) =>
        new Undici.Pool(origin, {
          connect: trackSockets(Undici.buildConnector({ ...forProxies, ...http1 }), sockets)
        })
    })
  })

/** HTTP/2 is the default of undici 8. A handshake that hangs would then delay later requests. */
const http1 = { allowH2: false }

/**
 * Records open sockets. A destroyed dispatcher forgets those that are still connecting, which then keep the process
 * running for undici's connect timeout of 10 seconds.
 */
const trackSockets = (
  connect: (...parameters: Parameters<Undici.buildConnector.connector>) => unknown,
  sockets: Set<Net.Socket>
): Undici.buildConnector.connector =>
(options, callback) => {
  const socket = connect(options, callback) as Net.Socket // undici's type says void
  sockets.add(socket)
  socket.once("close", () => sockets.delete(socket))
}

/** Destroys with an error, because undici's connector waits for an error or for the connection. */
const destroyAll = (sockets: ReadonlySet<Net.Socket>): Effect.Effect<void> =>
  Effect.sync(() =>
    sockets.forEach((socket) => socket.destroy(new Undici.errors.ClientDestroyedError()))
  )

/** Adapts a dispatcher to the global `fetch`, which comes with the undici of Node. */
export const forFetch = (dispatcher: Undici.Dispatcher): Undici.Dispatcher => dispatcher
