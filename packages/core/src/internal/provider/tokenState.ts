/**
 * The provider's state machine. There is one pure function per event: a caller calls `get` or `refresh`, or asks once
 * more after it has waited; an API rejects a token; an acquisition has landed; the scope closes. Each returns what to
 * do and the next state. The clocks and chance are inputs.
 */
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import type { AccessToken } from "../../AccessToken.js"
import {
  type AccessTokenError,
  TokenRequestError,
  withRetryAt
} from "../../AccessTokenError.js"
import * as TokenSource from "../../TokenSource.js"
import { untilRetry } from "../backoff.js"
import { elapsed, type Instant } from "../instant.js"
import { sameValue } from "../repeatedToken.js"
import {
  expiredError,
  type Held,
  hold,
  isValid,
  longestWaitFor,
  stateOf
} from "./heldToken.js"
import * as rejectionBudget from "./rejectionBudget.js"
import * as tokenPolicy from "./tokenPolicy.js"

/** An acquisition in flight: one call of the source, shared by all callers that wait for it. */
export interface InFlight {
  /** What the source is asked for. A `get` asks for a renewal while a valid token is cached. A `refresh` never does. */
  readonly acquisition: TokenSource.Acquisition
  readonly startedAt: Instant
  /** Completed after the state has changed. The source may still run, if its time limit ended the acquisition. */
  readonly done: Deferred.Deferred<AccessToken, AccessTokenError>
}

export interface State {
  /** The cached token, which may have expired. */
  readonly held: Held | undefined
  /** The token that an API rejected, until an acquisition succeeds. */
  readonly rejected: Held | undefined
  readonly inFlight: InFlight | undefined
  /** Never together with an acquisition in flight. */
  readonly cooldown: Cooldown | undefined
  /** Failures in a row. */
  readonly failures: number
  readonly rejections: rejectionBudget.RejectionBudget
  /** Once true, always true. */
  readonly isClosed: boolean
}

/** The time after a failure in which no request is sent. */
interface Cooldown extends tokenPolicy.CooldownLengths {
  readonly since: Instant
  readonly error: AccessTokenError
}

export type Result = Exit.Exit<AccessToken, AccessTokenError>

/** The caller gets the cached token, or a failure. */
interface Answer {
  readonly _tag: "Answer"
  readonly exit: Result
}

/** The caller waits until the acquisition has ended, or for `atMost` milliseconds, and then asks again. */
export interface Wait {
  readonly _tag: "Wait"
  readonly inFlight: InFlight
  readonly atMost: number
}

/**
 * Starts an acquisition, or lets a renewal that takes too long fail in the background. The caller then does what `then`
 * says, like callers that come later.
 */
interface Start {
  readonly _tag: "Start" | "Abandon"
  readonly inFlight: InFlight
  readonly then: Answer | Wait
}

export type Action = Answer | Wait | Start

/** Returns what to do, and the next state. */
export type Event<Outcome> = (state: State, now: Instant) => readonly [Outcome, State]

export const initial: State = {
  held: undefined,
  rejected: undefined,
  inFlight: undefined,
  cooldown: undefined,
  failures: 0,
  rejections: rejectionBudget.full,
  isClosed: false
}

export const closedError = new TokenRequestError({ reason: "Closed", attempts: 0 })

/** A caller wants a valid token. */
export const get: Event<Action> = (state, now) => {
  const held = validToken(state, now)
  if (held !== undefined) return getWithToken(held)(state, now)
  const cooldown = currentCooldown(state, now)
  return cooldown === undefined
    ? joinOrStart(state.failures)(state, now)
    : [answer(Exit.fail(cooldown.error)), state]
}

const getWithToken = (held: Held): Event<Action> => (state, now) => {
  const cached = stateOf(held, now)
  const serve = answer(held.exit)
  if (cached === "Fresh") return [serve, state]
  const then = (inFlight: InFlight) =>
    cached === "MustWait" ? wait(inFlight, longestWaitFor(held, now)) : serve
  if (state.inFlight !== undefined) return [then(state.inFlight), state]
  const isTooSoon = elapsed(held.arrivedAt, now) < tokenPolicy.shortestRenewalInterval
  if (isTooSoon || currentCooldown(state, now) !== undefined) return [serve, state]
  return start({ reason: "Renewal", replacing: Option.some(held.token) }, then)(state, now)
}

