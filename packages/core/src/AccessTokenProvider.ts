/**
 * Caches one access token, renews it before it expires, and shares one acquisition among all callers. Checks the token
 * against the wall clock and the monotonic clock before each use.
 *
 * @since 1.0.0
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import type { AccessToken } from "./AccessToken.js"
import { ensureValid } from "./AccessToken.js"
import { type AccessTokenError, type TokenExpiredError, TokenRequestError } from "./AccessTokenError.js"
import { disconnected } from "./internal/disconnected.js"
import { expiredReason } from "./internal/lifetime.js"
import * as flightRuntime from "./internal/provider/flightRuntime.js"
import { expiredError, halfOfRemaining, type Held, type Instant, isValid } from "./internal/provider/heldToken.js"
import * as measuring from "./internal/provider/measure.js"
import * as tokenPolicy from "./internal/provider/tokenPolicy.js"
import * as tokenState from "./internal/provider/tokenState.js"
import { Renewal } from "./internal/renewal.js"
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
   * token is cached, or if the cached token expires within `leeway`. Without a valid token, fails with the error of the
   * acquisition. During a cooldown it fails immediately, with the last error and its `retryAt`.
   */
  readonly get: Effect.Effect<AccessToken, AccessTokenError>
  /**
   * Returns the cached token without sending a request. Fails with `TokenExpiredError` if it has expired. Returns none
   * if there is no token.
   */
  readonly current: Effect.Effect<Option.Option<AccessToken>, TokenExpiredError>
  /**
   * Acquires a new token, even if a valid token is cached. Joins an acquisition in flight, and ends a cooldown. Fails
   * with the error of the acquisition.
   */
  readonly refresh: Effect.Effect<AccessToken, AccessTokenError>
  /**
   * Removes a token that an API rejected, if it is still the cached one (compared by value). Sends no request. After a
   * replacement, further rejections have no effect for an interval of 1 to 60 seconds.
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
  /** The time after a failed acquisition in which no request is sent. */
  readonly cooldown?: {
    /** The first cooldown, which doubles with each further failure. Default 1 second, at least 100 milliseconds. */
    readonly base?: Duration.DurationInput | undefined
    /**
     * The longest cooldown. Default 60 seconds, at most 1 hour. Without a valid token it is 5 seconds, unless `base` is
     * longer, or the endpoint refused the credentials or limits the rate.
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
    const policy = tokenPolicy.make(options)
    const state = yield* Ref.make(tokenState.initial)
    const acquisitions = yield* Scope.make()
    const launch = yield* flightRuntime.make

    const now = (): Instant => ({
      wall: clock.unsafeCurrentTimeMillis(),
      monotonic: Number(clock.unsafeCurrentTimeNanos()) / 1e6
    })

    const measure = yield* measuring.make(now)

    yield* Effect.addFinalizer(() =>
      Effect.gen(function*() {
        const acquisition = yield* Ref.modify(state, tokenState.close)
        yield* Effect.sync(measure.forget)
        if (Option.isSome(acquisition)) {
          yield* Deferred.fail(acquisition.value.completion, tokenState.closedError)
          // Ends the time limit too.
          yield* Deferred.fail(acquisition.value.outcome, tokenState.closedError)
        }
        yield* Scope.close(acquisitions, Exit.void).pipe(
          disconnected,
          Effect.interruptible,
          Effect.timeoutOption(longestClosing)
        )
      })
    )

    // Hot path. Reads the state once, compares both clocks, and returns an `Exit` that was created when the token
    // arrived.
    const get = Effect.flatMap(Ref.get(state), (current) => {
      const { window } = current
      const wall = clock.unsafeCurrentTimeMillis()
      return wall >= window.from && wall < window.until && clock.unsafeCurrentTimeNanos() < window.untilNanos
        ? window.result
        : startOrJoinFrom(current, tokenState.get)
    })

    const withState = <A, E>(use: (current: tokenState.State, instant: Instant) => Effect.Effect<A, E>) =>
      Effect.flatMap(Ref.get(state), (current) => use(current, now()))

    const startOrJoin = (event: Event) => Effect.flatMap(Ref.get(state), (current) => startOrJoinFrom(current, event))

    /** First without a change of state, because most callers wait for an acquisition that another one has started. */
    const startOrJoinFrom = (
      current: tokenState.State,
      event: Event
    ): Effect.Effect<AccessToken, AccessTokenError> => {
      const [outcome] = event(current, now())
      return outcome._tag === "Start" ? start(event) : join(outcome, event === tokenState.refresh)
    }

    /** Uninterruptible: the state changes if and only if the acquisition starts. */
    const start = (event: Event) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(
          Effect.getFiberRefs,
          (caller) =>
            Effect.flatMap(Ref.modify(state, (current) => event(current, now())), (outcome) => {
              // Another fiber ran since the first look.
              if (outcome._tag !== "Start") return restore(startOrJoin(event))
              launch(acquire(outcome.acquisition), caller)
              return restore(serveOrWait(outcome.then))
            })
        )
      )

    const join = (outcome: tokenState.Serve | tokenState.Wait | tokenState.Fail, mustBeNew: boolean) => {
      if (outcome._tag === "Fail") return Effect.fail(outcome.error)
      if (outcome._tag === "Wait") measure.joined()
      return serveOrWait(outcome, mustBeNew)
    }

    const serveOrWait = (outcome: tokenState.Serve | tokenState.Wait, mustBeNew = false) =>
      outcome._tag === "Serve" ? outcome.held.window.result : wait(outcome, mustBeNew)

    /**
     * Waits for an acquisition. If a renewal fails or takes long, the caller gets the cached token while it is valid.
     * A caller of `get` never gets the failure of a renewal, which may be old, as in a process that was frozen. It
     * starts another acquisition instead. A caller of `refresh` gets it while the cached token is valid.
     */
    const wait = (outcome: tokenState.Wait, mustBeNew: boolean): Effect.Effect<AccessToken, AccessTokenError> => {
      const { acquisition, fallback } = outcome
      return Option.isNone(fallback) && Option.isNone(acquisition.renewalOf)
        ? Effect.flatMap(Deferred.await(acquisition.completion), received)
        : waitForRenewal(outcome, mustBeNew)
    }

    const received = (held: Held) => {
      const instant = now()
      return isValid(held, instant) ? held.window.result : Effect.fail(expiredError(held, instant, "Elapsed"))
    }

    const waitForRenewal = ({ acquisition, fallback }: tokenState.Wait, mustBeNew: boolean) =>
      Effect.flatMap(resultWithin(acquisition, fallback), (exit) =>
        withState((current, instant) => {
          if (exit !== undefined && Exit.isSuccess(exit)) return received(exit.value)
          const isServed = (held: Held) => tokenState.isServed(current, held, instant)
          const served = Option.filter(fallback, isServed)
          if (Option.isSome(served)) return served.value.window.result
          const mayFail = Option.isNone(acquisition.renewalOf) ||
            (mustBeNew && isServed(acquisition.renewalOf.value))
          return exit !== undefined && mayFail ? Effect.failCause(exit.cause) : get
        }))

    /**
     * The result of an acquisition, or `undefined` after half of the remaining lifetime of the cached token. A caller
     * without a valid token cancels a renewal that hangs, so that it has the full time for another acquisition.
     */
    const resultWithin = (acquisition: tokenState.Acquisition, fallback: Option.Option<Held>) =>
      withState((current, instant) => {
        const completion = Effect.exit(Deferred.await(acquisition.completion))
        if (Option.isSome(fallback)) {
          return within(Duration.millis(halfOfRemaining(fallback.value, instant)), completion, Effect.void)
        }
        const { withToken, withoutToken } = longestWaitForRenewal
        const longest = tokenState.hasValidToken(current, instant) ? withToken : withoutToken
        return within(longest, completion, Effect.zipRight(cancel(acquisition), completion))
      })

    /** Interruptible even in an uninterruptible caller, because a race waits until its loser has ended. */
    const within = <A, B>(duration: Duration.Duration, effect: Effect.Effect<A>, otherwise: Effect.Effect<B>) =>
      Effect.raceFirst(
        Effect.interruptible(effect),
        Effect.interruptible(Effect.zipRight(clock.sleep(duration), otherwise))
      )

    /** Runs an acquisition. The time limit, a caller that cancels it, or the closing scope can end it early. */
    const acquire = (acquisition: tokenState.Acquisition): Effect.Effect<void> =>
      Effect.suspend(() => source.acquire(acquisition.replacing)).pipe(
        Effect.provideService(Renewal, Option.isSome(acquisition.renewalOf)),
        Effect.withSpan("AccessTokenProvider.acquire", {
          root: true,
          captureStackTrace: false
        }),
        Effect.intoDeferred(acquisition.outcome),
        Effect.interruptible,
        // A separate fiber, so that a CPU-bound source does not delay the caller that starts it, and an uninterruptible
        // source does not delay the time limit.
        Effect.forkIn(acquisitions),
        Effect.flatMap((fiber) =>
          Deferred.await(acquisition.outcome).pipe(
            Effect.timeoutFail({ duration: longestAcquisition, onTimeout: () => timeoutError }),
            Effect.interruptible,
            Effect.exit,
            Effect.ensuring(Effect.fiberIdWith((id) => Fiber.interruptAsFork(fiber, id)))
          )
        ),
        Effect.flatMap((exit) =>
          // `land` throws if the source returned something else than a token. If a logger throws, the acquisition has
          // already landed, and the second `land` has no effect.
          Effect.catchAllDefect(land(acquisition, exit), (defect) => land(acquisition, Exit.die(defect)))
        ),
        Effect.uninterruptible
      )

    const land = (acquisition: tokenState.Acquisition, exit: Exit.Exit<AccessToken, AccessTokenError>) =>
      Effect.gen(function*() {
        const chance = yield* Random.next
        const landed = yield* Ref.modify(
          state,
          (current) => tokenState.land(policy, current, { acquisition, exit, now: now(), chance })
        )
        if (Option.isNone(landed)) return
        // Updates the metrics first, so that callers see them updated. Completes the callers even if that throws.
        yield* Effect.ensuring(
          Effect.sync(() => measure.landed(acquisition, landed.value)),
          Deferred.done(acquisition.completion, landed.value.exit)
        )
        const isValid = tokenState.hasValidToken(yield* Ref.get(state), now())
        yield* report(acquisition, landed.value, isValid)
      })

    return AccessTokenProvider.of({
      get,
      current: withState((current, instant) => {
        if (Option.isNone(current.held)) return Effect.succeedNone
        const held = current.held.value
        if (isValid(held, instant)) return Effect.succeedSome(held.token)
        const retryAt = Option.map(tokenState.cooldown(current, instant), ({ until }) => until)
        return Effect.fail(expiredError(held, instant, "Elapsed", retryAt))
      }),
      refresh: startOrJoin(tokenState.refresh),
      invalidate: (token) =>
        Effect.uninterruptible(
          Effect.map(Ref.modify(state, (current) => tokenState.reject(current, now(), token)), (outcome) => {
            if (outcome !== "NotCached") measure.rejected(outcome)
          })
        ),
      status: Effect.map(Ref.get(state), (current) => statusOf(current, now()))
    })
  })

