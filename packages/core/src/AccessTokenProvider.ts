/**
 * Caches one access token, renews it before it expires, and shares one acquisition among all callers. Checks the token
 * against the wall clock and the monotonic clock before each use.
 *
 * @since 1.0.0
 */
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Ref from "effect/Ref"
import type * as Scope from "effect/Scope"
import type { AccessToken } from "./AccessToken.js"
import { ensureValid } from "./AccessToken.js"
import type { AccessTokenError, TokenExpiredError } from "./AccessTokenError.js"
import { bounded } from "./internal/bounded.js"
import { expiredReason } from "./internal/lifetime.js"
import * as acquiring from "./internal/provider/acquisitions.js"
import { expiredError, isValid, stateOf } from "./internal/provider/heldToken.js"
import * as instant from "./internal/provider/instant.js"
import * as measuring from "./internal/provider/measure.js"
import * as tokenPolicy from "./internal/provider/tokenPolicy.js"
import * as tokenState from "./internal/provider/tokenState.js"
import { sameValue } from "./internal/repeatedToken.js"
import { TokenSource } from "./TokenSource.js"

/**
 * The functions of the provider. Any number of fibers may call them at the same time, and be interrupted: there is at
 * most one acquisition, and interrupting a caller does not affect it.
 *
 * @see AccessTokenProvider
 *
 * @since 1.0.0
 * @category models
 */
export interface Service {
  /**
   * Returns a valid token, from the cache or newly acquired (the specification, "Authentication"). Waits only if no
   * valid token is cached, or if the cached token expires within `leeway`.
   *
   * If the cached token is still valid, it waits for at most half of the remaining lifetime, never longer than 20
   * seconds, and not at all during a cooldown. Without a valid token, it waits until the acquisition has ended. If that
   * is a renewal that has been in flight for 30 seconds, callers start another acquisition, which they share.
   * `TokenEndpoint` ends an acquisition after 30 seconds by default, and the provider ends any acquisition after 2
   * minutes.
   *
   * Without a valid token, fails with the error of the acquisition. During a cooldown it fails immediately, with the
   * last error and its `retryAt`. After the scope of the layer has closed, it fails with `TokenRequestError`, `Closed`.
   */
  readonly get: Effect.Effect<AccessToken, AccessTokenError>
  /**
   * Returns the cached token without sending a request. Fails with `TokenExpiredError` if it has expired. Returns none
   * if there is no token.
   */
  readonly current: Effect.Effect<Option.Option<AccessToken>, TokenExpiredError>
  /**
   * Acquires a new token, even if a valid token is cached. Joins an acquisition in flight, and ends a cooldown. Fails
   * with the error of the acquisition. If that is a renewal that has been in flight for 30 seconds, it starts another
   * acquisition instead.
   */
  readonly refresh: Effect.Effect<AccessToken, AccessTokenError>
  /**
   * Removes a token that an API rejected, if it is still the cached one (compared by value). Sends no request. Five
   * rejections may take effect at once, and one more per minute. Any further rejection has no effect, and `get` returns
   * the token again. So an API that rejects every token causes at most 15 acquisitions more than one that works, in any
   * 10 minutes and at any rhythm of calls, not counting those that fail.
   */
  readonly invalidate: (token: AccessToken) => Effect.Effect<void>
  /** Returns the current status, for a health check or a dashboard. Contains no secret, and sends no request. */
  readonly status: Effect.Effect<ProviderStatus>
}

/**
 * The status of a provider. It contains no secret.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const isHealthy = ({ state }: AccessTokenProvider.ProviderStatus) => state !== "Closed"
 *
 * const health = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.status).pipe(
 *   Effect.map(isHealthy)
 * )
 * ```
 *
 * @since 1.0.0
 * @category models
 */
