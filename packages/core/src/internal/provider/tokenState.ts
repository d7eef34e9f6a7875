/**
 * The provider's state machine: one pure function per event. The clocks and chance are inputs.
 *
 * The state has two parts: the cached token, and what is being done about it. That is an acquisition, or none while a
 * cooldown lasts and afterwards, or `Closed`, which is final.
 */
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import type { AccessToken } from "../../AccessToken.js"
import { type AccessTokenError, TokenRequestError, withRetryAt } from "../../AccessTokenError.js"
import * as backoff from "../backoff.js"
import { sameValue } from "../repeatedToken.js"
import {
  expiredError,
  type FreshWindow,
  type Held,
  hold,
  type Instant,
  isValid,
  neverFresh,
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
  /**
   * The result of the source, or the error of the time limit or of a caller that cancelled it. The first one counts.
   */
  readonly outcome: Deferred.Deferred<AccessToken, AccessTokenError>
  /** The result for callers. Completed after the state has changed. */
  readonly completion: Deferred.Deferred<Held, AccessTokenError>
}

/**
 * The time in which no request is sent, in milliseconds by the clock that advanced further: `holding` with a valid
 * token, `failing` without one. There is no error if no acquisition failed.
 */
interface Cooldown {
  readonly _tag: "Cooldown"
  readonly since: Instant
  readonly holding: number
  readonly failing: number
  readonly error: Option.Option<AccessTokenError>
}

interface Closed {
  readonly _tag: "Closed"
}

/** Times are those of the monotonic clock. */
export interface State {
  /** The window of the cached token, for the hot path. */
  readonly window: FreshWindow
  /** The cached token. */
  readonly held: Option.Option<Held>
  /** The token that an API rejected, until another one arrives. */
  readonly rejected: Option.Option<Held>
  readonly activity: Acquisition | Cooldown | Closed
  /** Failures in a row. */
  readonly failures: number
  readonly rejectedAt: number
  readonly rejectionInterval: number
  /** A rejection before this time has no effect. */
  readonly keepUntil: number
}

export interface Serve {
  readonly _tag: "Serve"
  readonly held: Held
}

/** `fallback` is the valid token to return if waiting takes long or fails. A caller of `refresh` has none. */
export interface Wait {
  readonly _tag: "Wait"
  readonly acquisition: Acquisition
  readonly fallback: Option.Option<Held>
}

/** The caller starts the acquisition, and then acts like callers that find it in flight. */
export interface Start {
  readonly _tag: "Start"
  readonly acquisition: Acquisition
  readonly then: Serve | Wait
}

export interface Fail {
  readonly _tag: "Fail"
  readonly error: AccessTokenError
}

/** What a caller of `get` or `refresh` does. */
export type Outcome = Serve | Wait | Start | Fail

/** The result of an acquisition. */
export interface Landed {
  readonly exit: Exit.Exit<Held, AccessTokenError>
  readonly cooldown: Option.Option<"Failure" | "NoProgress">
}

type Transition<Result> = readonly [Result, State]

const noCooldown: Cooldown = {
  _tag: "Cooldown",
  since: { wall: 0, monotonic: 0 },
  holding: 0,
  failing: 0,
  error: Option.none()
}

export const initial: State = {
  window: neverFresh,
  held: Option.none(),
  rejected: Option.none(),
  activity: noCooldown,
  failures: 0,
  rejectedAt: -Infinity,
  rejectionInterval: 0,
  keepUntil: -Infinity
}

export const closedError = new TokenRequestError({ reason: "Closed", attempts: 0 })

const failClosed: Fail = { _tag: "Fail", error: closedError }

/** A caller wants a valid token. */
export const get = (state: State, now: Instant): Transition<Outcome> => {
  const { activity, held } = state
  if (Option.isSome(held) && isValid(held.value, now)) return getWithToken(state, held.value, now)
  if (activity._tag === "Closed") return [failClosed, state]
  if (activity._tag === "Acquisition") return [waitFor(activity), state]
  const current = cooldown(state, now)
  return Option.isSome(current)
    ? [{ _tag: "Fail", error: withRetryAt(current.value.error, Option.some(current.value.until)) }, state]
    : start(state, now, Option.none(), waitFor)
}

const getWithToken = (state: State, held: Held, now: Instant): Transition<Serve | Wait | Start> => {
  const { activity } = state
  const tokenState = stateOf(held, now)
  const serve: Serve = { _tag: "Serve", held }
  const serveOrWait = (acquisition: Acquisition): Serve | Wait =>
    tokenState === "MustWait" ? waitFor(acquisition, Option.some(held)) : serve
  if (tokenState === "Fresh") return [serve, state]
  if (activity._tag === "Acquisition") return [serveOrWait(activity), state]
  return activity._tag === "Cooldown" && activity.holding <= elapsed(activity.since, now)
    ? start(state, now, Option.some(held), serveOrWait)
    : [serve, state]
}

/** A caller wants a new token. Joins an acquisition in flight, or starts one and ends the cooldown. */
export const refresh = (state: State, now: Instant): Transition<Wait | Start | Fail> => {
  if (state.activity._tag === "Closed") return [failClosed, state]
  return state.activity._tag === "Acquisition"
    ? [waitFor(state.activity), state]
    : start({ ...state, failures: 0 }, now, Option.none(), waitFor)
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
  if (!Option.exists(state.held, (held) => sameValue(held.token, token))) return ["NotCached", state]
  const rejectedAt = now.monotonic
  if (rejectedAt < state.keepUntil) return ["Kept", { ...state, rejectedAt }]
  const rejectionInterval = tokenPolicy.rejectionInterval(state.rejectionInterval, rejectedAt - state.rejectedAt)
  return ["Dropped", {
    ...state,
    window: neverFresh,
    held: Option.none(),
    rejected: state.held,
    rejectedAt,
    rejectionInterval
  }]
}

