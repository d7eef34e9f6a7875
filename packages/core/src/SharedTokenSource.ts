/**
 * A `TokenSource` that shares tokens between processes through a `TokenStore`, so that they acquire one token together.
 * It wraps another source, and no other layer changes.
 *
 * @since 1.0.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type { AccessToken } from "./AccessToken.js"
import type { AccessTokenError, ConfigurationError, CredentialsError } from "./AccessTokenError.js"
import type { ClientCredentials } from "./ClientCredentials.js"
import { endpointUrl } from "./internal/baseUrl.js"
import { bounded } from "./internal/bounded.js"
import { longestLife, wholeMillis } from "./internal/lifetime.js"
import { monotonicMillis } from "./internal/monotonicMillis.js"
import { Renewal } from "./internal/renewal.js"
import * as reliableStore from "./internal/sharing/reliableStore.js"
import * as seals from "./internal/sharing/seal.js"
import * as storedToken from "./internal/sharing/storedToken.js"
import type * as TokenRequest from "./TokenRequest.js"
import * as TokenSource from "./TokenSource.js"
import { type Lease, type Service as Store, TokenStore } from "./TokenStore.js"

/**
 * The endpoint and credentials that identify the shared token, and the time limits.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /**
   * The same `authUrl` as for the endpoint. Only processes with the same `authUrl`, `path`, credentials and `request`
   * share a token.
   */
  readonly authUrl: string | URL
  /** The same `path` as for the endpoint. Default `/v1/oauth/accesstoken`. */
  readonly path?: string | undefined
  /** The same `request` as for the endpoint. Its `identity` counts. Default `TokenRequest.specification`. */
  readonly request?: TokenRequest.TokenRequest | undefined
  /** The same `maxLifetime` as for the endpoint. It limits stored tokens too. The default is that of the endpoint. */
  readonly maxLifetime?: Duration.DurationInput | undefined
  /**
   * The same effect as for the endpoint, run at each acquisition. Stored tokens are encrypted with a key that is
   * derived from the secret (HKDF-SHA-256, RFC 5869, and AES-256-GCM). The store sees neither the id nor the secret.
   */
  readonly credentials: Effect.Effect<ClientCredentials, CredentialsError>
  /**
   * The `leeway` of the provider. A process without a token does not accept a stored one with less than this left,
   * unless it can acquire no other. Default 30 seconds, at most 5 % of the lifetime of the token.
   */
  readonly leeway?: Duration.DurationInput | undefined
  /**
   * The duration of the lease. If a process crashes during an acquisition, the others wait until its lease expires. A
   * running process extends its lease for as long as the acquisition takes. Default 5 seconds, at least 0.1 seconds, at
   * most an hour.
   */
  readonly lease?: Duration.DurationInput | undefined
  /**
   * The maximum wait for the acquisition of another process, times a random factor of 0.75 to 1. Afterwards this
   * process acquires a token without the lease. Default 45 seconds, which is longer than the `deadline` of
   * `TokenEndpoint`: after a failed acquisition only one of the waiting processes sends the next request.
   */
  readonly maxWait?: Duration.DurationInput | undefined
  /**
   * The time limit of one operation of the store. Afterwards the token is acquired without the store. Default 1 second,
   * at most 30 seconds.
   */
  readonly storeTimeout?: Duration.DurationInput | undefined
}

/**
 * Counts failed operations of the store, by `operation`. After each failure the token was acquired without the store,
 * or it was not shared.
 *
 * @example
 * ```ts
 * import { SharedTokenSource } from "@store-api/core"
 * import { Metric } from "effect"
 *
 * const failedReads = Metric.value(Metric.tagged(SharedTokenSource.storeFailures, "operation", "get"))
 * ```
 *
 * @since 1.0.0
 * @category metrics
 */
export const storeFailures = Metric.counter("store_api_token_store_failures", {
  description: "Failed operations of the shared token store",
  incremental: true
})

