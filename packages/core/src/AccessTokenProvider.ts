/**
 * The service: a cache in front of a `TokenSource`. One token, one acquisition at a time, renewed before it expires, checked
 * against both clocks before each use.
 *
 * @since 0.1.0
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
import * as flightRuntime from "./internal/flightRuntime.js"
import { expiredError, halfOfRemaining, type Held, type Instant, isLive, sameValue } from "./internal/heldToken.js"
import * as measuring from "./internal/measure.js"
import * as tokenPolicy from "./internal/tokenPolicy.js"
import * as tokenState from "./internal/tokenState.js"
import { TokenSource } from "./TokenSource.js"

/**
 * What the provider does. Its effects can be run by any number of fibers at once, and interrupted at any moment: there is
 * one acquisition at a time, and no caller owns it.
 *
 * @see AccessTokenProvider
 *
 * @since 0.1.0
 * @category models
 */
export interface Service {
  /**
   * A valid token, from the cache or freshly acquired (the specification, "Authentication": the client checks before it
   * uses a token). Waits only when no token is held, or the one held is within `leeway` of its end. Fails with what the
   * last acquisition failed with when there is no live token; during a cooldown at once, with `retryAt`.
   */
  readonly get: Effect.Effect<AccessToken, AccessTokenError>
  /** Looks and never acquires: none yet, the token, or, for one that is past its life, `TokenExpiredError`. */
  readonly current: Effect.Effect<Option.Option<AccessToken>, TokenExpiredError>
  /** A new token now, whatever is held; joins an acquisition in flight, ends a cooldown. Fails if the acquisition does. */
  readonly refresh: Effect.Effect<AccessToken, AccessTokenError>
  /**
   * Drops a token that an API rejected, if it is still the one held (compared by value). Further rejections within an
   * interval, from 1 to 60 seconds, do nothing. Sends nothing by itself.
   */
  readonly invalidate: (token: AccessToken) => Effect.Effect<void>
  /** What the provider is doing, for a health check or a dashboard. No secrets; sends nothing. */
  readonly status: Effect.Effect<ProviderStatus>
}

/**
 * What a provider is doing at a moment. It holds no secret.
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
 * @since 0.1.0
 * @category models
 */
export interface ProviderStatus {
  /**
   * The state of the cached token: `Fresh`; `RefreshSoon`, less than `refreshAhead` left; `MustWait`, less than `leeway`
   * left; `Expired`. `Empty` without a token, `Closed` when the layer's scope has ended.
   */
  readonly state: "Empty" | "Fresh" | "RefreshSoon" | "MustWait" | "Expired" | "Closed"
  /** The end of the held token's life, by the wall clock; none without one. */
  readonly expiresAt: Option.Option<DateTime.Utc>
  /** Whether an acquisition is in flight. */
  readonly acquiring: boolean
  /** Until when `get` sends no request after a failure, and the tag of that failure; none when there is no cooldown. */
  readonly cooldown: Option.Option<{ readonly until: DateTime.Utc; readonly error: AccessTokenError["_tag"] }>
}

/**
 * The provider as a service: what an application asks for tokens. Calls of the store's APIs rather go through
 * `AuthorizedHttpClient`, which asks it by itself.
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
 * @since 0.1.0
 * @category tags
 */
export class AccessTokenProvider
  extends Context.Tag("@store-api/core/AccessTokenProvider")<AccessTokenProvider, Service>()
{}

/**
 * How early a token is renewed, and how long the cooldown after a failure is. Each option has a default; values out of
 * bounds are clamped.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /**
   * A background renewal starts when less than this is left of the token. Default 5 minutes, at most 25 % of the token's
   * lifetime; each token draws a share between 80 % and 100 % of it, so that many processes do not renew at once.
   */
  readonly refreshAhead?: Duration.DurationInput | undefined
  /** Callers wait for the renewal when less than this is left. Default 30 seconds, at most 5 % of the token's lifetime. */
  readonly leeway?: Duration.DurationInput | undefined
  /** How long no request is sent after a failed acquisition. */
  readonly cooldown?: {
    /** The first cooldown; it doubles with each further failure. Default 1 second, at least 100 milliseconds. */
    readonly base?: Duration.DurationInput | undefined
    /**
     * The longest cooldown. Default 60 seconds, at most 1 hour. While callers fail without a token it is 5 seconds, unless
     * the base is longer, or the endpoint refused the credentials or limits the rate.
     */
    readonly max?: Duration.DurationInput | undefined
  } | undefined
}

