/**
 * The provider's state machine: one pure function per event. The clocks and chance are inputs.
 *
 * The state has two parts. The token: `Empty`, `Holding`, or `Closed`, which is final. What is being done about it: an
 * acquisition, or none while a cooldown lasts and afterwards.
 */
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import type { AccessToken } from "../AccessToken.js"
import { type AccessTokenError, TokenRequestError, withRetryAt } from "../AccessTokenError.js"
import {
  diesLater,
  expiredError,
  type FreshWindow,
  type Held,
  hold,
  type Instant,
  isLive,
  neverFresh,
  sameValue,
  stateOf
} from "./heldToken.js"
import * as tokenPolicy from "./tokenPolicy.js"

/** One acquisition, shared by all callers that wait for it. */
export interface Acquisition {
  readonly _tag: "Acquisition"
  readonly replacing: Option.Option<AccessToken>
  readonly startedAt: Instant
  /** The cached token, if it was valid and a `get` started this acquisition to renew it. */
  readonly renewalOf: Option.Option<Held>
  /** Completed by the source, or by what gives it up: the first one counts. */
  readonly outcome: Deferred.Deferred<AccessToken, AccessTokenError>
  /** What callers wait for: completed when the state has changed. */
  readonly completion: Deferred.Deferred<Held, AccessTokenError>
}

/** No request is sent until one of the clocks reaches these moments. Without an error, no acquisition failed. */
interface Cooldown {
  readonly _tag: "Cooldown"
  readonly untilWhileHolding: Instant
  readonly untilWhileFailing: Instant
  readonly error: Option.Option<AccessTokenError>
}

/** What outlives a single token or acquisition. Moments are of the monotonic clock. */
interface History {
  readonly failures: number
  readonly renewalsWithoutProgress: number
  readonly rejectedAt: number
  readonly rejectionInterval: number
  /** Until then, a rejection has no effect. */
  readonly keepUntil: number
}

interface Closed {
  readonly _tag: "Closed"
  readonly window: FreshWindow
}

interface Empty {
  readonly _tag: "Empty"
  readonly window: FreshWindow
  readonly rejected: Option.Option<Held>
  readonly activity: Acquisition | Cooldown
  readonly history: History
}

