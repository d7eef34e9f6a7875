/**
 * A `TokenSource` that shares: processes with one `TokenStore` buy one token together. The provider above it and the
 * endpoint below it do not change.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type { AccessToken } from "./AccessToken.js"
import type { ConfigurationError, CredentialsError } from "./AccessTokenError.js"
import type { ClientCredentials } from "./ClientCredentials.js"
import { baseUrl, withoutTrailingSlash } from "./internal/baseUrl.js"
import { expiresLater, sameValue } from "./internal/heldToken.js"
import { monotonicMillis } from "./internal/monotonicMillis.js"
import * as reliableStore from "./internal/reliableStore.js"
import * as seals from "./internal/seal.js"
import * as storedToken from "./internal/storedToken.js"
import * as TokenSource from "./TokenSource.js"
import { type Lease, TokenStore } from "./TokenStore.js"

/**
 * What is shared, and how long a process waits for the others.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The same as the endpoint's. Only processes that have it and the credentials in common share a token. */
  readonly authUrl: string | URL
  /**
   * The same as the endpoint's, run at each acquisition. The secret seals what is stored (HKDF-SHA-256, RFC 5869,
   * and AES-256-GCM); neither it nor the id can be read there.
   */
  readonly credentials: Effect.Effect<ClientCredentials, CredentialsError>
  /**
   * How long a process that died while it asked for a token keeps the others waiting. Default 5 seconds, at least 0.1, at most
   * an hour. One that lives extends it as long as the endpoint takes.
   */
  readonly lease?: Duration.DurationInput | undefined
  /**
   * How long another's acquisition is waited for; then the endpoint is asked all the same. Jittered by 0.75 to 1. Default 45
   * seconds: more than the `deadline` of `TokenEndpoint`, so that one that fails is followed by the next, not by all.
   */
  readonly maxWait?: Duration.DurationInput | undefined
  /** For one operation of the store; then the endpoint is asked as if there were none. Default 1 second, at most 30. */
  readonly storeTimeout?: Duration.DurationInput | undefined
}

/**
 * Counts the operations that a store could not do, by `operation`. Each time the endpoint was asked instead, or a token
 * could not be shared.
 *
 * @example
 * ```ts
 * import { SharedTokenSource } from "@store-api/core"
 * import { Metric } from "effect"
 *
 * const failedReads = Metric.value(Metric.tagged(SharedTokenSource.storeFailures, "operation", "get"))
 * ```
 *
 * @since 0.1.0
 * @category metrics
 */
export const storeFailures = Metric.counter("store_api_token_store_failures", {
  description: "Operations that the shared token store could not do",
  incremental: true
})

/**
 * Counts the tokens that were found in the store: token requests that this process did not send.
 *
 * @example
 * ```ts
 * import { SharedTokenSource } from "@store-api/core"
 * import { Metric } from "effect"
 *
 * const spared = Metric.value(SharedTokenSource.storeHits)
 * ```
 *
 * @since 0.1.0
 * @category metrics
 */
export const storeHits = Metric.counter("store_api_token_store_hits", {
  description: "Tokens that were found in the shared token store",
  incremental: true
})

/** For reading the credentials, where the token is sealed with them; the endpoint reads them within its own deadline. */
const longestReading = "10 seconds"

/** A store that takes longer is no help. Also where the option is `Infinity`: no acquisition waits for ever. */
const longestStoreTimeout = "30 seconds"

const leaseLimits = { minimum: "100 millis", maximum: "1 hour" } as const

/** Between looks into the store, while another process acquires; jittered by 0.75 to 1. In milliseconds. */
const firstPause = 50
const longestPause = 500

