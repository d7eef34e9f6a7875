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
import * as Layer from "effect/Layer"
import * as MutableRef from "effect/MutableRef"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import type { AccessToken } from "./AccessToken.js"
import { ensureValid, expiredReason } from "./AccessToken.js"
import type { AccessTokenError, TokenExpiredError } from "./AccessTokenError.js"
import * as flightRuntime from "./internal/flightRuntime.js"
import { expiredError, halfOfRemaining, type Held, type Instant, isLive, sameValue } from "./internal/heldToken.js"
import * as measuring from "./internal/measure.js"
import * as tokenState from "./internal/tokenState.js"
import * as TokenPolicy from "./TokenPolicy.js"
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
   * last acquisition failed with when there is no live token; during a cool-down at once, with `retryAt`.
   */
  readonly get: Effect.Effect<AccessToken, AccessTokenError>
  /** Looks and never acquires: none yet, the token, or, for one that is past its life, `TokenExpiredError`. */
  readonly current: Effect.Effect<Option.Option<AccessToken>, TokenExpiredError>
  /** A new token now, whatever is held; joins an acquisition in flight, ends a cool-down. Fails if the acquisition does. */
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
 * const isHealthy = ({ zone }: AccessTokenProvider.ProviderStatus) => zone === "Fresh" || zone === "RefreshSoon"
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
  /** Where the held token stands in its life; `Empty` without one, `Closed` when the layer's scope has ended. */
  readonly zone: "Empty" | TokenPolicy.Zone | "Closed"
  /** The end of the held token's life, by the wall clock; none without one. */
  readonly expiresAt: Option.Option<DateTime.Utc>
  /** Whether an acquisition is in flight. */
  readonly acquiring: boolean
  /** Until when `get` sends no request after a failure, and the tag of that failure; none when there is no pause. */
  readonly coolDown: Option.Option<{ readonly until: DateTime.Utc; readonly error: AccessTokenError["_tag"] }>
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
 * How early a token is renewed and how long the pauses after failures are; everything has a default.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export type Options = TokenPolicy.Options

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
    const transition = tokenState.transition(TokenPolicy.make(options))
    const state = MutableRef.make(tokenState.initial)
    const flights = yield* Scope.make()
    const launch = yield* flightRuntime.make(flights)

    const now = (): Instant => ({
      wall: clock.unsafeCurrentTimeMillis(),
      monotonic: Number(clock.unsafeCurrentTimeNanos()) / 1e6
    })

    const { forget, measure } = yield* measuring.make(now)

    /** What comes of it in the same step of a fiber, comes before anything that others do about the new state. */
    const apply = (event: tokenState.Event): tokenState.Command => {
      const [command, next] = transition(MutableRef.get(state), event)
      MutableRef.set(state, next)
      return command
    }

    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        const command = apply({ _tag: "Close" })
        forget()
        return Effect.zipRight(settle(command), Scope.close(flights, Exit.void))
      })
    )

    /** What a caller does when it is told to. */
    const obey = (command: tokenState.Command): Effect.Effect<AccessToken, AccessTokenError> => {
      switch (command._tag) {
        case "Serve":
          return command.held.window.answer
        case "Wait":
          return Option.match(command.fallback, {
            onNone: () => landed(command.flight),
            onSome: (held) => landedOr(command.flight, held)
          })
        case "Fail":
          return Effect.fail(command.error)
        // Stryker disable next-line ConditionalExpression: no transition for a caller gives another command
        default:
          // Stryker disable next-line StringLiteral: so it is never said
          return Effect.dieMessage(`No caller is told to ${command._tag}`)
      }
    }

    /** Of one who started nothing: who waits joins. */
    const follow = (command: tokenState.Command): Effect.Effect<AccessToken, AccessTokenError> => {
      measure(command)
      return obey(command)
    }

    /** Neither an interruption nor the closing of the scope can come between the state's change and the start of the flight. */
    const startIfNeeded = (event: tokenState.Event): Effect.Effect<AccessToken, AccessTokenError> =>
      Effect.flatMap(Effect.getFiberRefs, (caller) => {
        const command = apply(event)
        if (command._tag !== "Start") return follow(command)
        launch(fly(command.flight), caller)
        return obey(command.then)
      })

    /** The way of those who find no fresh token. Most of them change nothing: they serve an ageing one, or wait. */
    const slowly = (current: tokenState.State): Effect.Effect<AccessToken, AccessTokenError> => {
      const event: tokenState.Event = { _tag: "Get", now: now() }
      const [command] = transition(current, event)
      // Stryker disable next-line ConditionalExpression: to apply what changes nothing only takes longer
      return command._tag === "Start" ? startIfNeeded(event) : follow(command)
    }

    // The measured path: one read of the state, one comparison a clock, an answer made when the token came. Were it a
    // `Ref`, to read it would be an operation of its own, which takes a third more.
    const get = Effect.suspend(() => {
      const current = MutableRef.get(state)
      const { window } = current
      const wall = clock.unsafeCurrentTimeMillis()
      return wall >= window.from && wall < window.until && clock.unsafeCurrentTimeNanos() < window.untilNanos
        ? window.answer
        : slowly(current)
    })

    const ifLive = (held: Held): Effect.Effect<AccessToken, AccessTokenError> => {
      const instant = now()
      return isLive(held, instant) ? held.window.answer : Effect.fail(expiredError(held, instant))
    }

    const landed = (flight: tokenState.Flight) => Effect.flatMap(Deferred.await(flight.landing), ifLive)

    /** Waits for a renewal, at most half of what is left of the held token; then, or if it fails, serves that. */
    const landedOr = (flight: tokenState.Flight, held: Held): Effect.Effect<AccessToken, AccessTokenError> =>
      // Interruptible, also for a caller who is not: a race waits until its loser has ended.
      Effect.raceFirst(
        Effect.interruptible(Effect.asSome(Effect.exit(landed(flight)))),
        Effect.interruptible(Effect.as(clock.sleep(Duration.millis(halfOfRemaining(held, now()))), Option.none()))
      ).pipe(
        Effect.flatMap((outcome) =>
          Effect.suspend(() => {
            const current = MutableRef.get(state)
            if (Option.isSome(outcome) && Exit.isSuccess(outcome.value)) return outcome.value
            if (current._tag === "Holding" && sameValue(current.held.token, held.token) && isLive(held, now())) {
              return held.window.answer
            }
            return Option.getOrElse(outcome, () => get)
          })
        )
      )

    /** An acquisition from its start to its landing. Only the closing of the layer interrupts it. */
    const fly = (flight: tokenState.Flight): Effect.Effect<void> =>
      Effect.suspend(() => source.acquire(flight.replacing)).pipe(
        Effect.withSpan("AccessTokenProvider.acquire", {
          root: true,
          // Stryker disable next-line BooleanLiteral: a stack trace costs time, and tells only of this line
          captureStackTrace: false
        }),
        Effect.interruptible,
        Effect.exit,
        Effect.flatMap((exit) =>
          // What a source made of its own may be no token: then the landing is a defect, and lands as one.
          Effect.catchAllDefect(land(flight, exit), (defect) => land(flight, Exit.die(defect)))
        ),
        Effect.flatMap(report),
        // A logger that throws is not the flight's affair.
        Effect.catchAllDefect(() => Effect.void),
        Effect.uninterruptible
      )

    const land = (flight: tokenState.Flight, exit: Exit.Exit<AccessToken, AccessTokenError>) =>
      Effect.flatMap(Random.next, (chance) => {
        const command = apply({ _tag: "Land", now: now(), flight, exit, chance })
        measure(command)
        return Effect.as(settle(command), command)
      })

    return AccessTokenProvider.of({
      get,
      current: Effect.suspend(() => {
        const current = MutableRef.get(state)
        if (current._tag !== "Holding") return Effect.succeedNone
        const instant = now()
        return isLive(current.held, instant)
          ? Effect.succeedSome(current.held.token)
          : Effect.fail(
            expiredError(current.held, instant, Option.map(tokenState.coolDown(current, instant), ({ until }) => until))
          )
      }),
      refresh: Effect.suspend(() => startIfNeeded({ _tag: "Refresh", now: now() })),
      invalidate: (token) => Effect.sync(() => measure(apply({ _tag: "Reject", now: now(), token }))),
      status: Effect.sync(() => statusOf(MutableRef.get(state), now()))
    })
  })

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
          zone: Option.match(last, {
            onNone: () => "Empty",
            onSome: (token) => Option.isSome(expiredReason(token, now)) ? "Expired" : "Fresh"
          }),
          expiresAt: Option.map(last, ({ expiresAt }) => expiresAt),
          acquiring: false,
          coolDown: Option.none()
        }))
      })
    })
  )

