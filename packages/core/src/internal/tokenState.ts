/**
 * The provider's state machine: pure, without a clock, a fiber or chance of its own.
 *
 * Two regions. The token: `Empty`, `Holding` (fresh, refresh-soon, must-wait or expired: what the clocks say of it), and
 * `Closed`, from which nothing leads away. The acquisition: `Idle`, `Acquiring`, `CoolingDown`.
 */
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import type { AccessToken } from "../AccessToken.js"
import { type AccessTokenError, TokenRequestError, withRetryAt } from "../AccessTokenError.js"
import * as TokenPolicy from "../TokenPolicy.js"
import {
  diesLater,
  type FreshWindow,
  type Held,
  hold,
  type Instant,
  isLive,
  neverFresh,
  receivedDead,
  sameValue,
  zoneOf
} from "./heldToken.js"

/** One acquisition, shared by all who wait for it. */
export interface Flight {
  readonly replacing: Option.Option<AccessToken>
  readonly startedAt: Instant
  readonly landing: Deferred.Deferred<Held, AccessTokenError>
}

interface Idle {
  readonly _tag: "Idle"
}

interface Acquiring {
  readonly _tag: "Acquiring"
  readonly flight: Flight
  readonly becauseRejected: boolean
  /** The living token that was to be renewed, if there was one. */
  readonly renewalOf: Option.Option<Held>
}

/** No request is sent before these moments of the monotonic clock. Without an error, renewals brought no progress. */
interface CoolingDown {
  readonly _tag: "CoolingDown"
  readonly untilWhileHolding: number
  readonly untilWhileFailing: number
  readonly error: Option.Option<AccessTokenError>
}

type Acquisition = Idle | Acquiring | CoolingDown

/** What outlives a single token or flight: counts, and the rule on rejections. */
interface History {
  readonly landedAt: number
  readonly failures: number
  readonly renewalsWithoutProgress: number
  readonly rejectionInterval: number
  readonly rejectionsVainUntil: number
}

interface Empty {
  readonly _tag: "Empty"
  readonly window: FreshWindow
  readonly rejected: Option.Option<Held>
  readonly acquisition: Acquisition
  readonly history: History
}

interface Holding {
  readonly _tag: "Holding"
  readonly window: FreshWindow
  readonly held: Held
  readonly acquisition: Acquisition
  readonly history: History
}

interface Closed {
  readonly _tag: "Closed"
  readonly window: FreshWindow
}

export type State = Empty | Holding | Closed

export type Event =
  | { readonly _tag: "Get"; readonly now: Instant }
  | { readonly _tag: "Refresh"; readonly now: Instant }
  | { readonly _tag: "Reject"; readonly now: Instant; readonly token: AccessToken }
  | {
    readonly _tag: "Land"
    readonly now: Instant
    readonly flight: Flight
    readonly exit: Exit.Exit<AccessToken, AccessTokenError>
    readonly chance: number
  }
  | { readonly _tag: "Close" }

/**
 * What the caller of a transition has to do. `fallback`: the live token to serve if waiting takes long or fails.
 * `renewalOf`: the token that lived when its renewal began. `dropped`: whether the rejection had an effect.
 */
export type Command =
  | { readonly _tag: "Serve"; readonly held: Held }
  | { readonly _tag: "Wait"; readonly flight: Flight; readonly fallback: Option.Option<Held> }
  | { readonly _tag: "Start"; readonly flight: Flight; readonly then: Serve | Wait }
  | { readonly _tag: "Fail"; readonly error: AccessTokenError }
  | {
    readonly _tag: "Settle"
    readonly flight: Flight
    readonly exit: Exit.Exit<Held, AccessTokenError>
    readonly renewalOf: Option.Option<Held>
    readonly pause: Option.Option<Pause>
  }
  | { readonly _tag: "Rejected"; readonly dropped: boolean }
  | { readonly _tag: "Nothing" }

/** Why no request is sent for a while. */
type Pause = "Failure" | "NoProgress"

type Serve = Extract<Command, { readonly _tag: "Serve" }>
type Wait = Extract<Command, { readonly _tag: "Wait" }>

// Stryker disable next-line ObjectLiteral,StringLiteral: whatever is neither Acquiring nor CoolingDown is idle
const idle: Acquisition = { _tag: "Idle" }

export const initial: State = {
  _tag: "Empty",
  window: neverFresh,
  rejected: Option.none(),
  acquisition: idle,
  history: {
    landedAt: 0,
    failures: 0,
    renewalsWithoutProgress: 0,
    rejectionInterval: 0,
    rejectionsVainUntil: -Infinity
  }
}

const closed: State = { _tag: "Closed", window: neverFresh }

export const closedError = new TokenRequestError({ reason: "Closed", attempts: 0 })

// Stryker disable next-line ObjectLiteral,StringLiteral: whatever is none of the other commands asks for nothing
const nothing: Command = { _tag: "Nothing" }

