/**
 * The provider's state machine: one pure function per event. The clocks and chance are inputs.
 *
 * The state has two parts. The token: `Empty`, `Holding`, or `Closed`, which is final. What is being done about it: `Idle`,
 * `Acquiring` or `CoolingDown`.
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
  stateOf
} from "./heldToken.js"
import * as tokenPolicy from "./tokenPolicy.js"

/** One acquisition, shared by all callers that wait for it. */
export interface Acquisition {
  readonly replacing: Option.Option<AccessToken>
  readonly startedAt: Instant
  /** The cached token, if it was valid and a `get` started this acquisition to renew it. */
  readonly renewalOf: Option.Option<Held>
  /** Completed by the source, or by what gives it up: the first one counts. */
  readonly outcome: Deferred.Deferred<AccessToken, AccessTokenError>
  /** What callers wait for: completed when the state has changed. */
  readonly completion: Deferred.Deferred<Held, AccessTokenError>
}

interface Idle {
  readonly _tag: "Idle"
}

interface Acquiring {
  readonly _tag: "Acquiring"
  readonly acquisition: Acquisition
}

/** No request is sent until one of the clocks reaches these moments. Without an error, a renewal brought no progress. */
interface CoolingDown {
  readonly _tag: "CoolingDown"
  readonly untilWhileHolding: Instant
  readonly untilWhileFailing: Instant
  readonly error: Option.Option<AccessTokenError>
}

type Activity = Idle | Acquiring | CoolingDown

/** What outlives a single token or acquisition. Moments are of the monotonic clock. */
interface History {
  readonly acquiredAt: number
  readonly failures: number
  readonly renewalsWithoutProgress: number
  readonly rejectedAt: number
  readonly rejectionInterval: number
  /** Until then, a rejection has no effect. */
  readonly keepUntil: number
}

interface Empty {
  readonly _tag: "Empty"
  readonly window: FreshWindow
  readonly rejected: Option.Option<Held>
  readonly activity: Activity
  readonly history: History
}

interface Holding {
  readonly _tag: "Holding"
  readonly window: FreshWindow
  readonly held: Held
  readonly activity: Activity
  readonly history: History
}

interface Closed {
  readonly _tag: "Closed"
  readonly window: FreshWindow
}

type Open = Empty | Holding

export type State = Open | Closed

export interface Serve {
  readonly _tag: "Serve"
  readonly held: Held
}

/** `fallback`: the valid token to serve if waiting takes long or fails. `mustBeNew`: the cached token does not do. */
export interface Wait {
  readonly _tag: "Wait"
  readonly acquisition: Acquisition
  readonly fallback: Option.Option<Held>
  readonly mustBeNew: boolean
}

/** Start the acquisition, and then do what callers who find it in flight do. */
export interface Start {
  readonly _tag: "Start"
  readonly acquisition: Acquisition
  readonly then: Serve | Wait
}

export interface Fail {
  readonly _tag: "Fail"
  readonly error: AccessTokenError
}

/** What a caller does, by the events `get` and `refresh`. */
export type Outcome = Serve | Wait | Start | Fail

/** The result of an acquisition. */
export interface Landed {
  readonly exit: Exit.Exit<Held, AccessTokenError>
  readonly cooldown: Option.Option<"Failure" | "NoProgress">
}

type Transition<Result> = readonly [Result, State]

const idle: Activity = { _tag: "Idle" }

export const initial: State = {
  _tag: "Empty",
  window: neverFresh,
  rejected: Option.none(),
  activity: idle,
  history: {
    acquiredAt: 0,
    failures: 0,
    renewalsWithoutProgress: 0,
    rejectedAt: -Infinity,
    rejectionInterval: 0,
    keepUntil: -Infinity
  }
}

const closed: State = { _tag: "Closed", window: neverFresh }

export const closedError = new TokenRequestError({ reason: "Closed", attempts: 0 })

const failClosed: Fail = { _tag: "Fail", error: closedError }

/** A caller wants a valid token. */
export const get = (state: State, now: Instant): Transition<Outcome> => {
  if (state._tag === "Closed") return [failClosed, state]
  if (state._tag === "Holding") {
    const tokenState = stateOf(state.held, now)
    if (tokenState !== "Expired") return getWithToken(state, now, tokenState)
  }
  return getWithoutToken(state, now)
}

const getWithoutToken = (state: Open, now: Instant): Transition<Wait | Start | Fail> => {
  const { activity } = state
  if (activity._tag === "Acquiring") return [waitFor(activity.acquisition), state]
  const error = failingWith(activity, now)
  return Option.isSome(error)
    ? [{ _tag: "Fail", error: error.value }, state]
    : start(state, now, Option.none(), waitFor)
}

