/**
 * A `TokenSource` that shares tokens between processes through a `TokenStore`, so that they acquire one token together.
 * It wraps another source, and no other layer changes.
 *
 * @since 1.0.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import { isExpired } from "./AccessToken.js"
import type {
  AccessTokenError,
  ConfigurationError,
  CredentialsError
} from "./AccessTokenError.js"
import * as instant from "./internal/instant.js"
import { defaultLeeway } from "./internal/lifetime.js"
import { checkKinds, durationOf, positiveDurationOf, unusable } from "./internal/options.js"
import * as reliableStore from "./internal/sharing/reliableStore.js"
import * as seals from "./internal/sharing/seal.js"
import * as storedToken from "./internal/sharing/storedToken.js"
import { waitAtMost } from "./internal/waitAtMost.js"
import * as TokenSource from "./TokenSource.js"
import {
  type Lease,
  type Service as Store,
  TokenStore,
  type TokenStoreError
} from "./TokenStore.js"

/**
 * The time limits of sharing. Each has a default, and a duration outside its limits is clamped.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /**
   * A process without a token does not accept a stored one with less than this left, unless it can acquire no other.
   * Default 30 seconds, at most 5 % of the lifetime of the token. The layers of `StoreAuth` pass the `leeway` of the
   * provider, so errors name it `provider.leeway`.
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
   * `TokenEndpoint`: after a failed acquisition only one of the waiting processes sends the next request. The provider
   * ends every acquisition after 2 minutes.
   */
  readonly maxWait?: Duration.DurationInput | undefined
  /**
   * The time limit of one operation of the store. Afterwards the token is acquired without the store. After a token has
   * arrived, its caller waits for the store at most this long. Default 1 second, at most 30 seconds.
   */
  readonly storeTimeout?: Duration.DurationInput | undefined
  /**
   * Seals stored tokens, and must be the same in all processes that share a token. It must be hard to guess: at least
   * 32 random characters. Default: the client secret, or for your own source `secret` of its purpose. Required for a
   * client without a secret: otherwise its tokens are not shared.
   */
  readonly sealingKey?: Redacted.Redacted | undefined
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

/** The time limit for reading the purpose, and the credentials in it. The endpoint reads them again. */
const purposeTimeout = "10 seconds"

/** In milliseconds. A slower store would only delay acquisitions. */
const maxStoreTimeout = 30_000

/** In milliseconds. */
const leaseRange = { least: 100, most: 60 * 60_000 }

/** A lease is extended when this part of its duration has passed. */
const extendedAfter = 1 / 3

/**
 * Milliseconds between two reads of the store during the acquisition of another process, times 0.75 to 1 at random.
 * They grow slowly, because a caller here may wait one pause longer than a caller in the other process.
 */
const firstPause = 50
const pauseGrowth = 1.25
const longestPause = 500

/** The options in whole milliseconds, within their limits. */
const limitsOf = (
  {
    lease = "5 seconds",
    leeway = defaultLeeway,
    maxWait = "45 seconds",
    storeTimeout = "1 second"
  }: Options
) =>
  Effect.all({
    leaseMillis: durationOf("shared.lease", lease, leaseRange),
    leeway: durationOf("provider.leeway", leeway),
    maxWait: durationOf("shared.maxWait", maxWait),
    storeTimeout: durationOf("shared.storeTimeout", storeTimeout, { most: maxStoreTimeout })
  })

