/**
 * A `TokenStore` on Redis, through `@redis/client`. The entries that it stores are already sealed.
 *
 * @since 1.0.0
 */
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import {
  type Lease,
  type Service,
  type Stored,
  TokenStore,
  TokenStoreError
} from "@store-api/core/TokenStore"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as connection from "./internal/connection.js"
import { reasonOf } from "./internal/reason.js"

/**
 * The addresses of Redis, and a prefix for keys.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /**
   * `redis://user:password@host:port/database` for one server, `redis+cluster://user:password@host:port,host:port` for
   * nodes of a cluster, or `redis+sentinel://user:password@sentinel:port,sentinel:port/name/database` for the primary
   * that the sentinels know by this name.
   *
   * With `rediss` instead of `redis`, all connections use TLS. Only the hosts and the name are required; the port is
   * 6379, or 26379 for sentinels. All parts are percent-encoded. A sentinel that needs authentication gets the same
   * user and password. TLS trusts the certificate authorities that Node trusts; add your own by `NODE_EXTRA_CA_CERTS`.
   * To send a client certificate, create the client yourself and use `fromClient`.
   */
  readonly url: Redacted.Redacted
  /** A prefix for the name of each key, for a database that several applications share. Default none. */
  readonly prefix?: string | undefined
}

/**
 * The commands that the store sends, which every client, pool, cluster and sentinel of `@redis/client` has. Each
 * command has one key, so that a cluster can run it.
 *
 * @see fromClient
 *
 * @since 1.0.0
 * @category models
 */
export interface Commands {
  /** Sets a value that expires, by `SET` with `PX`. */
  readonly set: (
    key: string,
    value: string,
    options: { readonly PX: number }
  ) => Promise<string | null>
  /** Runs a script that calls `GET`, `SET`, `DEL`, `PTTL` or `PEXPIRE`, by `EVAL`. */
  readonly eval: (
    script: string,
    options: { readonly keys: Array<string>; readonly arguments: Array<string> }
  ) => Promise<unknown>
}

/**
 * Creates a store over a client that your application already has: a cluster, a sentinel, a pool, or a client with a
 * certificate. The store neither connects nor closes it. Set `disableOfflineQueue` on the client, so that a command
 * fails at once while Redis is down, and listen to its `error` event: without a listener, Node ends the process. A
 * command that a cluster rejects during a failover is tried again for up to 30 seconds, within `storeTimeout`.
 *
 * @example
 * ```ts
 * import { createCluster } from "@redis/client"
 * import { TokenStore } from "@store-api/core"
 * import { RedisTokenStore } from "@store-api/redis"
 * import { Effect, Layer } from "effect"
 *
 * const cluster = Effect.acquireRelease(
 *   Effect.promise(() =>
 *     createCluster({
 *       rootNodes: [{ url: "rediss://cache.store.example" }],
 *       // Other nodes get only these options.
 *       defaults: { socket: { tls: true }, disableOfflineQueue: true }
 *     }).on("error", () => undefined).connect()
 *   ),
 *   (cluster) => Effect.promise(() => cluster.close())
 * )
 *
 * const RedisLive = Layer.scoped(
 *   TokenStore.TokenStore,
 *   Effect.map(cluster, (cluster) => RedisTokenStore.fromClient(cluster))
 * )
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const fromClient = (client: Commands, prefix?: string): Service => {
  const run: Run = (command) =>
    Effect.tryPromise({ try: () => command(client), catch: reasonOf })
  if (!("masters" in client)) return storeOf({ run }, prefix)
  // A cluster rejects commands while a replica takes over. A sentinel repeats them.
  const { lastFailure, retry } = connection.makeRetries()
  return storeOf({ run: (command) => retry(run(command)), lastFailure }, prefix)
}

/**
 * Creates a store over a new connection, which reconnects after a fault and closes with the scope. Fails with
 * `ConfigurationError` when an option is unusable. Does not fail when Redis is unreachable: it waits one second for the
 * connection, and operations fail until Redis responds. With several servers, an operation is tried again on the
 * server that takes over, for up to 30 seconds, within `storeTimeout`.
 *
 * @example
 * ```ts
 * import { RedisTokenStore } from "@store-api/redis"
 * import { Effect, Redacted } from "effect"
 *
 * const isReached = Effect.scoped(Effect.gen(function*() {
 *   const store = yield* RedisTokenStore.make({ url: Redacted.make("redis://127.0.0.1:6379") })
 *   return yield* Effect.isSuccess(store.get("any key"))
 * }))
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<Service, ConfigurationError, Scope.Scope> =>
  Effect.gen(function*() {
    if (!Predicate.isReadonlyRecord(options)) {
      return yield* unusable("RedisTokenStore", "must be an object")
    }
    const { prefix = "", url } = options
    if (!Redacted.isRedacted(url)) {
      return yield* unusable("RedisTokenStore.url", "must be wrapped with Redacted.make")
    }
    if (!Predicate.isString(prefix)) {
      return yield* unusable("RedisTokenStore.prefix", "must be a text")
    }
    return storeOf(yield* connection.make(url), prefix)
  })

const unusable = (option: string, reason: string) => new ConfigurationError({ option, reason })

/**
 * Provides the result of `make` as a layer. Fails with `ConfigurationError` when an option is unusable.
 *
 * @example
 * ```ts
 * import { NodeStoreAuth } from "@store-api/platform-node"
 * import { RedisTokenStore } from "@store-api/redis"
 * import { Layer, Redacted } from "effect"
 *
 * const StoreAuthLive = NodeStoreAuth.layerSharedConfig().pipe(
 *   Layer.provide(RedisTokenStore.layer({ url: Redacted.make("redis://127.0.0.1:6379") }))
 * )
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<TokenStore, ConfigurationError> =>
  Layer.scoped(TokenStore, make(options))

/**
 * Like `layer`, with options from the configuration: by default the URL from `STORE_API_REDIS_URL`. Also fails with
 * Effect's `ConfigError` when a variable is missing.
 *
 * Each option is a `Config`: pass plain values to `layer`, or wrap them with `Config.succeed`.
 *
 * @example
 * ```ts
 * import { RedisTokenStore } from "@store-api/redis"
 * import { Config } from "effect"
 *
 * const RedisLive = RedisTokenStore.layerConfig({
 *   url: Config.redacted("REDIS_URL"),
 *   prefix: Config.succeed("my-application:")
 * })
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerConfig = (
  config: Config.Config.Wrap<Options> = { url: Config.redacted("STORE_API_REDIS_URL") }
): Layer.Layer<TokenStore, ConfigurationError | ConfigError.ConfigError> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(config), layer))

/**
 * Returns the milliseconds that remain of a key, a space, and its value. Another application may have stored a value of
 * another type under this key, which the next entry replaces.
 */
