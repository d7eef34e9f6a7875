/**
 * `TokenStore` on Redis, through its own client library. Entries are sealed before they come here.
 *
 * @since 0.1.0
 */
import type { ConfigurationError } from "@store-api/core/AccessTokenError"
import type { Service } from "@store-api/core/TokenStore"
import { type Lease, TokenStore, TokenStoreError } from "@store-api/core/TokenStore"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as connection from "./internal/connection.js"
import { reasonOf } from "./internal/reason.js"

/**
 * Where Redis is.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /**
   * `redis://user:password@host:port/database`, or `rediss://` over TLS; all parts but the host may be missing, and are
   * percent-encoded. TLS trusts what Node trusts (`NODE_EXTRA_CA_CERTS` for an authority of your own); a client certificate
   * needs a client of your own, see `fromClient`.
   */
  readonly url: Redacted.Redacted
  /** Put before the name of each key, where several applications share a database. Default none. */
  readonly prefix?: string | undefined
}

/**
 * The commands that the store sends: what the clients, pools, clusters and sentinels of `@redis/client` have in common.
 * Each is of a single key, so that a cluster can do it.
 *
 * @see fromClient
 *
 * @since 0.1.0
 * @category models
 */
export interface Commands {
  /** The value of a key, by `GET`. */
  readonly get: (key: string) => Promise<string | null>
  /** Sets a value that expires, by `SET` with `PX`; for a lease also `NX`. */
  readonly set: (
    key: string,
    value: string,
    options: { readonly PX: number; readonly NX?: true }
  ) => Promise<string | null>
  /** Runs a script that calls `GET`, `DEL` or `PEXPIRE`, by `EVAL`. */
  readonly eval: (
    script: string,
    options: { readonly keys: Array<string>; readonly arguments: Array<string> }
  ) => Promise<unknown>
}

/**
 * The store over a client of your own: a cluster, a sentinel, a pool, one with a client certificate, or one that the
 * application has anyway. It is neither connected nor closed here. Let it refuse commands while it has no connection
 * (`disableOfflineQueue`), so that a store that is down is a miss at once, and listen to its `error` event.
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
 *     createCluster({ rootNodes: [{ url: "rediss://cache.store.example" }], defaults: { disableOfflineQueue: true } })
 *       .on("error", () => undefined)
 *       .connect()
 *   ),
 *   (cluster) => Effect.promise(() => cluster.close())
 * )
 *
 * const RedisLive = Layer.scoped(TokenStore.TokenStore, Effect.map(cluster, (cluster) => RedisTokenStore.fromClient(cluster)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromClient = (client: Commands, prefix?: string): Service =>
  storeOf((command) => Effect.tryPromise({ try: () => command(client), catch: reasonOf }), prefix)

/**
 * The store over a connection of its own, that is made anew whenever it breaks, and closed with the scope. Fails with
 * `ConfigurationError` when the URL cannot be used. A Redis that cannot be reached is no failure here: it is waited for a
 * second, and the operations fail until it is there.
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
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<Service, ConfigurationError, Scope.Scope> =>
  Effect.map(connection.make(options.url), (run) => storeOf(run, options.prefix))

/**
 * The store as a layer. Fails with `ConfigurationError` when the URL cannot be used.
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
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<TokenStore, ConfigurationError> =>
  Layer.scoped(TokenStore, make(options))

/**
 * `layer`, its options read from the configuration; by default the URL from `STORE_API_REDIS_URL`. Fails besides with
 * Effect's `ConfigError`, when one is missing.
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
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  config: Config.Config.Wrap<Options> = { url: Config.redacted("STORE_API_REDIS_URL") }
): Layer.Layer<TokenStore, ConfigurationError | ConfigError.ConfigError> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(config), layer))

/** Compare and delete, in one step. */
const removeIfSame = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

/** Compare and set the end anew, in one step. */
const extendIfSame =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"

/** How a command is run; it fails with the reason, in a word. */
type Run = <A>(command: (client: Commands) => Promise<A>) => Effect.Effect<A, string>

const storeOf = (run: Run, prefix = ""): Service => {
  const command = <A>(
    operation: TokenStoreError["operation"],
    command: (client: Commands) => Promise<A>
  ): Effect.Effect<A, TokenStoreError> =>
    Effect.mapError(run(command), (reason) => new TokenStoreError({ operation, reason }))

  const script = (operation: TokenStoreError["operation"], text: string, key: string, ...words: Array<string>) =>
    Effect.map(
      command(operation, (client) => client.eval(text, { keys: [key], arguments: words })),
      (done) => done === 1
    )

  return TokenStore.of({
    get: (key) =>
      Effect.map(command("get", (client) => client.get(prefix + key)), Option.fromNullable).pipe(
        // Of another type than ours: no entry, and the next one takes its place.
        Effect.catchIf(({ reason }) => reason === "WRONGTYPE", () => Effect.succeedNone)
      ),
    put: (key, entry, life) =>
      Effect.asVoid(command("put", (client) => client.set(prefix + key, entry, { PX: wholeMillis(life) }))),
    remove: (key, entry) => script("remove", removeIfSame, prefix + key, entry),
    lease: (key, duration) =>
      Effect.suspend(() => {
        const name = `${prefix}${key}:lease`
        const owner = globalThis.crypto.randomUUID()
        const millis = wholeMillis(duration)
        const lease: Lease = {
          extend: script("extend", extendIfSame, name, owner, String(millis)),
          release: Effect.asVoid(script("release", removeIfSame, name, owner))
        }
        return Effect.map(
          command("lease", (client) => client.set(name, owner, { PX: millis, NX: true })),
          (set) => set === null ? Option.none() : Option.some(lease)
        )
      })
  })
}

const wholeMillis = (duration: Duration.DurationInput): number => Math.max(1, Math.ceil(Duration.toMillis(duration)))