/**
 * A provider over the `TokenSource` in the context, for as long as the scope is open; then it fails with
 * `TokenRequestError`, `Closed`. It sends nothing until it is asked, keeps the token in memory only, and runs no timer while
 * nobody waits.
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
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Effect.Effect<Service, never, TokenSource | Scope.Scope> =>
  Effect.gen(function*() {
    const source = yield* TokenSource
    const clock = yield* Clock.clockWith(Effect.succeed)
    const policy = tokenPolicy.make(options)
    const state = yield* Ref.make(tokenState.initial)
    const acquisitions = yield* Scope.make()
    const launch = yield* flightRuntime.make(acquisitions)

    const now = (): Instant => ({
      wall: clock.unsafeCurrentTimeMillis(),
      monotonic: Number(clock.unsafeCurrentTimeNanos()) / 1e6
    })

    const measure = yield* measuring.make(now)

    yield* Effect.addFinalizer(() =>
      Effect.gen(function*() {
        const acquisition = yield* Ref.modify(state, tokenState.close)
        yield* Effect.sync(measure.forget)
        if (Option.isSome(acquisition)) yield* Deferred.fail(acquisition.value.completion, tokenState.closedError)
        yield* Scope.close(acquisitions, Exit.void).pipe(
          Effect.disconnect,
          Effect.interruptible,
          Effect.timeoutOption(longestClosing)
        )
      })
    )

    // Hot path. Reads the state once, compares both clocks, and returns an `Exit` that was created when the token arrived.
    const get = Effect.flatMap(Ref.get(state), (current) => {
      const { window } = current
      const wall = clock.unsafeCurrentTimeMillis()
      return wall >= window.from && wall < window.until && clock.unsafeCurrentTimeNanos() < window.untilNanos
        ? window.answer
        : getNotFresh
    })

    const look = <A, E>(use: (current: tokenState.State, instant: Instant) => Effect.Effect<A, E>) =>
      Effect.flatMap(Ref.get(state), (current) => use(current, now()))

    /** Neither an interruption nor the end of the scope separates the state that says "acquiring" from the acquisition. */
    const startOrJoin = (
      event: typeof tokenState.get | typeof tokenState.refresh
    ): Effect.Effect<AccessToken, AccessTokenError> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(
          Effect.getFiberRefs,
          (caller) =>
            Effect.flatMap(Ref.modify(state, (current) => event(current, now())), (outcome) => {
              if (outcome._tag === "Fail") return Effect.fail(outcome.error)
              if (outcome._tag === "Start") launch(acquire(outcome.acquisition), caller)
              if (outcome._tag === "Wait") measure.joined()
              return restore(serveOrWait(outcome._tag === "Start" ? outcome.then : outcome))
            })
        )
      )

    const getNotFresh = startOrJoin(tokenState.get)

    const serveOrWait = (outcome: tokenState.Serve | tokenState.Wait) =>
      outcome._tag === "Serve" ? outcome.held.window.answer : wait(outcome)

    /**
     * Waits for an acquisition. When a renewal fails or takes long, the caller gets the cached token while it is valid. A
     * caller of `get` does not receive the failure of a renewal, which may have begun long ago, as in a process that was
     * frozen: it starts an acquisition. A caller of `refresh` receives it while the token that was to be renewed is valid.
     */
    const wait = (
      { acquisition, fallback }: tokenState.Wait
    ): Effect.Effect<AccessToken, AccessTokenError> =>
      Effect.flatMap(resultWithin(acquisition, fallback), (exit) =>
        look((current, instant) => {
          const isServed = (held: Held) => tokenState.isServed(current, held, instant)
          if (exit !== undefined && Exit.isSuccess(exit)) {
            const held = exit.value
            return isLive(held, instant) ? held.window.answer : Effect.fail(expiredError(held, instant, "Elapsed"))
          }
          const served = Option.filter(fallback, isServed)
          if (Option.isSome(served)) return served.value.window.answer
          const mayFail = Option.isNone(acquisition.renewalOf) || isServed(acquisition.renewalOf.value)
          return exit !== undefined && mayFail ? Effect.failCause(exit.cause) : get
        }))

    /**
     * The result of an acquisition, or `undefined` when waiting took half of what is left of the cached token. A caller
     * without one gives up a renewal that hangs, to have the full time for an acquisition of its own.
     */
    const resultWithin = (acquisition: tokenState.Acquisition, fallback: Option.Option<Held>) =>
      look((current, instant) => {
        const completion = Effect.exit(Deferred.await(acquisition.completion))
        if (Option.isSome(fallback)) {
          return within(Duration.millis(halfOfRemaining(fallback.value, instant)), completion, Effect.void)
        }
        if (Option.isNone(acquisition.renewalOf)) return completion
        const { withToken, withoutToken } = longestWaitForRenewal
        const longest = tokenState.hasValidToken(current, instant) ? withToken : withoutToken
        return within(longest, completion, Effect.zipRight(giveUp(acquisition), completion))
      })

    /** Interruptible, also for a caller who is not: a race waits until its loser has ended. */
    const within = <A, B>(duration: Duration.Duration, effect: Effect.Effect<A>, otherwise: Effect.Effect<B>) =>
      Effect.raceFirst(
        Effect.interruptible(effect),
        Effect.interruptible(Effect.zipRight(clock.sleep(duration), otherwise))
      )

    /** An acquisition from its start to its end. Its time limit, a caller that gives it up, or the end of the scope ends it early. */
    const acquire = (acquisition: tokenState.Acquisition): Effect.Effect<void> =>
      Effect.suspend(() => source.acquire(acquisition.replacing)).pipe(
        Effect.withSpan("AccessTokenProvider.acquire", {
          root: true,
          captureStackTrace: false
        }),
        Effect.intoDeferred(acquisition.outcome),
        Effect.interruptible,
        // In a fiber of its own: neither a source that computes for long holds up the caller that starts it, nor one that
        // cannot be interrupted the time limit.
        Effect.forkIn(acquisitions),
        Effect.flatMap((fiber) =>
          Deferred.await(acquisition.outcome).pipe(
            Effect.timeoutFail({ duration: longestAcquisition, onTimeout: () => timeoutError }),
            Effect.interruptible,
            Effect.exit,
            Effect.ensuring(Fiber.interruptFork(fiber))
          )
        ),
        Effect.flatMap((exit) =>
          // A value from a source that is not a token makes `land` throw: then that is the defect. When a logger throws,
          // the acquisition has landed already, and the second `land` does nothing.
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
        // Measured first, so that callers find it measured. They are woken in any case.
        yield* Effect.ensuring(
          Effect.sync(() => measure.landed(acquisition, landed.value)),
          Deferred.done(acquisition.completion, landed.value.exit)
        )
        const isValid = tokenState.hasValidToken(yield* Ref.get(state), now())
        yield* report(acquisition, landed.value, isValid)
      })

    return AccessTokenProvider.of({
      get,
      current: look((current, instant) => {
        if (Option.isNone(current.held)) return Effect.succeedNone
        const held = current.held.value
        if (isLive(held, instant)) return Effect.succeedSome(held.token)
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

/** A source that does not end does not block the provider. */
const longestAcquisition = Duration.minutes(2)

const timeoutError = new TokenRequestError({ reason: "Timeout", attempts: 0 })

const giveUp = ({ outcome }: tokenState.Acquisition) => Deferred.fail(outcome, timeoutError)

/** As long as the endpoint takes by default: an acquisition with a valid token, one attempt without. */
const longestWaitForRenewal = { withToken: Duration.seconds(30), withoutToken: Duration.seconds(10) }

/** How long the end of the scope waits for the finalizers of an acquisition, such as the release of a lease. */
const longestClosing = Duration.seconds(10)

/**
 * The provider as a layer, over the `TokenSource` in the context. It cannot fail: durations are put within their bounds.
 * Each call of `layer` makes another cache and another token: bind the result to a constant.
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
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<AccessTokenProvider, never, TokenSource> =>
  Layer.scoped(AccessTokenProvider, make(options))

/**
 * `layer`, its options read from the configuration, each alone or all of them. Fails with Effect's `ConfigError` while it
 * is built, when one is missing or cannot be read.
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
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  config: Config.Config.Wrap<Options>
): Layer.Layer<AccessTokenProvider, ConfigError.ConfigError, TokenSource> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(config), layer))

/**
 * A provider for tests: a fixed token, or an effect that is run at each `get` and `refresh`. It asks no source and keeps
 * nothing but the last token, for `current`, `invalidate` and `status`.
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
 * @since 0.1.0
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
            onSome: (token) => Option.isSome(tokenPolicy.expiredReason(token, now)) ? "Expired" : "Fresh"
          }),
          expiresAt: Option.map(last, ({ expiresAt }) => expiresAt),
          acquiring: false,
          cooldown: Option.none()
        }))
      })
    })
  )

/** Callers never see the failure of a renewal, so it is logged. The failure of any other acquisition is its callers'. */
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
            // The message of a defect comes from the source and may hold anything.
            onNone: () => ({ error: "Defect", reason: "the TokenSource died" }),
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