const getWithLife = "local found = redis.pcall('GET', KEYS[1]) " +
  "if type(found) == 'string' then return redis.call('PTTL', KEYS[1]) .. ' ' .. found end " +
  "if found and not string.find(found.err, 'WRONGTYPE') then return found end return false"

/** Returns none if nothing remains, or if the key never expires (-1), because another application has set it. */
const storedOf = (reply: unknown): Option.Option<Stored> => {
  const [, millis, entry] = /^([1-9]\d*) ([^]*)$/.exec(String(reply)) ?? []
  return millis === undefined || entry === undefined
    ? Option.none()
    : Option.some({ entry, remaining: Number(millis) })
}

/** Sets a key that does not exist. Succeeds again if it has this value: the response to the first attempt was lost. */
const setIfAbsent = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) " +
  "or redis.call('GET', KEYS[1]) == ARGV[1] then return 1 end return 0"

/** Deletes a key if it still has this value. */
const removeIfSame =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

/** Sets the expiry of a key if it still has this value. */
const extendIfSame =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"

/** Runs a command. Fails with the reason. */
type Run = <A>(command: (client: Commands) => Promise<A>) => Effect.Effect<A, string>

interface Connected extends Pick<Service, "lastFailure"> {
  readonly run: Run
}

const storeOf = ({ lastFailure, run }: Connected, prefix = ""): Service => {
  const send = <A>(
    operation: TokenStoreError["operation"],
    command: (client: Commands) => Promise<A>
  ) => Effect.mapError(run(command), (reason) => new TokenStoreError({ operation, reason }))

  const runScript = (
    operation: TokenStoreError["operation"],
    script: string,
    key: string,
    ...values: Array<string>
  ) =>
    send(
      operation,
      (client) => client.eval(script, { keys: [prefix + key], arguments: values })
    )

  return TokenStore.of({
    get: (key) => Effect.map(runScript("get", getWithLife, key), storedOf),
    put: (key, entry, life) =>
      Effect.asVoid(
        send("put", (client) => client.set(prefix + key, entry, { PX: wholeMillis(life) }))
      ),
    remove: (key, entry) => Effect.map(runScript("remove", removeIfSame, key, entry), isDone),
    lease: (key, duration) =>
      Effect.suspend(() => {
        const name = `${key}:lease`
        const owner = globalThis.crypto.randomUUID()
        const millis = String(wholeMillis(duration))
        const lease: Lease = {
          extend: Effect.map(runScript("extend", extendIfSame, name, owner, millis), isDone),
          release: Effect.asVoid(runScript("release", removeIfSame, name, owner))
        }
        return Effect.map(
          runScript("lease", setIfAbsent, name, owner, millis),
          (reply) => isDone(reply) ? Option.some(lease) : Option.none()
        )
      }),
    lastFailure
  })
}

const isDone = (reply: unknown): boolean => reply === 1

const wholeMillis = (duration: Duration.DurationInput): number =>
  Math.max(1, Math.ceil(Duration.toMillis(duration)))