interface Holding extends Omit<Empty, "_tag" | "rejected"> {
  readonly _tag: "Holding"
  readonly held: Held
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

const longAgo: Instant = { wall: -Infinity, monotonic: -Infinity }

export const initial: State = {
  _tag: "Empty",
  window: neverFresh,
  rejected: Option.none(),
  activity: { _tag: "Cooldown", untilWhileHolding: longAgo, untilWhileFailing: longAgo, error: Option.none() },
  history: {
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
  if (state.activity._tag === "Acquisition") return [waitFor(state.activity), state]
  const current = cooldown(state, now)
  return Option.isSome(current)
    ? [{ _tag: "Fail", error: withRetryAt(current.value.error, Option.some(current.value.until)) }, state]
    : start(state, now, Option.none(), waitFor)
}

const getWithToken = (
  state: Holding,
  now: Instant,
  tokenState: Exclude<tokenPolicy.TokenState, "Expired">
): Transition<Serve | Wait | Start> => {
  const { activity, held } = state
  const serve: Serve = { _tag: "Serve", held }
  const serveOrWait = (acquisition: Acquisition): Serve | Wait =>
    tokenState === "MustWait" ? { ...waitFor(acquisition), fallback: Option.some(held) } : serve
  if (tokenState === "Fresh") return [serve, state]
  if (activity._tag === "Acquisition") return [serveOrWait(activity), state]
  return timeLeft(activity.untilWhileHolding, now) > 0
    ? [serve, state]
    : start(state, now, Option.some(held), serveOrWait)
}

/** A caller wants a new token. Joins an acquisition in flight, or starts one and ends the cooldown. */
export const refresh = (state: State, now: Instant): Transition<Wait | Start | Fail> => {
  if (state._tag === "Closed") return [failClosed, state]
  if (state.activity._tag === "Acquisition") return [waitForNew(state.activity), state]
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
  if (state._tag === "Closed" || state.activity !== acquisition) return [Option.none(), state]
  const history = wasRejected(state)
    ? { ...state.history, keepUntil: now.monotonic + state.history.rejectionInterval }
    : state.history
  const fail = (cause: Cause.Cause<AccessTokenError>) => failed(policy, { ...state, history }, ended, cause)
  if (Exit.isFailure(exit)) return fail(exit.cause)
  const last = lastHeld(state)
  const held = hold(policy, exit.value, acquisition.startedAt, now, chance, last)
  if (!isLive(held, now)) return fail(Cause.fail(expiredError(held, now, "DeadOnArrival")))
  const repeated = Option.exists(last, ({ token }) => sameValue(token, exit.value))
  const progress = !Option.exists(
    last,
    (last) => isLive(last, now) && (repeated || !diesLater(exit.value, last.token))
  )
  const renewalsWithoutProgress = progress ? 0 : history.renewalsWithoutProgress + 1
  const pause = progress
    ? tokenPolicy.minRenewalInterval
    : tokenPolicy.pause(policy, renewalsWithoutProgress, chance)
  return [
    Option.some({ exit: Exit.succeed(held), cooldown: progress ? Option.none() : Option.some("NoProgress") }),
    {
      _tag: "Holding",
      window: held.window,
      held,
      activity: {
        _tag: "Cooldown",
        untilWhileHolding: after(now, pause),
        untilWhileFailing: now,
        error: Option.none()
      },
      history: { ...history, failures: 0, renewalsWithoutProgress }
    }
  ]
}

/** The layer's scope ends. Returns the acquisition in flight. */
export const close = (state: State): Transition<Option.Option<Acquisition>> => [
  state._tag !== "Closed" && state.activity._tag === "Acquisition" ? Option.some(state.activity) : Option.none(),
  closed
]

const start = (
  state: Open,
  now: Instant,
  renewalOf: Option.Option<Held>,
  then: (acquisition: Acquisition) => Serve | Wait
): Transition<Start> => {
  const acquisition: Acquisition = {
    _tag: "Acquisition",
    replacing: Option.map(lastHeld(state), ({ token }) => token),
    startedAt: now,
    renewalOf,
    completion: Deferred.unsafeMake(FiberId.none),
    outcome: Deferred.unsafeMake(FiberId.none)
  }
  return [
    { _tag: "Start", acquisition, then: then(acquisition) },
    { ...state, activity: acquisition }
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
  cause: Cause.Cause<AccessTokenError>
): Transition<Option.Option<Landed>> => {
  // A source that interrupted itself failed.
  const failure = Cause.isInterruptedOnly(cause)
    ? Option.some(sourceFault("SOURCE_INTERRUPTED"))
    : Cause.failureOption(cause)
  const error = Option.getOrElse(failure, () => sourceFault("SOURCE_DEFECT"))
  const failures = state.history.failures + 1
  const retryAfter = Option.match(error.retryAt, { onNone: () => 0, onSome: (at) => at.epochMillis - now.wall })
  const pauses = tokenPolicy.pauses(policy, { failures, refused: isRefusal(error), retryAfter, chance })
  const failing = Option.isSome(acquisition.renewalOf)
    ? Math.min(Math.max(retryAfter, 0), tokenPolicy.maxRetryAfter)
    : pauses.failing
  const untilWhileHolding = after(now, pauses.holding)
  const untilWhileFailing = after(now, failing)
  const until = hasValidToken(state, now) ? untilWhileHolding : untilWhileFailing
  const reported = withRetryAt(error, Option.some(DateTime.unsafeMake(until.wall)))
  const exit = Option.isSome(failure) ? Exit.fail(reported) : Exit.failCause(cause)
  return [Option.some({ exit, cooldown: Option.some("Failure") }), {
    ...state,
    activity: { _tag: "Cooldown", untilWhileHolding, untilWhileFailing, error: Option.some(reported) },
    history: { ...state.history, failures }
  }]
}

/** The endpoint, or an API in its place, rejected the credentials, or limits the rate: asking again soon does not help. */
const isRefusal = (error: AccessTokenError): boolean =>
  error._tag === "TokenRefusedError" &&
  (error.reason === "InvalidClient" || error.reason === "RateLimited" || error.status === 401)

const sourceFault = (code: string) =>
  new TokenRequestError({ reason: "Transport", attempts: 0, code: Option.some(code) })

const after = (now: Instant, millis: number): Instant => ({
  wall: now.wall + millis,
  monotonic: now.monotonic + millis
})

/** The time until one of the clocks reaches a moment. The monotonic clock may stop while the machine sleeps. */
const timeLeft = (until: Instant, now: Instant): number =>
  Math.min(until.wall - now.wall, until.monotonic - now.monotonic)

export const hasValidToken = (state: State, now: Instant): boolean =>
  state._tag === "Holding" && isLive(state.held, now)

/** Whether a token is still the cached one, and valid. */
export const isServed = (state: State, { token }: Held, now: Instant): boolean =>
  state._tag === "Holding" && sameValue(state.held.token, token) && isLive(state.held, now)

export const tokenStateOf = (state: State, now: Instant): "Empty" | tokenPolicy.TokenState | "Closed" =>
  state._tag === "Holding" ? stateOf(state.held, now) : state._tag

/** Until when no request is sent after a failure, by the current wall clock, and that failure. */
export const cooldown = (state: Open, now: Instant) => {
  if (state.activity._tag === "Acquisition") return Option.none()
  const { error, untilWhileFailing, untilWhileHolding } = state.activity
  const left = timeLeft(hasValidToken(state, now) ? untilWhileHolding : untilWhileFailing, now)
  return left <= 0
    ? Option.none()
    : Option.map(error, (error) => ({ until: DateTime.unsafeMake(Math.ceil(now.wall + left)), error }))
}