/**
 * Wraps the `TokenSource` in the context. Only processes whose sources have the same purpose share a token: the URL of
 * the endpoint, the credentials, and the `identity` of the request. Fails with `ConfigurationError` if the source has
 * no purpose, or if an option is not a duration from zero.
 *
 * An acquisition first reads the store. If there is no usable token, it takes the lease, reads the store again,
 * acquires a token from the wrapped source and stores it. If another process has the lease, it waits for that process
 * to store a token. Only the store's own clock decides how long a stored token is valid, so processes whose clocks are
 * wrong can share it.
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
 * import { SharedTokenSource, TokenSource, TokenStore } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * // All sources must use the same store. `TokenStore.makeMemory` creates another one at each call.
 * const shared = (source: TokenSource.Service, store: TokenStore.Service) =>
 *   SharedTokenSource.make({ storeTimeout: "2 seconds" }).pipe(
 *     Effect.provideService(TokenSource.TokenSource, source),
 *     Effect.provideService(TokenStore.TokenStore, store)
 *   )
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  options: Options = {}
): Effect.Effect<
  TokenSource.Service,
  ConfigurationError,
  TokenSource.TokenSource | TokenStore
> =>
  Effect.gen(function*() {
    yield* checkKinds("shared", options)
    const source = yield* TokenSource.TokenSource
    if (!Option.isOption(source.purpose) || Option.isNone(source.purpose)) {
      return yield* unusable(
        "TokenSource.purpose",
        "is missing: a source without a purpose cannot be shared"
      )
    }
    const readPurpose = source.purpose.value
    if (!Effect.isEffect(readPurpose)) {
      return yield* unusable("TokenSource.purpose", "must be an Effect")
    }
    const { leaseMillis, leeway, maxWait, storeTimeout } = yield* limitsOf(options)
    const { sealingKey } = options
    const isUsableKey = sealingKey === undefined ||
      (Redacted.isRedacted(sealingKey) && Predicate.isString(Redacted.value(sealingKey)) &&
        Redacted.value(sealingKey) !== "")
    if (!isUsableKey) {
      return yield* unusable("shared.sealingKey", "must be a text, wrapped with Redacted.make")
    }
    const { noteRecovery, store } = yield* reliableStore.make(
      yield* TokenStore,
      storeTimeout,
      storeFailures
    )
    const knownEnd = yield* Ref.make<storedToken.KnownEnd | undefined>(undefined)

    return {
      ...source,
      acquire: ({ reason, replacing }) =>
        Effect.gen(function*() {
          const purpose = yield* readSealed(
            sealingKey === undefined
              ? readPurpose
              : Effect.map(readPurpose, (purpose) => ({ ...purpose, secret: sealingKey }))
          )
          if (purpose === undefined) {
            return yield* source.acquire({ reason, replacing })
          }
          const { maxLife, sealing } = purpose
          const wanted = {
            reason,
            replacing: Option.getOrUndefined(replacing),
            leeway,
            maxLife
          }
          const stored = yield* storedToken.make(store, sealing, wanted, knownEnd)
          const lease = store.lease(sealing.key, leaseMillis)
          const acquire = Effect.suspend(() => source.acquire({ reason, replacing })).pipe(
            Effect.zipWith(instant.now, (token, at): storedToken.Timed => ({ token, at }))
          )
          const sharing = { stored, acquire, lease, leaseMillis, maxWait }
          return yield* closeInTime(
            Effect.zipRight(noteRecovery, findOrAcquire(sharing)),
            storeTimeout
          ).pipe(
            Effect.flatMap(storedToken.toCurrentTime),
            // It may have expired while its caller waited for the store, for example if the machine slept.
            Effect.repeat({ while: isExpired, times: 1 })
          )
        })
    }
  })

/**
 * Provides the result of `make` as a layer, which uses the `TokenSource` and the `TokenStore` in the context.
 *
 * @example
 * ```ts
 * import { ClientCredentials, SharedTokenSource, TokenEndpoint } from "@store-api/core"
 * import { Layer } from "effect"
 *
 * const EndpointLive = TokenEndpoint.layer({
 *   authUrl: "https://auth.store.example",
 *   credentials: ClientCredentials.fromConfig()
 * })
 *
 * const TokensLive = SharedTokenSource.layer().pipe(Layer.provide(EndpointLive))
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (
  options: Options = {}
): Layer.Layer<
  TokenSource.TokenSource,
  ConfigurationError,
  TokenSource.TokenSource | TokenStore
> => Layer.effect(TokenSource.TokenSource, make(options))

/**
 * Reads the purpose, and derives the sealing from it. Returns `undefined` if that fails: nothing is shared, and the
 * wrapped source reports the error.
 */
const readSealed = (readPurpose: Effect.Effect<TokenSource.Purpose, CredentialsError>) =>
  Effect.gen(function*() {
    const purpose = yield* readPurpose
    const maxLife = yield* checkPurpose(purpose)
    return yield* Effect.map(seals.make(purpose), (sealing) => ({ maxLife, sealing })).pipe(
      Effect.catchAllCause(() =>
        warnUnshared("Web Crypto could not derive a key; this access token is not shared")
      )
    )
  }).pipe(
    Effect.catchTags({
      ConfigurationError: ({ message }) =>
        Effect.annotateLogs(
          warnUnshared(
            "The purpose of the token source is wrong; this access token is not shared"
          ),
          "reason",
          message
        ),
      CredentialsError: () => Effect.succeed(undefined)
    }),
    waitAtMost(
      purposeTimeout,
      warnUnshared(
        "The client credentials were not read in time; this access token is not shared"
      )
    ),
    Effect.catchAllCause(() =>
      warnUnshared(
        "The purpose of the token source could not be read; this access token is not shared"
      )
    )
  )

const warnUnshared = (message: string) => Effect.as(Effect.logWarning(message), undefined)