/** An acquisition has ended. Returns none if it is not in flight, because the provider was closed. */
export const land = (
  policy: tokenPolicy.TokenPolicy,
  before: State,
  ended: {
    readonly acquisition: Acquisition
    readonly exit: Exit.Exit<AccessToken, AccessTokenError>
    readonly now: Instant
    readonly chance: number
  }
): Transition<Option.Option<Landed>> => {
  const { acquisition, chance, exit, now } = ended
  if (before.activity !== acquisition) return [Option.none(), before]
  const state = Option.isSome(before.rejected)
    ? { ...before, keepUntil: now.monotonic + before.rejectionInterval }
    : before
  if (Exit.isFailure(exit)) return failed(policy, state, ended, exit.cause)
  const held = hold(policy, exit.value, acquisition.startedAt, now, chance, lastHeld(state))
  if (!isValid(held, now)) return failed(policy, state, ended, Cause.fail(expiredError(held, now, "DeadOnArrival")))
  return [
    Option.some({ exit: Exit.succeed(held), cooldown: held.progress ? Option.none() : Option.some("NoProgress") }),
    {
      ...state,
      window: held.window,
      held: Option.some(held),
      rejected: Option.none(),
      activity: { ...noCooldown, since: now, holding: tokenPolicy.minRenewalInterval },
      failures: 0
    }
  ]
}

/** The scope closes. Returns the acquisition in flight. */
export const close = ({ activity }: State): Transition<Option.Option<Acquisition>> => [
  activity._tag === "Acquisition" ? Option.some(activity) : Option.none(),
  { ...initial, activity: { _tag: "Closed" } }
]

const start = (
  state: State,
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

const waitFor = (acquisition: Acquisition, fallback: Option.Option<Held> = Option.none()): Wait => ({
  _tag: "Wait",
  acquisition,
  fallback
})

/** The token that an acquisition replaces: the cached one, or the one that an API rejected. */
const lastHeld = ({ held, rejected }: State): Option.Option<Held> => Option.orElse(held, () => rejected)

/**
 * Starts a cooldown. After a failed renewal, only `Retry-After` delays callers without a valid token, because the
 * failure may be old, as in a process that was frozen.
 */
const failed = (
  policy: tokenPolicy.TokenPolicy,
  state: State,
  { acquisition, chance, now }: { readonly acquisition: Acquisition; readonly chance: number; readonly now: Instant },
  cause: Cause.Cause<AccessTokenError>
): Transition<Option.Option<Landed>> => {
  // A source that interrupts itself has failed.
  const failure = Cause.isInterruptedOnly(cause)
    ? Option.some(sourceFault("SOURCE_INTERRUPTED"))
    : Cause.failureOption(cause)
  const error = Option.getOrElse(failure, () => sourceFault("SOURCE_DEFECT"))
  const failures = state.failures + 1
  const retryAfter = Option.match(error.retryAt, { onNone: () => 0, onSome: (at) => at.epochMillis - now.wall })
  const pauses = tokenPolicy.pauses(policy, { failures, refused: isRefusal(error), retryAfter, chance })
  const failing = Option.isSome(acquisition.renewalOf)
    ? Math.min(Math.max(retryAfter, 0), backoff.maxRetryAfter)
    : pauses.failing
  const until = now.wall + (hasValidToken(state, now) ? pauses.holding : failing)
  const reported = withRetryAt(error, Option.some(DateTime.unsafeMake(until)))
  const exit = Option.isSome(failure) ? Exit.fail(reported) : Exit.failCause(cause)
  return [Option.some({ exit, cooldown: Option.some("Failure") }), {
    ...state,
    activity: { _tag: "Cooldown", since: now, holding: pauses.holding, failing, error: Option.some(reported) },
    failures
  }]
}

/**
 * The endpoint, or an API at its URL, refused the credentials, or limits the rate. Another attempt soon does not help.
 */
const isRefusal = (error: AccessTokenError): boolean =>
  error._tag === "TokenRefusedError" &&
  (error.reason === "InvalidClient" || error.reason === "RateLimited" || error.status === 401)

const sourceFault = (code: string) =>
  new TokenRequestError({ reason: "Transport", attempts: 0, code: Option.some(code) })

/** By the clock that advanced further, because the monotonic clock may stop while the machine sleeps. */
const elapsed = (since: Instant, now: Instant): number =>
  Math.max(now.wall - since.wall, now.monotonic - since.monotonic)

export const hasValidToken = ({ held }: State, now: Instant): boolean =>
  Option.exists(held, (held) => isValid(held, now))

/** Whether this token is still cached, and valid. */
export const isServed = ({ held }: State, { token }: Held, now: Instant): boolean =>
  Option.exists(held, (held) => sameValue(held.token, token) && isValid(held, now))

export const tokenStateOf = ({ activity, held }: State, now: Instant): "Empty" | tokenPolicy.TokenState | "Closed" =>
  activity._tag === "Closed"
    ? "Closed"
    : Option.match(held, { onNone: () => "Empty", onSome: (held) => stateOf(held, now) })

/** The end of the cooldown after a failure, by the current wall clock, and that failure. */
export const cooldown = (state: State, now: Instant) => {
  if (state.activity._tag !== "Cooldown") return Option.none()
  const { error, failing, holding, since } = state.activity
  const left = (hasValidToken(state, now) ? holding : failing) - elapsed(since, now)
  return left <= 0
    ? Option.none()
    : Option.map(error, (error) => ({ until: DateTime.unsafeMake(Math.ceil(now.wall + left)), error }))
}