const getWithToken = (
  state: Holding,
  now: Instant,
  tokenState: Exclude<tokenPolicy.TokenState, "Expired">
): Transition<Serve | Wait | Start> => {
  const { activity, held, history } = state
  const serve: Serve = { _tag: "Serve", held }
  const serveOrWait = (acquisition: Acquisition): Serve | Wait =>
    tokenState === "MustWait" ? { ...waitFor(acquisition), fallback: Option.some(held) } : serve
  if (tokenState === "Fresh") return [serve, state]
  if (activity._tag === "Acquiring") return [serveOrWait(activity.acquisition), state]
  const tooSoon = now.monotonic < history.acquiredAt + tokenPolicy.minRenewalInterval ||
    (activity._tag === "CoolingDown" && timeLeft(activity.untilWhileHolding, now) > 0)
  return tooSoon ? [serve, state] : start(state, now, Option.some(held), serveOrWait)
}

/** A caller wants a new token. Joins an acquisition in flight, or starts one and ends the cooldown. */
export const refresh = (state: State, now: Instant): Transition<Wait | Start | Fail> => {
  if (state._tag === "Closed") return [failClosed, state]
  if (state.activity._tag === "Acquiring") return [waitForNew(state.activity.acquisition), state]
  const history = { ...state.history, failures: 0, renewalsWithoutProgress: 0 }
  return start({ ...state, history }, now, Option.none(), waitForNew)
}

/**
 * An API rejected a token. The first rejection drops the cached token. After the acquisition that replaces it, further
 * rejections have no effect for an interval, which doubles with each rejection that has an effect.
 */
export const reject = (
  state: State,
  now: Instant,
  token: AccessToken
): Transition<"Dropped" | "Kept" | "NotCached"> => {
  if (state._tag !== "Holding" || !sameValue(state.held.token, token)) return ["NotCached", state]
  const { held } = state
  const history = { ...state.history, rejectedAt: now.monotonic }
  if (now.monotonic < history.keepUntil) return ["Kept", { ...state, history }]
  return ["Dropped", {
    _tag: "Empty",
    window: neverFresh,
    rejected: Option.some(held),
    activity: state.activity,
    history: {
      ...history,
      rejectionInterval: tokenPolicy.rejectionInterval(
        history.rejectionInterval,
        now.monotonic - state.history.rejectedAt
      )
    }
  }]
}

/** An acquisition ended. Returns `None` if it is not in flight, because the provider was closed. */
export const land = (
  policy: tokenPolicy.TokenPolicy,
  state: State,
  ended: {
    readonly acquisition: Acquisition
    readonly exit: Exit.Exit<AccessToken, AccessTokenError>
    readonly now: Instant
    readonly chance: number
  }
): Transition<Option.Option<Landed>> => {
  const { acquisition, chance, exit, now } = ended
  if (state._tag === "Closed" || state.activity._tag !== "Acquiring" || state.activity.acquisition !== acquisition) {
    return [Option.none(), state]
  }
  const history = wasRejected(state)
    ? { ...state.history, keepUntil: now.monotonic + state.history.rejectionInterval }
    : state.history
  if (Exit.isFailure(exit)) return failed(policy, { ...state, history }, ended, failureOf(exit.cause))
  const last = lastHeld(state)
  const held = hold(policy, exit.value, acquisition.startedAt, now, chance, last)
  if (!isLive(held, now)) {
    return failed(policy, { ...state, history }, ended, Either.left(receivedDead(held, now)))
  }
  const repeated = Option.exists(last, ({ token }) => sameValue(token, exit.value))
  const progress = !Option.exists(
    last,
    (last) => isLive(last, now) && (repeated || !diesLater(exit.value, last.token))
  )
  const renewalsWithoutProgress = progress ? 0 : history.renewalsWithoutProgress + 1
  return [
    Option.some({
      exit: Exit.succeed(held),
      cooldown: progress ? Option.none() : Option.some("NoProgress")
    }),
    {
      _tag: "Holding",
      window: held.window,
      held,
      activity: progress ? idle : {
        _tag: "CoolingDown",
        untilWhileHolding: after(now, tokenPolicy.pause(policy, renewalsWithoutProgress, chance)),
        untilWhileFailing: now,
        error: Option.none()
      },
      history: { ...history, acquiredAt: now.monotonic, failures: 0, renewalsWithoutProgress }
    }
  ]
}

/** The layer's scope ends. Returns the acquisition in flight. */
export const close = (state: State): Transition<Option.Option<Acquisition>> => [
  state._tag !== "Closed" && state.activity._tag === "Acquiring"
    ? Option.some(state.activity.acquisition)
    : Option.none(),
  closed
]

const start = (
  state: Open,
  now: Instant,
  renewalOf: Option.Option<Held>,
  then: (acquisition: Acquisition) => Serve | Wait
): Transition<Start> => {
  const acquisition: Acquisition = {
    replacing: Option.map(lastHeld(state), ({ token }) => token),
    startedAt: now,
    renewalOf,
    completion: Deferred.unsafeMake(FiberId.none),
    outcome: Deferred.unsafeMake(FiberId.none)
  }
  return [
    { _tag: "Start", acquisition, then: then(acquisition) },
    { ...state, activity: { _tag: "Acquiring", acquisition } }
  ]
}

const waitFor = (acquisition: Acquisition): Wait => ({
  _tag: "Wait",
  acquisition,
  fallback: Option.none(),
  mustBeNew: false
})

const waitForNew = (acquisition: Acquisition): Wait => ({ ...waitFor(acquisition), mustBeNew: true })