const settle = (command: tokenState.Command): Effect.Effect<void> =>
  command._tag === "Settle" ? Effect.asVoid(Deferred.done(command.flight.landing, command.exit)) : Effect.void

/** Tells what came of an acquisition; a renewal that failed in the background nobody else hears of. */
const report = (command: tokenState.Command): Effect.Effect<void> => {
  // Stryker disable next-line ConditionalExpression: what would be thrown below is dropped, as a throw of a logger is
  if (command._tag !== "Settle") return Effect.void
  if (Exit.isSuccess(command.exit)) {
    return Effect.logDebug("Access token acquired").pipe(
      Effect.annotateLogs("expiresAt", DateTime.formatIso(command.exit.value.token.expiresAt))
    )
  }
  // Stryker disable next-line ConditionalExpression: this throw would be dropped as well
  if (Option.isNone(command.renewalOf)) return Effect.void
  const { cause } = command.exit
  return Effect.logWarning("Access token renewal failed; the token held is served while it lives").pipe(
    Effect.annotateLogs({
      expiresAt: DateTime.formatIso(command.renewalOf.value.token.expiresAt),
      ...Option.match(Cause.failureOption(cause), {
        // The words of a defect are the source's, and may hold anything.
        onNone: () => ({ error: "Defect", reason: "the TokenSource died" }),
        onSome: (error) => ({ error: error._tag, reason: error.message })
      })
    })
  )
}

const statusOf = (state: tokenState.State, now: Instant): ProviderStatus =>
  state._tag === "Closed"
    ? { zone: "Closed", expiresAt: Option.none(), acquiring: false, coolDown: Option.none() }
    : {
      zone: tokenState.zone(state, now),
      expiresAt: state._tag === "Holding" ? Option.some(state.held.token.expiresAt) : Option.none(),
      acquiring: state.acquisition._tag === "Acquiring",
      coolDown: tokenState.coolDown(state, now)
    }