export interface ProviderStatus {
  /**
   * The state of the cached token: `Fresh`, `RefreshSoon` (less than `refreshAhead` left), `MustWait` (less than
   * `leeway` left) or `Expired`. `Empty` without a token, and `Closed` after the scope of the layer has closed.
   */
  readonly state: "Empty" | "Fresh" | "RefreshSoon" | "MustWait" | "Expired" | "Closed"
  /** When the cached token expires, by the wall clock. None without a token. */
  readonly expiresAt: Option.Option<DateTime.Utc>
  /** Whether an acquisition is in flight. */
  readonly acquiring: boolean
  /** The end of the cooldown after a failure, and the tag of that failure. None without a cooldown. */
  readonly cooldown: Option.Option<{ readonly until: DateTime.Utc; readonly error: AccessTokenError["_tag"] }>
}

/**
 * The tag of the provider. Use it to read the token. To call the store's APIs, use `AuthorizedHttpClient`, which adds
 * the token automatically.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const expiry = Effect.gen(function*() {
 *   const provider = yield* AccessTokenProvider.AccessTokenProvider
 *   const token = yield* provider.get
 *   return token.expiresAt
 * })
 * ```
 *
 * @since 1.0.0
 * @category tags
 */
export class AccessTokenProvider
  extends Context.Tag("@store-api/core/AccessTokenProvider")<AccessTokenProvider, Service>()
{}

/**
 * How early a token is renewed, and how long the cooldown after a failure is. Each option has a default. Values outside
 * their limits are clamped.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /**
   * A background renewal starts when less than this is left of the token. Default 5 minutes, at most 25 % of the
   * lifetime. The provider uses a random 80 % to 100 % of it for each token, so that many processes do not renew at the
   * same time.
   */
  readonly refreshAhead?: Duration.DurationInput | undefined
  /** Callers wait for the renewal when less than this is left. Default 30 seconds, at most 5 % of the lifetime. */
  readonly leeway?: Duration.DurationInput | undefined
  /** The time after a failed acquisition in which `get` sends no request. Each is multiplied by a random 0.75 to 1. */
  readonly cooldown?: {
    /** The first cooldown, which doubles with each further failure. Default 1 second, at least 100 milliseconds. */
    readonly base?: Duration.DurationInput | undefined
    /**
     * The longest cooldown. Default 60 seconds, at most 1 hour. While no valid token is cached it is 5 seconds, unless
     * `base` is longer, the endpoint or a proxy refused the credentials, or the endpoint limits the rate.
     */
    readonly max?: Duration.DurationInput | undefined
  } | undefined
}