/** What a caller wants. */
type Event = typeof tokenState.get | typeof tokenState.refresh

/** The time limit of an acquisition, in case its source never ends. */
const longestAcquisition = Duration.minutes(2)

const timeoutError = new TokenRequestError({ reason: "Timeout", attempts: 0 })

const cancel = ({ outcome }: tokenState.Acquisition) => Deferred.fail(outcome, timeoutError)

/** The default time of `TokenEndpoint` for an acquisition (with a valid token) and for one attempt (without). */
const longestWaitForRenewal = { withToken: Duration.seconds(30), withoutToken: Duration.seconds(10) }

/** How long closing the scope waits for the finalizers of an acquisition, such as the release of a lease. */
const longestClosing = Duration.seconds(10)

/**
 * Provides the provider over the `TokenSource` in the context. Bind the result to a constant: each call of `layer`
 * creates another cache with its own token. Cannot fail, because durations outside their limits are clamped.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const ProviderLive = AccessTokenProvider.layer({ refreshAhead: "2 minutes" })
 *
 * const program = Effect.gen(function*() {
 *   const provider = yield* AccessTokenProvider.AccessTokenProvider
 *   const token = yield* provider.get
 *   yield* Effect.logInfo(`a token until ${token.expiresAt}`)
 * })
 *
 * const runnable = Effect.provide(program, ProviderLive)
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
 *   // Effect 4: Config.Duration
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

/** Logs the failure of a renewal, because callers never see it. Any other failure is returned to the callers. */
const report = (
  { renewalOf }: tokenState.Acquisition,
  { exit }: tokenState.Landed,
  valid: boolean
): Effect.Effect<void> => {
  if (Exit.isSuccess(exit)) {
    return Effect.logDebug("Access token acquired").pipe(
      Effect.annotateLogs("expiresAt", DateTime.formatIso(exit.value.token.expiresAt))
    )
  }
  return Effect.asVoid(Effect.transposeMapOption(renewalOf, ({ token }) =>
    (valid
      ? Effect.logWarning("Access token renewal failed; the cached token is served until it expires")
      : Effect.logWarning("Access token renewal failed, and the cached token is not valid any more")).pipe(
        Effect.annotateLogs({
          expiresAt: DateTime.formatIso(token.expiresAt),
          ...Option.match(Cause.failureOption(exit.cause), {
            // The message of a defect comes from the source and may contain anything.
            onNone: () => ({ error: "Defect", reason: "the TokenSource failed with a defect" }),
            onSome: (error) => ({ error: error._tag, reason: error.message })
          })
        })
      )))
}

const statusOf = (state: tokenState.State, now: Instant): ProviderStatus => ({
  state: tokenState.tokenStateOf(state, now),
  expiresAt: Option.map(state.held, ({ token }) => token.expiresAt),
  acquiring: state.activity._tag === "Acquisition",
  cooldown: Option.map(tokenState.cooldown(state, now), ({ error, until }) => ({ until, error: error._tag }))
})