/**
 * Counts the tokens that were found in the store. Each is a token request that this process did not send.
 *
 * @example
 * ```ts
 * import { SharedTokenSource } from "@store-api/core"
 * import { Metric } from "effect"
 *
 * const saved = Metric.value(SharedTokenSource.storeHits)
 * ```
 *
 * @since 1.0.0
 * @category metrics
 */
export const storeHits = Metric.counter("store_api_token_store_hits", {
  description: "Tokens that were found in the shared token store",
  incremental: true
})

/** The time limit for reading the credentials here. The endpoint reads them again, within its own deadline. */
const credentialsTimeout = "10 seconds"

/** Milliseconds. Limits the option, which may be `Infinity`. A slower store would only delay acquisitions. */
const maxStoreTimeout = 30_000

const shortestLease = 100
const longestLease = 60 * 60_000

/**
 * Milliseconds between two reads of the store during the acquisition of another process, times 0.75 to 1 at random.
 * They grow slowly, because a caller here may wait one pause longer than a caller in the other process.
 */
const firstPause = 50
const growth = 1.25
const longestPause = 500

/**
 * Wraps the `TokenSource` in the context. Fails with `ConfigurationError` if `authUrl` or `path` is invalid.
 *
 * An acquisition first reads the store. If there is no usable token, it takes the lease, reads the store again,
 * acquires a token from the wrapped source and stores it. If another process has the lease, it waits for that process
 * to store a token. A stored token keeps its `acquiredAt`.
 *
 * A renewal leaves the stored token in place until the new one overwrites it, so that a process that starts during a
 * slow or failed renewal uses it. A token that an API rejected, or that `refresh` replaces, is removed. After that, any
 * other token is usable that expires later or was acquired later.
 *
 * If a renewal returns the same token again, that token is stored again. Until a quarter of its remaining lifetime is
 * left, other processes that renew it get it from the store, and the endpoint is not asked.
 *
 * If the store fails or times out, the token comes from the wrapped source. One warning is logged per outage.
 *
 * @example
 * ```ts
 * import { ClientCredentials, SharedTokenSource, TokenStore } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const inOneProcess = SharedTokenSource.make({
 *   authUrl: "https://auth.store.example",
 *   credentials: ClientCredentials.fromConfig()
 * }).pipe(Effect.provideServiceEffect(TokenStore.TokenStore, TokenStore.makeMemory))
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<TokenSource.Service, ConfigurationError, TokenSource.TokenSource | TokenStore> =>
  Effect.gen(function*() {
    const source = yield* TokenSource.TokenSource
    const { acquisition, store } = yield* reliableStore.make(
      yield* TokenStore,
      Math.min(Duration.toMillis(options.storeTimeout ?? "1 second"), maxStoreTimeout),
      storeFailures
    )
    const readSealing = sealingOf(options, {
      url: yield* endpointUrl({ ...options, allowInsecure: true }),
      // That of the default is empty.
      identity: options.request?.identity ?? ""
    })
    const maxWait = Duration.toMillis(options.maxWait ?? "45 seconds")
    const leaseMillis = Math.min(Math.max(wholeMillis(options.lease ?? "5 seconds"), shortestLease), longestLease)

    return TokenSource.make((replaced) =>
      Effect.gen(function*() {
        const acquire = Effect.suspend(() => source.acquire(replaced))
        const sealing = yield* readSealing
        if (sealing === undefined) return yield* acquire
        const now = yield* Clock.currentTimeMillis
        const token = storedToken.make(store, sealing, {
          replacing: Option.getOrUndefined(Option.filter(replaced, ({ expiresAt }) => expiresAt.epochMillis > now)),
          isRenewal: yield* Renewal,
          leeway: options.leeway,
          maxLife: longestLife(options)
        })
        const lease = store.lease(sealing.key, leaseMillis)
        return yield* acquisition(findOrAcquire({ ...token, acquire, lease, leaseMillis, maxWait }))
      })
    )
  })

/**
 * Provides the result of `make` as a layer, which uses the `TokenSource` and the `TokenStore` in the context.
 *
 * @example
 * ```ts
 * import { ClientCredentials, SharedTokenSource, TokenEndpoint } from "@store-api/core"
 * import { Layer } from "effect"
 *
 * const options = { authUrl: "https://auth.store.example", credentials: ClientCredentials.fromConfig() }
 *
 * const TokensLive = SharedTokenSource.layer(options).pipe(Layer.provide(TokenEndpoint.layer(options)))
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<TokenSource.TokenSource, ConfigurationError, TokenSource.TokenSource | TokenStore> =>
  Layer.effect(TokenSource.TokenSource, make(options))

/** Reads the credentials. Returns `undefined` if that fails: nothing is shared, and the endpoint reports the error. */
const sealingOf = ({ credentials }: Options, purpose: seals.Purpose) =>
  Effect.flatMap(credentials, (credentials) =>
    Effect.catchAllCause(
      seals.make(credentials, purpose),
      () => unsealed(Effect.logWarning("Web Crypto could not derive a key; this access token is not shared"))
    )).pipe(
      bounded(
        credentialsTimeout,
        unsealed(Effect.logWarning("The client credentials were not read in time; this access token is not shared"))
      ),
      Effect.catchAllCause(() => Effect.succeed(undefined))
    )