/** The one transition function. */
export const transition =
  (policy: TokenPolicy.TokenPolicy) => (state: State, event: Event): readonly [Command, State] => {
    if (state._tag === "Closed") return [{ _tag: "Fail", error: closedError }, state]
    switch (event._tag) {
      case "Get":
        return get(state, event.now)
      case "Refresh":
        return refresh(state, event.now)
      case "Reject":
        return reject(state, event.now, event.token)
      case "Land":
        return state.acquisition._tag === "Acquiring" && state.acquisition.flight === event.flight
          ? land(policy, state, state.acquisition, event)
          : [nothing, state]
      case "Close":
        return [
          state.acquisition._tag === "Acquiring" ? settle(state.acquisition.flight, Exit.fail(closedError)) : nothing,
          closed
        ]
    }
  }

type Transition = readonly [Command, State]

const get = (state: Empty | Holding, now: Instant): Transition => {
  const { acquisition } = state
  if (state._tag === "Holding") {
    const { held } = state
    const zone = zoneOf(held, now)
    if (zone !== "Expired") {
      const serve: Serve = { _tag: "Serve", held }
      if (zone === "Fresh") return [serve, state]
      switch (acquisition._tag) {
        case "Acquiring":
          return [zone === "MustWait" ? wait(acquisition.flight, Option.some(held)) : serve, state]
        case "CoolingDown":
          if (now.monotonic < acquisition.untilWhileHolding) return [serve, state]
      }
      if (now.monotonic < state.history.landedAt + TokenPolicy.minRenewalInterval) return [serve, state]
      return start(state, now, (flight) => zone === "MustWait" ? wait(flight, Option.some(held)) : serve)
    }
  }
  if (acquisition._tag === "Acquiring") return [wait(acquisition.flight, Option.none()), state]
  const error = failingWith(acquisition, now)
  return Option.isSome(error) ? [{ _tag: "Fail", error: error.value }, state] : start(state, now, waitForIt)
}

/** Joins an acquisition in flight; else starts one, whatever the cool-down, which begins anew. */
const refresh = (state: Empty | Holding, now: Instant): Transition =>
  state.acquisition._tag === "Acquiring"
    ? [wait(state.acquisition.flight, Option.none()), state]
    : start(
      { ...state, history: { ...state.history, failures: 0, renewalsWithoutProgress: 0 } },
      now,
      waitForIt
    )

/**
 * Compare-and-clear. While an acquisition that a rejection caused ended only just, a further rejection does nothing but
 * mark the token: a storm of rejections sends one request an interval, and a longer interval each time it was in vain.
 */
const reject = (state: Empty | Holding, now: Instant, token: AccessToken): Transition => {
  if (state._tag === "Empty" || !sameValue(state.held.token, token)) return [nothing, state]
  const { acquisition, held, history } = state
  if (now.monotonic < history.rejectionsVainUntil) {
    return [{ _tag: "Rejected", dropped: false }, { ...state, held: { ...held, disputed: true } }]
  }
  return [{ _tag: "Rejected", dropped: true }, {
    _tag: "Empty",
    window: neverFresh,
    rejected: Option.some(held),
    // Stryker disable next-line ConditionalExpression: in the other cases nobody looks at what is added
    acquisition: acquisition._tag === "Acquiring" ? { ...acquisition, becauseRejected: true } : acquisition,
    history: {
      ...history,
      rejectionInterval: TokenPolicy.rejectionInterval(history.rejectionInterval, held.disputed)
    }
  }]
}

const start = (state: Empty | Holding, now: Instant, then: (flight: Flight) => Serve | Wait): Transition => {
  const replacing = Option.map(lastHeld(state), ({ token }) => token)
  const flight: Flight = { replacing, startedAt: now, landing: Deferred.unsafeMake(FiberId.none) }
  const becauseRejected = state._tag === "Empty" && Option.isSome(state.rejected)
  const renewalOf = state._tag === "Holding" && isLive(state.held, now) ? Option.some(state.held) : Option.none()
  return [
    { _tag: "Start", flight, then: then(flight) },
    { ...state, acquisition: { _tag: "Acquiring", flight, becauseRejected, renewalOf } }
  ]
}

/** The token held, or taken out because an API rejected it: the one that an acquisition replaces. */
const lastHeld = (state: Empty | Holding): Option.Option<Held> =>
  state._tag === "Holding" ? Option.some(state.held) : state.rejected

const wait = (flight: Flight, fallback: Option.Option<Held>): Wait => ({ _tag: "Wait", flight, fallback })

const waitForIt = (flight: Flight): Wait => wait(flight, Option.none())

const settle = (
  flight: Flight,
  exit: Exit.Exit<Held, AccessTokenError>,
  pause: Option.Option<Pause> = Option.none(),
  renewalOf: Option.Option<Held> = Option.none()
): Command => ({ _tag: "Settle", flight, exit, pause, renewalOf })

type Landing = Extract<Event, { readonly _tag: "Land" }>