/** Returns the longest lifetime in milliseconds. */
const checkPurpose = ({ maxLifetime, name, secret }: TokenSource.Purpose) =>
  Effect.gen(function*() {
    if (!Array.isArray(name) || name.length === 0) {
      return yield* unusable("TokenSource.purpose.name", "must be a list of texts")
    }
    const text: unknown = Redacted.isRedacted(secret) ? Redacted.value(secret) : undefined
    if (!Predicate.isString(text)) {
      return yield* unusable(
        "TokenSource.purpose.secret",
        "must be a text, wrapped with Redacted.make"
      )
    }
    // Anybody could derive the key from a secret that is empty.
    if (text === "") {
      return yield* unusable(
        "shared.sealingKey",
        "is missing, a client without a secret needs it"
      )
    }
    return yield* positiveDurationOf("TokenSource.purpose.maxLifetime", maxLifetime)
  })

/**
 * Runs an acquisition in a scope, whose finalizers store its token and release its lease. When it has ended, its caller
 * waits for them at most for one time limit of the store. They go on without it.
 */
const closeInTime = <A, E>(
  acquisition: Effect.Effect<A, E, Scope.Scope>,
  limit: number
): Effect.Effect<A, E> =>
  Effect.acquireUseRelease(
    Scope.make(),
    (scope) => Scope.extend(acquisition, scope),
    (scope, exit) =>
      Effect.uninterruptible(Scope.close(scope, exit)).pipe(
        waitAtMost(limit, Effect.void)
      )
  )

/** What an acquisition uses. Durations are in milliseconds. */
interface Sharing {
  readonly stored: storedToken.StoredToken
  /** Asks the wrapped source. */
  readonly acquire: Effect.Effect<storedToken.Timed, AccessTokenError>
  readonly lease: ReturnType<Store["lease"]>
  readonly leaseMillis: number
  readonly maxWait: number
}

/**
 * Returns the token in the store, or acquires one with the lease. While another process has the lease, waits and looks
 * again. If the store fails, acquires a token without it. If no token can be acquired, a short one is better than none.
 */
const findOrAcquire = (
  { acquire, lease, leaseMillis, maxWait, stored }: Sharing
): Effect.Effect<storedToken.Timed, AccessTokenError, Scope.Scope> => {
  const find = Effect.tap(
    stored.findUsable,
    (found) => found === undefined ? Effect.void : Metric.increment(storeHits)
  )

  /** Stores the token when the scope closes, if it still may. */
  const acquireAndStore = (mayStore: Effect.Effect<boolean, TokenStoreError>) =>
    Effect.gen(function*() {
      const startedAt = yield* instant.now
      const acquired = yield* acquire
      yield* Effect.addFinalizer(() => stored.publish(acquired, startedAt, mayStore))
      return acquired
    })

  /**
   * Returns the token that another process stored before this one took the lease, or else a new one. Returns
   * `undefined` if another process has the lease.
   */
  const acquireWithLease = Effect.gen(function*() {
    const held = yield* Effect.acquireRelease(
      lease,
      Option.match({
        onNone: () => Effect.void,
        onSome: ({ release }) => Effect.ignore(release)
      })
    )
    if (Option.isNone(held)) return undefined
    const found = yield* find
    if (found !== undefined) return found
    yield* Effect.forkScoped(
      Effect.interruptible(keepExtending(held.value, leaseMillis))
    )
    // A process that was frozen may have lost the lease to another one.
    return yield* acquireAndStore(held.value.extend)
  })

  return Effect.gen(function*() {
    const end = (yield* instant.now).monotonic + (yield* jittered(maxWait))
    let pause = firstPause
    while ((yield* instant.now).monotonic < end) {
      const found = (yield* find) ?? (yield* acquireWithLease)
      if (found !== undefined) return found
      yield* Effect.sleep(Math.ceil(yield* jittered(pause)))
      pause = Math.min(pauseGrowth * pause, longestPause)
    }
    // The process with the lease may be stuck, so this one acquires without the lease.
    return (yield* find) ?? (yield* acquireAndStore(Effect.succeed(true)))
  }).pipe(
    Effect.catchTag("TokenStoreError", () => acquire),
    Effect.catchAllCause((cause) =>
      Effect.flatMap(
        stored.short,
        (short) => short === undefined ? Effect.failCause(cause) : Effect.succeed(short)
      )
    )
  )
}

/** Extends a lease until this effect is interrupted or the lease is lost. */
const keepExtending = (lease: Lease, millis: number) =>
  lease.extend.pipe(
    Effect.delay(Math.ceil(extendedAfter * millis)),
    Effect.orElseSucceed(() => true),
    Effect.repeat({ while: (isHeld) => isHeld })
  )

const jittered = (millis: number): Effect.Effect<number> =>
  Effect.map(Random.next, (chance) => millis * (0.75 + 0.25 * chance))