const joinOrStart = (failures: number): Event<Action> => (state, now) => {
  const { inFlight, isClosed } = state
  if (isClosed) return [answer(Exit.fail(closedError)), state]
  if (inFlight !== undefined) {
    const left = timeToJoin(inFlight, now)
    return [
      left > 0 ? wait(inFlight, left) : { _tag: "Abandon", inFlight, then: wait(inFlight) },
      state
    ]
  }
  return start(acquisitionFor(state, now), wait)({ ...state, failures }, now)
}

/** A caller wants a new token. Joins an acquisition in flight, or starts one and ends the cooldown. */
export const refresh: Event<Action> = joinOrStart(0)

/** What a caller that cannot wait for a renewal needs. With a valid token, it has called `refresh`. */
const acquisitionFor = ({ held, rejected }: State, now: Instant): TokenSource.Acquisition => {
  if (held !== undefined) {
    return {
      reason: isValid(held, now) ? "Refresh" : "Expired",
      replacing: Option.some(held.token)
    }
  }
  return rejected === undefined
    ? TokenSource.missing
    : { reason: "Rejected", replacing: Option.some(rejected.token) }
}

const start = (
  acquisition: TokenSource.Acquisition,
  then: (inFlight: InFlight) => Answer | Wait
): Event<Action> =>
(state, startedAt) => {
  const inFlight: InFlight = {
    acquisition,
    startedAt,
    done: Deferred.unsafeMake(FiberId.none)
  }
  return [{ _tag: "Start", inFlight, then: then(inFlight) }, {
    ...state,
    inFlight,
    cooldown: undefined
  }]
}

const isRenewal = ({ acquisition }: InFlight): boolean => acquisition.reason === "Renewal"

/** How long a caller that needs a token, or called `refresh`, may wait for an acquisition. */
const timeToJoin = (inFlight: InFlight, now: Instant): number =>
  isRenewal(inFlight) ? tokenPolicy.oldestRenewal - elapsed(inFlight.startedAt, now) : Infinity

/** What a caller has waited for. There is no result if the acquisition is still in flight. */
export interface Waited {
  readonly inFlight: InFlight
  readonly exit: Result | undefined
}

/**
 * A caller of `get` has waited. It does not wait again while a valid token is cached. The failure of a renewal may be
 * old, as in a process that was frozen. So the caller does not get it and asks again, which starts another acquisition,
 * unless the endpoint sent a `Retry-After`.
 */
export const getAgain = ({ exit, inFlight }: Waited): Event<Action> => (state, now) => {
  const held = validToken(state, now)
  if (held !== undefined) return [answer(held.exit), state]
  const isFailure = exit !== undefined && Exit.isFailure(exit)
  return isFailure && !isRenewal(inFlight) ? [answer(exit), state] : get(state, now)
}

/**
 * A caller of `refresh` has waited. It gets the failure of a renewal only while the cached token is valid. Without one
 * it needs a token, like a caller of `get`. After a renewal that took too long, it starts its own acquisition.
 */
export const refreshAgain = (waited: Waited): Event<Action> => (state, now) => {
  const { exit, inFlight } = waited
  if (exit === undefined) return refresh(state, now)
  if (Exit.isSuccess(exit)) return getAgain(waited)(state, now)
  if (timeToJoin(inFlight, now) <= 0) return refresh(state, now)
  return validToken(state, now) === undefined
    ? getAgain(waited)(state, now)
    : [answer(exit), state]
}

/** An API rejected a token. Without budget, the rejection has no effect. */
export const reject =
  (token: AccessToken): Event<"Dropped" | "Kept" | "NotCached"> => (state, now) => {
    if (state.held === undefined || !sameValue(state.held.token, token)) {
      return ["NotCached", state]
    }
    const rejections = rejectionBudget.spend(state.rejections, now)
    return rejections === undefined
      ? ["Kept", state]
      : ["Dropped", { ...state, held: undefined, rejected: state.held, rejections }]
  }

/** What the source returned for an acquisition, and a random number from 0 to 1. */
interface Ended {
  readonly inFlight: InFlight
  readonly exit: Result
  readonly chance: number
}

/** The end of an acquisition. */
export interface Landed {
  readonly inFlight: InFlight
  /** For the callers that wait. */
  readonly exit: Result
  /** The cached token, if it is valid. */
  readonly held: Held | undefined
  /** For metrics and logs. */
  readonly failure: {
    readonly error: AccessTokenError["_tag"] | "Defect"
    readonly reason: string
  } | undefined
}