const unsealed = Effect.as(undefined)

/** What an acquisition uses. Durations are in milliseconds. */
interface Sharing extends storedToken.StoredToken {
  /** Asks the wrapped source. */
  readonly acquire: Effect.Effect<AccessToken, AccessTokenError>
  readonly lease: ReturnType<Store["lease"]>
  readonly leaseMillis: number
  readonly maxWait: number
}

/**
 * Returns the token in the store, or acquires one with the lease. While another process has the lease, waits and looks
 * again. If the store fails, acquires a token without it. If no token can be acquired, a short one is better than none.
 */
const findOrAcquire = (sharing: Sharing): Effect.Effect<AccessToken, AccessTokenError> =>
  Effect.gen(function*() {
    const end = (yield* monotonicMillis) + (yield* jittered(sharing.maxWait))
    for (let pause = firstPause; (yield* monotonicMillis) < end; pause = Math.min(growth * pause, longestPause)) {
      const found = (yield* find(sharing)) ?? (yield* acquireWithLease(sharing))
      if (found !== undefined) return found
      yield* Effect.sleep(Math.ceil(yield* jittered(pause)))
    }
    return (yield* find(sharing)) ?? (yield* acquireAndPublish(sharing))
  }).pipe(
    Effect.catchTag("TokenStoreError", () => sharing.acquire),
    Effect.catchAllCause((cause) =>
      Effect.flatMap(sharing.short, (short) => short ? Effect.succeed(short) : Effect.failCause(cause))
    )
  )

const find = (sharing: Sharing) =>
  Effect.tap(sharing.find, (found) => found ? Metric.increment(storeHits) : Effect.void)

const acquireAndPublish = ({ acquire, publish }: Sharing) => Effect.tap(acquire, publish)

/**
 * Returns the token that another process stored before this one took the lease, or else a new one. Returns `undefined`
 * if another process has the lease.
 */
const acquireWithLease = (sharing: Sharing) =>
  Effect.acquireUseRelease(
    sharing.lease,
    (lease) =>
      Effect.gen(function*() {
        if (Option.isNone(lease)) return undefined
        const found = yield* find(sharing)
        if (found !== undefined) return found
        yield* Effect.forkScoped(Effect.interruptible(keepExtending(lease.value, sharing.leaseMillis)))
        return yield* acquireAndPublish(sharing)
      }).pipe(Effect.scoped),
    (lease) => Option.isSome(lease) ? Effect.ignore(lease.value.release) : Effect.void
  )

/** Extends a lease until this effect is interrupted or the lease is lost. */
const keepExtending = (lease: Lease, millis: number): Effect.Effect<void> =>
  Effect.sleep(Math.ceil(millis / 3)).pipe(
    Effect.zipRight(lease.extend),
    Effect.orElseSucceed(() => true),
    Effect.repeat({ while: (held) => held }),
    Effect.asVoid
  )

const jittered = (millis: number): Effect.Effect<number> =>
  Effect.map(Random.next, (chance) => millis * (0.75 + 0.25 * chance))