/**
 * Decorates the `TokenSource` in the context. Fails with `ConfigurationError` when `authUrl` is no URL.
 *
 * One acquisition looks into the store; without a token there it takes the lease, looks again, asks the source and
 * publishes the answer; without the lease it waits for the holder's. The token to be replaced is taken out of the store if
 * it is still that one, and is never the answer. A stored token counts from its own `acquiredAt`.
 *
 * A store that fails or does not answer is a miss: the source is asked, with one warning for each outage.
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
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<TokenSource.Service, ConfigurationError, TokenSource.TokenSource | TokenStore> =>
  Effect.gen(function*() {
    const source = yield* TokenSource.TokenSource
    const { acquisition, store } = yield* reliableStore.make(
      yield* TokenStore,
      Duration.min(options.storeTimeout ?? "1 second", longestStoreTimeout),
      storeFailures
    )
    const authUrl = withoutTrailingSlash(yield* baseUrl("authUrl", options.authUrl, true))
    const leaseMillis = Duration.toMillis(Duration.clamp(options.lease ?? "5 seconds", leaseLimits))
    const maxWait = Duration.toMillis(options.maxWait ?? "45 seconds")

    const shared = (replacing: Option.Option<AccessToken>, { key, open, seal }: seals.Sealing) => {
      /** The token in the store, if it serves. The one to be replaced is taken out. */
      const findToken = Effect.gen(function*() {
        const entry = yield* store.get(key)
        if (Option.isNone(entry)) return Option.none()
        const now = yield* Clock.currentTimeMillis
        const found = Option.flatMap(yield* open(entry.value), (text) => storedToken.decode(text, now))
        if (Option.isNone(found) || Option.isNone(replacing)) return found
        if (sameValue(found.value, replacing.value)) {
          yield* store.remove(key, entry.value)
          return Option.none()
        }
        return Option.filter(found, (token) => expiresLater(token, replacing.value))
      }).pipe(Effect.tap((found) => Effect.when(Metric.increment(storeHits), () => Option.isSome(found))))

      /**
       * Lets others know. Not of a token that was to be replaced, which the endpoint may hand out again: it would help nobody.
       * What cannot be shared is had all the same.
       */
      const publish = (token: AccessToken) =>
        Effect.gen(function*() {
          if (Option.exists(replacing, (replaced) => sameValue(replaced, token))) return
          const life = token.expiresAt.epochMillis - (yield* Clock.currentTimeMillis)
          yield* store.put(key, yield* seal(storedToken.encode(token)), life)
        }).pipe(Effect.catchAllDefect(() => Effect.void), Effect.ignore)

      const acquire = Effect.tap(Effect.suspend(() => source.acquire(replacing)), publish)

      const findTokenOr = (otherwise: typeof acquire) =>
        Effect.flatMap(findToken, Option.match({ onNone: () => otherwise, onSome: Effect.succeed }))

      /** The token that came while the lease was taken, or a new one. */
      const holding = (lease: Lease) =>
        Effect.forkScoped(Effect.interruptible(extended(lease, leaseMillis))).pipe(
          Effect.zipRight(acquire),
          Effect.scoped,
          findTokenOr
        )

      /** None while another holds the lease. */
      const take = Effect.acquireUseRelease(
        store.lease(key, leaseMillis),
        (lease) => Effect.transposeOption(Option.map(lease, holding)),
        Option.match({ onNone: () => Effect.void, onSome: ({ release }) => Effect.ignore(release) })
      )

      return Effect.gen(function*() {
        const end = (yield* monotonicMillis) + (yield* jittered(maxWait))
        for (let pause = firstPause; (yield* monotonicMillis) < end; pause = Math.min(2 * pause, longestPause)) {
          const found = yield* findToken
          if (Option.isSome(found)) return found.value
          const taken = yield* take
          if (Option.isSome(taken)) return taken.value
          yield* Effect.sleep(Math.ceil(yield* jittered(pause)))
        }
        return yield* findTokenOr(acquire)
      }).pipe(Effect.catchTag("TokenStoreError", () => source.acquire(replacing)))
    }

    // Without a key nothing is shared. Of credentials that cannot be read, the endpoint says what is wrong.
    const sealing = Effect.flatMap(options.credentials, (credentials) => seals.make(credentials, authUrl)).pipe(
      Effect.catchAllDefect(() => Effect.fail(undefined)),
      Effect.disconnect,
      Effect.interruptible,
      Effect.timeout(longestReading),
      Effect.tapErrorTag(
        "TimeoutException",
        () => Effect.logWarning("The client credentials were not read in time; this access token is not shared")
      ),
      Effect.option
    )

    return TokenSource.make((replacing) =>
      Effect.flatMap(
        sealing,
        Option.match({
          onNone: () => source.acquire(replacing),
          onSome: (sealing) => acquisition(shared(replacing, sealing))
        })
      )
    )
  })

/**
 * The same as a layer, over the `TokenSource` and the `TokenStore` in the context.
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
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<TokenSource.TokenSource, ConfigurationError, TokenSource.TokenSource | TokenStore> =>
  Layer.effect(TokenSource.TokenSource, make(options))

/** Extends a lease until it is interrupted, or the lease is lost. */
const extended = (lease: Lease, millis: number): Effect.Effect<void> =>
  Effect.sleep(Math.ceil(millis / 3)).pipe(
    Effect.zipRight(lease.extend),
    Effect.orElseSucceed(() => true),
    Effect.repeat({ while: (held) => held }),
    Effect.asVoid
  )

const jittered = (millis: number): Effect.Effect<number> =>
  Effect.map(Random.next, (chance) => millis * (0.75 + 0.25 * chance))