/** An acquisition has ended. Returns nothing if it is not in flight any more. */
export const land =
  (policy: tokenPolicy.TokenPolicy, ended: Ended): Event<Landed | undefined> =>
  (
    state,
    now
  ) => {
    const { chance, exit, inFlight } = ended
    if (state.inFlight !== inFlight) return [undefined, state]
    if (Exit.isFailure(exit)) return landFailure(policy, ended, exit.cause)(state, now)
    const { rejected, rejections } = state
    // After a rejection, only the rejected token itself brings no progress.
    const isRejected = rejected !== undefined && sameValue(rejected.token, exit.value)
    const last = state.held ?? (isRejected ? rejected : undefined)
    const held = hold(policy, exit.value, { startedAt: inFlight.startedAt, now, chance, last })
    if (!isValid(held, now)) {
      return landFailure(policy, ended, Cause.fail(expiredError(held, now, "DeadOnArrival")))(
        state,
        now
      )
    }
    return [
      { inFlight, exit: held.exit, held, failure: undefined },
      {
        ...initial,
        held,
        rejections: rejected === undefined
          ? rejections
          : rejectionBudget.resume(rejections, now)
      }
    ]
  }

/** Starts a cooldown. */
const landFailure = (
  policy: tokenPolicy.TokenPolicy,
  { chance, inFlight }: Ended,
  cause: Cause.Cause<AccessTokenError>
): Event<Landed> =>
(state, now) => {
  const error = errorOf(cause)
  const failures = state.failures + 1
  const lengths = tokenPolicy.cooldownLengths(policy, {
    failures,
    isRefusal: isRefusal(error),
    isRenewal: isRenewal(inFlight),
    retryAfter: untilRetry(error, now.wall),
    chance
  })
  const cooldown = { ...lengths, since: now, error }
  // With the `retryAt` that callers see now.
  const reported = currentCooldown({ ...state, cooldown }, now)?.error ?? error
  const isDefect = Cause.isDie(cause)
  return [
    {
      inFlight,
      // Waiting callers get a defect as it is, later ones the typed error.
      exit: isDefect ? Exit.failCause(cause) : Exit.fail(reported),
      held: validToken(state, now),
      // The message of a defect comes from the source and may contain anything.
      failure: isDefect
        ? { error: "Defect", reason: "the TokenSource failed with a defect" }
        : { error: reported._tag, reason: reported.message }
    },
    { ...state, inFlight: undefined, cooldown: { ...cooldown, error: reported }, failures }
  ]
}

/** The error of an acquisition that failed. A source may also interrupt itself, or fail with a defect. */
const errorOf = (cause: Cause.Cause<AccessTokenError>): AccessTokenError => {
  const code = Cause.isInterruptedOnly(cause) ? "SOURCE_INTERRUPTED" : "SOURCE_DEFECT"
  return Option.getOrElse(
    Cause.failureOption(cause),
    () => new TokenRequestError({ reason: "Transport", attempts: 0, code })
  )
}

/**
 * Whether the endpoint, an API at its URL, or a proxy refused the credentials, or the endpoint limits the rate. Another
 * attempt soon does not help, and a proxy may lock the account after a few of them.
 */
const isRefusal = (error: AccessTokenError): boolean => {
  if (error._tag === "TokenRequestError") return error.reason === "Proxy"
  return error._tag === "TokenRefusedError" &&
    (error.reason === "InvalidClient" || error.reason === "RateLimited" ||
      error.httpStatus === 401)
}

/** The scope closes. Returns the acquisition in flight. */
export const close: Event<InFlight | undefined> = (
  { inFlight }
) => [inFlight, { ...initial, isClosed: true }]

/** The end of the cooldown by the current wall clock, and the failure that caused it, or undefined without one. */
export const currentCooldown = (
  state: State,
  now: Instant
): { readonly until: DateTime.Utc; readonly error: AccessTokenError } | undefined => {
  if (state.cooldown === undefined) return undefined
  const { error, since, withToken, withoutToken } = state.cooldown
  const left = (validToken(state, now) === undefined ? withoutToken : withToken) -
    elapsed(since, now)
  // Rounded up, so that it stays the same while the clocks differ by a fraction of a millisecond.
  const until = DateTime.unsafeMake(Math.ceil(now.wall + left))
  return left > 0 ? { until, error: withRetryAt(error, Option.some(until)) } : undefined
}

/** The cached token, unless it has expired. */
const validToken = ({ held }: State, now: Instant): Held | undefined =>
  held !== undefined && isValid(held, now) ? held : undefined

const answer = (exit: Result): Answer => ({ _tag: "Answer", exit })

const wait = (inFlight: InFlight, atMost = Infinity): Wait => ({
  _tag: "Wait",
  inFlight,
  atMost
})
