/**
 * `TokenStore` on Redis, through its own client library. Entries are sealed before they come here.
 *
 * @since 0.1.0
 */
import { rootCertificates } from "node:tls"
import { createClient } from "@redis/client"
import type { Service } from "@store-api/core/TokenStore"
import { type Lease, TokenStore, TokenStoreError } from "@store-api/core/TokenStore"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"

/**
 * Where Redis is, and how it is reached.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** `redis://` or, over TLS, `rediss://`, with user name, password, host, port and database as its parts. */
  readonly url: Redacted.Redacted
  /** Put before the name of each key. Default none: the names tell already what they are of. */
  readonly prefix?: string | undefined
  /** How long the layer waits for the first connection; then it is built without. Default 1 second. */
  readonly connectTimeout?: Duration.DurationInput | undefined
  /** Certificates for `rediss://`, as PEM: authorities besides the system's, and a client certificate with its key. */
  readonly tls?: {
    readonly ca?: string | undefined
    readonly cert?: string | undefined
    readonly key?: Redacted.Redacted | undefined
  } | undefined
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
  readonly get: (key: string) => Promise<string | null>
  readonly set: (
    key: string,
    value: string,
    options: { readonly PX: number; readonly NX?: true }
  ) => Promise<string | null>
  readonly eval: (
    script: string,
    options: { readonly keys: Array<string>; readonly arguments: Array<string> }
  ) => Promise<unknown>
}

/** Compare and delete, in one step. */
const removeIfSame = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

/** Compare and set the end anew, in one step. */
const extendIfSame =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"

/**
 * The store over a client of your own: a cluster, a sentinel, or one that the application has anyway. It is neither connected
 * nor closed here. Let it refuse commands while it has no connection (`disableOfflineQueue`), so that a store that is down is
 * a miss at once.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromClient = (client: Commands, prefix = ""): Service => {
  const command = <A>(
    operation: TokenStoreError["operation"],
    run: () => Promise<A>
  ): Effect.Effect<A, TokenStoreError> =>
    Effect.tryPromise({ try: run, catch: (error) => new TokenStoreError({ operation, reason: reasonOf(error) }) })

  const script = (operation: TokenStoreError["operation"], text: string, key: string, ...words: Array<string>) =>
    Effect.map(command(operation, () => client.eval(text, { keys: [key], arguments: words })), (done) => done === 1)

  return TokenStore.of({
    get: (key) => Effect.map(command("get", () => client.get(prefix + key)), Option.fromNullable),
    put: (key, entry, life) =>
      Effect.asVoid(command("put", () => client.set(prefix + key, entry, { PX: wholeMillis(life) }))),
    remove: (key, entry) => script("remove", removeIfSame, prefix + key, entry),
    lease: (key, duration) => {
      const name = `${prefix}${key}:lease`
      const owner = globalThis.crypto.randomUUID()
      const millis = wholeMillis(duration)
      const lease: Lease = {
        extend: script("extend", extendIfSame, name, owner, String(millis)),
        release: Effect.asVoid(script("release", removeIfSame, name, owner))
      }
      return Effect.map(
        command("lease", () => client.set(name, owner, { PX: millis, NX: true })),
        (set) => set === null ? Option.none() : Option.some(lease)
      )
    }
  })
}

/**
 * The store over a connection of its own, that is made anew whenever it breaks, and closed with the scope. A Redis that cannot
 * be reached is no failure here: the operations fail until it is back.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.gen(function*() {
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => clientOf(options)),
      (client) => Effect.sync(() => client.destroy())
    )
    // It goes on trying until it is destroyed.
    const connecting = yield* Effect.forkScoped(Effect.ignore(Effect.tryPromise(() => client.connect())))
    yield* Effect.timeoutOption(Fiber.join(connecting), options.connectTimeout ?? "1 second")
    return fromClient(client, options.prefix)
  })

/**
 * The store as a layer.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<TokenStore> => Layer.scoped(TokenStore, make(options))

/**
 * The same from the configuration. Default: `STORE_API_REDIS_URL`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  config: Config.Config.Wrap<Options> = { url: Config.redacted("STORE_API_REDIS_URL") }
): Layer.Layer<TokenStore, ConfigError.ConfigError> => Layer.unwrapEffect(Effect.map(Config.unwrap(config), layer))

const clientOf = ({ tls, url }: Options) => {
  const client = createClient({
    url: Redacted.value(url),
    // Without a connection a command fails at once: a store that is down is a miss, and nothing is sent late.
    disableOfflineQueue: true,
    maintNotifications: "disabled",
    ...(tls !== undefined && {
      socket: {
        tls: true,
        ...(tls.ca !== undefined && { ca: [...rootCertificates, tls.ca] }),
        ...(tls.cert !== undefined && { cert: tls.cert }),
        ...(tls.key !== undefined && { key: Redacted.value(tls.key) })
      }
    })
  })
  // Each operation says of itself that it failed; without a listener Node would end the process.
  client.on("error", () => undefined)
  return client
}

/** The system's or Redis's own name of a fault, which is short and holds nothing of what was sent. */
const reasonOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "code") && typeof error.code === "string") return error.code
  if (!(error instanceof Error)) return "unknown"
  const [word = ""] = /^[A-Z]{3,}(?= )/.exec(error.message) ?? []
  return word === "" ? error.constructor.name : word
}

const wholeMillis = (duration: Duration.DurationInput): number => Math.max(1, Math.ceil(Duration.toMillis(duration)))