/**
 * Creates a provider over the `TokenSource` in the context. It sends no request before the first call, keeps the token
 * only in memory, and runs no timer while no caller waits. After the scope has closed, it fails with
 * `TokenRequestError`, `Closed`.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const expiry = Effect.scoped(Effect.gen(function*() {
 *   const provider = yield* AccessTokenProvider.make({ leeway: "10 seconds" })
 *   const token = yield* provider.get
 *   return token.expiresAt
 * }))
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (options: Options = {}): Effect.Effect<Service, never, TokenSource | Scope.Scope> =>
  Effect.gen(function*() {
    const source = yield* TokenSource
    const clock = yield* Clock.clockWith(Effect.succeed)
    const now = instant.reader(clock)
    const policy = tokenPolicy.make(options)
    const state = yield* Ref.make(tokenState.initial)
    const measure = yield* measuring.make(now)

    const change = <A>(event: (current: tokenState.State, now: instant.Instant) => readonly [A, tokenState.State]) =>
      Ref.modify(state, (current) => event(current, now()))

    const acquisitions = yield* acquiring.make(source, (acquisition, result) => {
      const land = (exit: Exit.Exit<AccessToken, AccessTokenError>) =>
        Effect.gen(function*() {
          const landed = yield* change(tokenState.land(policy, { acquisition, exit, chance: yield* Random.next }))
          if (landed === undefined) return
          // Updates the metrics first, so that callers see them updated. Completes the callers even if that throws.
          yield* Effect.ensuring(
            Effect.sync(() => measure.landed(landed)),
            Deferred.done(acquisition.done, landed.exit)
          )
          yield* report(landed)
        })
      // `land` throws if the source returned something else than a token. If a logger throws, the acquisition has
      // already landed, and the second `land` has no effect.
      return Effect.catchAllDefect(land(result), (defect) => land(Exit.die(defect)))
    })

    // Waiting callers get `Closed`. If an acquisition is landing now, its own fiber completes them.
    yield* Effect.addFinalizer(() =>
      Effect.gen(function*() {
        const acquisition = yield* change(tokenState.close)
        if (acquisition !== undefined) yield* Deferred.fail(acquisition.done, tokenState.closedError)
        yield* acquisitions.close
        yield* Effect.sync(measure.clearExpiry)
      })
    )

    const perform = (action: tokenState.Action) => {
      if (action._tag === "Start") return Effect.as(acquisitions.launch(action.acquisition), action.then)
      if (action._tag === "Abandon") return Effect.as(acquisitions.abandon(action.then.acquisition), action.then)
      if (action._tag === "Wait") measure.joined()
      return Effect.succeed(action)
    }

    /**
     * Reads the state, and changes it only to start an acquisition. For that, it computes the event again, on the state
     * that is then current. Uninterruptible: the change and the start both happen, or neither.
     */
    const answer = (event: CallerEvent) =>
      Effect.flatMap(Ref.get(state), (current) => {
        const [action, next] = event(current, now())
        return next === current ? perform(action) : Effect.uninterruptible(Effect.flatMap(change(event), perform))
      })

    /** Hot path. Reads the state once, compares both clocks, and returns an `Exit` from when the token arrived. */
    const freshOr = (slowly: () => Effect.Effect<AccessToken, AccessTokenError>) =>
      Effect.flatMap(Ref.get(state), ({ held }) => {
        if (held === undefined) return slowly()
        const wall = clock.unsafeCurrentTimeMillis()
        return wall >= held.fresh.from && wall < held.fresh.until &&
            clock.unsafeCurrentTimeNanos() < held.fresh.untilNanos
          ? held.exit
          : slowly()
      })

    /** Does what the state says. A caller that has waited asks the state `again`. */
    const ask = (
      event: CallerEvent,
      again: (waited: tokenState.Waited) => CallerEvent
    ): Effect.Effect<AccessToken, AccessTokenError> =>
      Effect.flatMap(answer(event), (action) => {
        if (action._tag === "Serve") return action.held.exit
        if (action._tag === "Fail") return Effect.failCause(action.cause)
        const { acquisition, atMost } = action
        const done = Deferred.await(acquisition.done)
        const askAgain = (exit: tokenState.Waited["exit"]) => ask(again({ acquisition, exit }), again)
        return atMost === undefined
          ? Effect.matchCauseEffect(done, {
            onFailure: (cause) => askAgain(Exit.failCause(cause)),
            onSuccess: () => freshOr(() => askAgain(Exit.void))
          })
          : Effect.exit(done).pipe(
            bounded(atMost, Effect.succeed(undefined)),
            Effect.withClock(clock),
            Effect.flatMap(askAgain)
          )
      })

    const getSlowly = ask(tokenState.get, tokenState.getAgain)

    return AccessTokenProvider.of({
      get: freshOr(() => getSlowly),
      current: Effect.flatMap(Ref.get(state), (current) => currentToken(current, now())),
      refresh: ask(tokenState.refresh, tokenState.refreshAgain),
      invalidate: (token) =>
        Effect.uninterruptible(Effect.map(change(tokenState.reject(token)), (outcome) => {
          if (outcome !== "NotCached") measure.rejected(outcome)
        })),
      status: Effect.map(Ref.get(state), (current) => statusOf(current, now()))
    })
  })

/** An event of a caller. */
type CallerEvent = typeof tokenState.get

const currentToken = (
  state: tokenState.State,
  now: instant.Instant
): Effect.Effect<Option.Option<AccessToken>, TokenExpiredError> => {
  const { held } = state
  if (held === undefined) return Effect.succeedNone
  return isValid(held, now)
    ? Effect.succeedSome(held.token)
    : Effect.fail(
      expiredError(held, now, { reason: "Elapsed", retryAt: tokenState.currentCooldown(state, now)?.until })
    )
}