/** The end of a flight: its result and the end of `Acquiring` are one step. */
const land = (
  policy: TokenPolicy.TokenPolicy,
  state: Empty | Holding,
  acquiring: Acquiring,
  landing: Landing
): Transition => {
  const { chance, exit, flight, now } = landing
  const history = acquiring.becauseRejected
    ? { ...state.history, rejectionsVainUntil: now.monotonic + state.history.rejectionInterval }
    : state.history
  if (Exit.isFailure(exit)) {
    return failed(policy, { ...state, history }, acquiring, landing, failureOf(exit.cause))
  }
  const last = lastHeld(state)
  const received = hold(policy, exit.value, flight.startedAt, now, chance, last)
  const held = state._tag === "Holding" && state.held.disputed && sameValue(state.held.token, exit.value)
    ? { ...received, disputed: true }
    : received
  if (!isLive(held, now)) {
    return failed(policy, { ...state, history }, acquiring, landing, Either.left(receivedDead(held, now)))
  }
  const progress = !Option.exists(
    Option.filter(last, (last) => isLive(last, now)),
    ({ token }) => sameValue(token, exit.value) || !diesLater(exit.value, token)
  )
  const renewalsWithoutProgress = progress ? 0 : history.renewalsWithoutProgress + 1
  return [settle(flight, Exit.succeed(held), progress ? Option.none() : Option.some("NoProgress")), {
    _tag: "Holding",
    window: held.window,
    held,
    acquisition: progress ? idle : {
      _tag: "CoolingDown",
      untilWhileHolding: now.monotonic + TokenPolicy.pauses(policy, {
        failures: renewalsWithoutProgress,
        // Stryker disable next-line BooleanLiteral: the pause of a provider that holds a token does not depend on it
        refusedCredentials: false,
        retryAfter: 0,
        chance
      }).holding,
      untilWhileFailing: now.monotonic,
      error: Option.none()
    },
    history: { ...history, landedAt: now.monotonic, failures: 0, renewalsWithoutProgress }
  }]
}

/** A failure is never kept as a value: only as the reason for a pause, and only until the pause is over. */
const failed = (
  policy: TokenPolicy.TokenPolicy,
  state: Empty | Holding,
  { renewalOf }: Acquiring,
  { chance, flight, now }: Landing,
  failure: Either.Either<Cause.Cause<never>, AccessTokenError>
): Transition => {
  const error = Either.match(failure, { onLeft: (error) => error, onRight: () => sourceFault("SOURCE_DEFECT") })
  const failures = state.history.failures + 1
  const pauses = TokenPolicy.pauses(policy, {
    failures,
    refusedCredentials: error._tag === "TokenRefusedError" && error.reason === "InvalidClient",
    retryAfter: Option.match(error.retryAt, { onNone: () => 0, onSome: (at) => at.epochMillis - now.wall }),
    chance
  })
  const pause = state._tag === "Holding" && isLive(state.held, now) ? pauses.holding : pauses.failing
  const told = withRetryAt(error, Option.some(DateTime.unsafeMake(now.wall + pause)))
  const exit = Either.match(failure, { onLeft: () => Exit.fail(told), onRight: Exit.failCause })
  return [settle(flight, exit, Option.some("Failure"), renewalOf), {
    ...state,
    acquisition: {
      _tag: "CoolingDown",
      untilWhileHolding: now.monotonic + pauses.holding,
      untilWhileFailing: now.monotonic + pauses.failing,
      error: Option.some(told)
    },
    history: { ...state.history, failures }
  }]
}

/** A typed failure, or the cause of a defect. A source that interrupted itself failed. */
const failureOf = (cause: Cause.Cause<AccessTokenError>): Either.Either<Cause.Cause<never>, AccessTokenError> =>
  Cause.isInterruptedOnly(cause)
    ? Either.left(sourceFault("SOURCE_INTERRUPTED"))
    : Cause.failureOrCause(cause)

const sourceFault = (code: string) =>
  new TokenRequestError({ reason: "Transport", attempts: 0, code: Option.some(code) })

/** The error of the cool-down that callers without a live token meet, its `retryAt` by the wall clock of now. */
const failingWith = (acquisition: Acquisition, now: Instant): Option.Option<AccessTokenError> => {
  if (acquisition._tag !== "CoolingDown" || now.monotonic >= acquisition.untilWhileFailing) return Option.none()
  const until = Math.ceil(now.wall + (acquisition.untilWhileFailing - now.monotonic))
  return Option.map(
    acquisition.error,
    (error) =>
      Option.exists(error.retryAt, (at) => Math.abs(at.epochMillis - until) <= 1)
        ? error
        : withRetryAt(error, Option.some(DateTime.unsafeMake(until)))
  )
}

/** What the clocks say of the state. */
export const zone = (state: State, now: Instant): "Empty" | TokenPolicy.Zone | "Closed" =>
  state._tag === "Holding" ? zoneOf(state.held, now) : state._tag

/** Until when no request is sent, and after which failure. */
export const coolDown = (state: Empty | Holding, now: Instant) => {
  if (state.acquisition._tag !== "CoolingDown") return Option.none()
  const { error, untilWhileFailing, untilWhileHolding } = state.acquisition
  const live = state._tag === "Holding" && isLive(state.held, now)
  const left = (live ? untilWhileHolding : untilWhileFailing) - now.monotonic
  return left <= 0 ? Option.none() : Option.map(error, ({ _tag }) => ({
    until: DateTime.unsafeMake(Math.ceil(now.wall + left)),
    error: _tag
  }))
}