/** Whether the acquisition that ended was caused by a rejection, or its token was rejected meanwhile. */
const wasRejected = (state: Open): boolean => state._tag === "Empty" && Option.isSome(state.rejected)

/** The token that an acquisition replaces: the cached one, or the one that an API rejected. */
const lastHeld = (state: Open): Option.Option<Held> =>
  state._tag === "Holding" ? Option.some(state.held) : state.rejected

/**
 * A failure is kept only as the reason for a cooldown. When a renewal fails, only the endpoint's own `Retry-After` delays
 * callers without a valid token: the failure may be old, as in a process that was frozen.
 */
const failed = (
  policy: tokenPolicy.TokenPolicy,
  state: Open,
  { acquisition, chance, now }: { readonly acquisition: Acquisition; readonly chance: number; readonly now: Instant },
  failure: Either.Either<Cause.Cause<never>, AccessTokenError>
): Transition<Option.Option<Landed>> => {
  const error = Either.match(failure, { onLeft: (error) => error, onRight: () => sourceFault("SOURCE_DEFECT") })
  const failures = state.history.failures + 1
  const retryAfter = Option.match(error.retryAt, { onNone: () => 0, onSome: (at) => at.epochMillis - now.wall })
  const pauses = tokenPolicy.pauses(policy, { failures, refused: isRefusal(error), retryAfter, chance })
  const failing = Option.isSome(acquisition.renewalOf)
    ? Math.min(Math.max(retryAfter, 0), tokenPolicy.maxRetryAfter)
    : pauses.failing
  const valid = hasValidToken(state, now)
  const untilWhileHolding = after(now, pauses.holding)
  const untilWhileFailing = after(now, failing)
  const reported = withRetryAt(
    error,
    Option.some(DateTime.unsafeMake((valid ? untilWhileHolding : untilWhileFailing).wall))
  )
  const exit = Either.match(failure, { onLeft: () => Exit.fail(reported), onRight: Exit.failCause })
  return [Option.some({ exit, cooldown: Option.some("Failure") }), {
    ...state,
    activity: { _tag: "CoolingDown", untilWhileHolding, untilWhileFailing, error: Option.some(reported) },
    history: { ...state.history, failures }
  }]
}

/** The endpoint, or an API in its place, rejected the credentials, or limits the rate: asking again soon does not help. */
const isRefusal = (error: AccessTokenError): boolean =>
  error._tag === "TokenRefusedError" &&
  (error.reason === "InvalidClient" || error.reason === "RateLimited" || error.status === 401)

/** A typed failure, or the cause of a defect. A source that interrupted itself failed. */
const failureOf = (cause: Cause.Cause<AccessTokenError>): Either.Either<Cause.Cause<never>, AccessTokenError> =>
  Cause.isInterruptedOnly(cause)
    ? Either.left(sourceFault("SOURCE_INTERRUPTED"))
    : Cause.failureOrCause(cause)

const sourceFault = (code: string) =>
  new TokenRequestError({ reason: "Transport", attempts: 0, code: Option.some(code) })

const after = (now: Instant, millis: number): Instant => ({
  wall: now.wall + millis,
  monotonic: now.monotonic + millis
})

/** The time until one of the clocks reaches a moment. The monotonic clock may stop while the machine sleeps. */
const timeLeft = (until: Instant, now: Instant): number =>
  Math.min(until.wall - now.wall, until.monotonic - now.monotonic)

/** The error for callers without a valid token during a cooldown, its `retryAt` by the current wall clock. */
const failingWith = (activity: Activity, now: Instant): Option.Option<AccessTokenError> => {
  if (activity._tag !== "CoolingDown") return Option.none()
  const left = timeLeft(activity.untilWhileFailing, now)
  if (left <= 0) return Option.none()
  const until = Math.ceil(now.wall + left)
  return Option.map(
    activity.error,
    (error) =>
      Option.exists(error.retryAt, (at) => at.epochMillis === until)
        ? error
        : withRetryAt(error, Option.some(DateTime.unsafeMake(until)))
  )
}

export const hasValidToken = (state: State, now: Instant): boolean =>
  state._tag === "Holding" && isLive(state.held, now)

/** Whether a token is still the cached one, and valid. */
export const isServed = (state: State, { token }: Held, now: Instant): boolean =>
  state._tag === "Holding" && sameValue(state.held.token, token) && isLive(state.held, now)

export const tokenStateOf = (state: State, now: Instant): "Empty" | tokenPolicy.TokenState | "Closed" =>
  state._tag === "Holding" ? stateOf(state.held, now) : state._tag

/** Until when no request is sent, and after which failure. */
export const cooldown = (state: Open, now: Instant) => {
  if (state.activity._tag !== "CoolingDown") return Option.none()
  const { error, untilWhileFailing, untilWhileHolding } = state.activity
  const left = timeLeft(hasValidToken(state, now) ? untilWhileHolding : untilWhileFailing, now)
  return left <= 0 ? Option.none() : Option.map(error, ({ _tag }) => ({
    until: DateTime.unsafeMake(Math.ceil(now.wall + left)),
    error: _tag
  }))
}