const statusOf = (state: tokenState.State, now: instant.Instant): ProviderStatus => {
  const { acquisition, held, isClosed } = state
  const cooldown = tokenState.currentCooldown(state, now)
  return {
    state: isClosed ? "Closed" : held === undefined ? "Empty" : stateOf(held, now),
    expiresAt: Option.fromNullable(held?.token.expiresAt),
    acquiring: acquisition !== undefined,
    cooldown: Option.map(Option.fromNullable(cooldown), ({ error, until }) => ({ until, error: error._tag }))
  }
}

/** Logs the failure of a renewal, because callers of `get` do not see it. Callers get any other failure. */
const report = ({ acquisition, failure, held }: tokenState.Landed): Effect.Effect<void> => {
  if (failure === undefined) {
    const line = Effect.logDebug("Access token acquired")
    return Effect.annotateLogs(line, { expiresAt: DateTime.formatIso(held.token.expiresAt) })
  }
  const { isRenewal, replacing } = acquisition
  if (!isRenewal || replacing === undefined) return Effect.void
  const warning = held === undefined
    ? Effect.logWarning("Access token renewal failed, and the cached token is not valid any more")
    : Effect.logWarning("Access token renewal failed; the cached token is served until it expires")
  return Effect.annotateLogs(warning, { expiresAt: DateTime.formatIso(replacing.expiresAt), ...failure })
}

/**
 * Provides the provider over the `TokenSource` in the context. Bind the result to a constant: each call of `layer`
 * creates another cache with its own token. Cannot fail, because durations outside their limits are clamped.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 *
 * const ProviderLive = AccessTokenProvider.layer({ refreshAhead: "2 minutes" })
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<AccessTokenProvider, never, TokenSource> =>
  Layer.scoped(AccessTokenProvider, make(options))

/**
 * Like `layer`, with options from the configuration: one `Config` for all options, or one for each. Fails with Effect's
 * `ConfigError` when a variable is missing or unreadable.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Config } from "effect"
 *
 * const ProviderLive = AccessTokenProvider.layerConfig({
 *   refreshAhead: Config.duration("STORE_API_REFRESH_AHEAD").pipe(Config.withDefault("5 minutes"))
 * })
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerConfig = (
  config: Config.Config.Wrap<Options>
): Layer.Layer<AccessTokenProvider, ConfigError.ConfigError, TokenSource> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(config), layer))

/**
 * Provides a provider for tests with a fixed token, or with an effect that runs at each `get` and `refresh`. It uses no
 * source and stores only the last token, for `current`, `invalidate` and `status`.
 *
 * @example
 * ```ts
 * import { AccessToken, AccessTokenProvider } from "@store-api/core"
 * import { DateTime, Effect, Redacted } from "effect"
 *
 * const ProviderTest = AccessTokenProvider.layerTest(
 *   Effect.map(DateTime.now, (acquiredAt) =>
 *     new AccessToken.AccessToken({
 *       value: Redacted.make("an-invented-token"),
 *       acquiredAt,
 *       expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
 *     }))
 * )
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerTest = (
  token: AccessToken | Effect.Effect<AccessToken, AccessTokenError>
): Layer.Layer<AccessTokenProvider> =>
  Layer.effect(
    AccessTokenProvider,
    Effect.map(Ref.make(Effect.isEffect(token) ? Option.none<AccessToken>() : Option.some(token)), (last) => {
      const acquire = Effect.tap(
        Effect.isEffect(token) ? token : Effect.succeed(token),
        (token) => Ref.set(last, Option.some(token))
      )
      return AccessTokenProvider.of({
        get: acquire,
        refresh: acquire,
        current: Effect.flatMap(Ref.get(last), Effect.transposeMapOption(ensureValid)),
        invalidate: (token) => Ref.update(last, Option.filter((last) => !sameValue(last, token))),
        status: Effect.map(Effect.all([Ref.get(last), Clock.currentTimeMillis]), ([last, now]) => ({
          state: Option.match(last, {
            onNone: () => "Empty",
            onSome: (token) => expiredReason(token, now) !== undefined ? "Expired" : "Fresh"
          }),
          expiresAt: Option.map(last, ({ expiresAt }) => expiresAt),
          acquiring: false,
          cooldown: Option.none()
        }))
      })
    })
  )
