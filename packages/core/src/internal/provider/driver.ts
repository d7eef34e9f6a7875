/**
 * The shell around the state machine: does what the state says to an event of a caller, and runs acquisitions, each in
 * its own fibers, so that no caller affects them.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import type { AccessToken } from "../../AccessToken.js"
import { type AccessTokenError, TokenRequestError } from "../../AccessTokenError.js"
import type * as TokenSource from "../../TokenSource.js"
import * as asyncContext from "../asyncContext.js"
import * as instant from "../instant.js"
import { waitAtMost } from "../waitAtMost.js"
import { expiredError, isValid, stateOf } from "./heldToken.js"
import * as measures from "./measure.js"
import * as tokenPolicy from "./tokenPolicy.js"
import * as tokenState from "./tokenState.js"

type TokenEffect = Effect.Effect<AccessToken, AccessTokenError>

const timeoutError = new TokenRequestError({ reason: "Timeout", attempts: 0 })

/** Makes the functions of a provider. */
export const make = (source: TokenSource.Service, options: tokenPolicy.Options) =>
  Effect.gen(function*() {
    const policy = yield* tokenPolicy.make(options)
    const clock = yield* Clock.clockWith(Effect.succeed)
    const now = instant.reader(clock)
    const state = yield* Ref.make(tokenState.initial)
    const measure = yield* measures.make(now)
    const fibers = yield* Scope.make()
    const fork = yield* Scope.extend(forkInLayer, fibers)

    /** Changes the state by an event. */
    const change = <Outcome>(event: tokenState.Event<Outcome>): Effect.Effect<Outcome> =>
      Ref.modify(state, (current) => event(current, now()))

    // Waiting callers get `Closed`. If an acquisition is landing now, its own fiber completes them.
    yield* Effect.addFinalizer(() =>
      Effect.gen(function*() {
        const inFlight = yield* change(tokenState.close)
        if (inFlight !== undefined) yield* Deferred.fail(inFlight.done, tokenState.closedError)
        yield* Scope.close(fibers, Exit.void).pipe(
          waitAtMost(tokenPolicy.longestClosing, Effect.void)
        )
        yield* Effect.sync(measure.clearExpiry)
      })
    )

    /** Lands the result of an acquisition. Only the first one counts, and none after closing. */
    const land = (inFlight: tokenState.InFlight, exit: tokenState.Result) =>
      Effect.gen(function*() {
        const chance = yield* Random.next
        const landed = yield* change(tokenState.land(policy, { inFlight, exit, chance }))
        if (landed === undefined) return
        // Updates the metrics first, so that callers see them updated. Completes the callers even if that throws.
        yield* Effect.ensuring(
          Effect.sync(() => measure.recordEnd(landed)),
          Deferred.done(inFlight.done, landed.exit)
        )
        yield* report(landed)
      })

    /** Waits for a result, and lands it. */
    const landResult = (inFlight: tokenState.InFlight, result: TokenEffect) =>
      Effect.flatMap(Effect.exit(Effect.interruptible(result)), (exit) => land(inFlight, exit))

    /** Starts an acquisition in the background. */
    const launch = (inFlight: tokenState.InFlight) =>
      Effect.gen(function*() {
        const token = Effect.suspend(() => source.acquire(inFlight.acquisition)).pipe(
          Effect.withSpan("AccessTokenProvider.acquire", { captureStackTrace: false })
        )
        const fiber = yield* fork(
          landResult(inFlight, token).pipe(
            // `land` throws if the source returned something else than a token. If a logger throws, the acquisition has
            // already landed, and the second `land` has no effect.
            Effect.catchAllDefect((defect) => land(inFlight, Exit.die(defect)))
          )
        )
        const result = Deferred.await(inFlight.done).pipe(
          Effect.timeoutFail({
            duration: tokenPolicy.longestAcquisition,
            onTimeout: () => timeoutError
          })
        )
        // Interrupts the source when the result is known, which may be before it ends, and does not wait for it.
        yield* fork(Effect.ensuring(landResult(inFlight, result), Fiber.interruptFork(fiber)))
      })

    /** Waits until the acquisition has ended, or for the time that the state allows. Returns the result, if any. */
    const waitFor = ({ atMost, inFlight }: tokenState.Wait) => {
      const result = Effect.exit(Deferred.await(inFlight.done))
      return atMost === Infinity
        ? result
        : Effect.withClock(waitAtMost(atMost, Effect.succeed(undefined))(result), clock)
    }

    /**
     * Does what the state says to an event of a caller. A caller that has waited asks the state again. A change of the
     * state and the start of its acquisition both happen, or neither.
     */
    const drive = (
      event: CallerEvent,
      afterWait: (waited: tokenState.Waited) => CallerEvent
    ): TokenEffect =>
      Effect.uninterruptibleMask((restore) => {
        const perform = (action: tokenState.Action): TokenEffect => {
          switch (action._tag) {
            case "Answer":
              return action.exit
            case "Wait": {
              const { inFlight } = action
              return restore(Effect.flatMap(asyncContext.keep(waitFor(action)), (exit) =>
                drive(afterWait({ inFlight, exit }), afterWait)))
            }
            case "Start":
              return Effect.zipRight(launch(action.inFlight), perform(action.then))
            case "Abandon":
              return Effect.zipRight(
                fork(land(action.inFlight, Exit.fail(timeoutError))),
                perform(action.then)
              )
          }
        }
        return Effect.flatMap(change(event), (action) => {
          if (action._tag === "Wait") {
            measure.countJoin()
          }
          return perform(action)
        })
      })

    const getOrAcquire = drive(tokenState.get, tokenState.getAgain)

    return {
      // Hot path. Reads the state once, compares both clocks, and returns an `Exit` from when the token arrived.
      get: Effect.flatMap(Ref.get(state), ({ held }) => {
        if (held === undefined) return getOrAcquire
        const { from, until, untilNanos } = held.fresh
        const wall = clock.unsafeCurrentTimeMillis()
        const isFresh = wall >= from && wall < until &&
          clock.unsafeCurrentTimeNanos() < untilNanos
        return isFresh ? held.exit : getOrAcquire
      }),
      current: Effect.flatMap(Ref.get(state), (current) => currentToken(current, now())),
      refresh: drive(tokenState.refresh, tokenState.refreshAgain),
      invalidate: (token: AccessToken) =>
        Effect.uninterruptible(Effect.map(change(tokenState.reject(token)), (outcome) => {
          if (outcome !== "NotCached") measure.countRejection(outcome)
        })),
      status: Effect.map(Ref.get(state), (current) => statusOf(current, now()))
    }
  })

/** An event of a caller. */
type CallerEvent = tokenState.Event<tokenState.Action>

const currentToken = (state: tokenState.State, now: instant.Instant) => {
  const { held } = state
  if (held === undefined) return Effect.succeedNone
  if (isValid(held, now)) return Effect.succeedSome(held.token)
  return expiredError(held, now, "Elapsed", tokenState.currentCooldown(state, now)?.until)
}

const statusOf = (state: tokenState.State, now: instant.Instant) => {
  const { held, inFlight, isClosed } = state
  const cached = held === undefined ? "Empty" : stateOf(held, now)
  const cooldown = Option.fromNullable(tokenState.currentCooldown(state, now))
  return {
    state: isClosed ? "Closed" : cached,
    expiresAt: Option.fromNullable(held?.token.expiresAt),
    acquiring: inFlight !== undefined,
    cooldown: Option.map(cooldown, ({ error, until }) => ({ until, error: error._tag }))
  } as const
}

/** Logs the failure of a renewal, because callers of `get` do not see it. Callers get any other failure. */
const report = ({ exit, failure, held, inFlight }: tokenState.Landed): Effect.Effect<void> => {
  if (Exit.isSuccess(exit)) {
    return Effect.annotateLogs(Effect.logDebug("Access token acquired"), {
      expiresAt: DateTime.formatIso(exit.value.expiresAt)
    })
  }
  const { reason, replacing } = inFlight.acquisition
  if (reason !== "Renewal" || Option.isNone(replacing)) return Effect.void
  const warn = held === undefined
    ? Effect.logWarning(
      "Access token renewal failed, and the cached token is not valid any more"
    )
    : Effect.logWarning(
      "Access token renewal failed; the cached token is served until it expires"
    )
  return Effect.annotateLogs(warn, {
    expiresAt: DateTime.formatIso(replacing.value.expiresAt),
    ...failure
  })
}

/**
 * Starts effects in fibers that end with the scope, uninterruptible except where they say otherwise. They run in the
 * runtime of the layer that is being built, without its span, which ends long before the layer does. From the fiber
 * that starts them, they have only the loggers, the minimum log level and the tracer, which users often provide beside
 * our layer and not below it.
 */
const forkInLayer = FiberSet.makeRuntime().pipe(
  Effect.mapInputContext((context: Context.Context<Scope.Scope>) =>
    Context.omit(Tracer.ParentSpan)(context)
  ),
  Effect.map((run) => (effect: Effect.Effect<void>) =>
    Effect.gen(function*() {
      const loggers = yield* FiberRef.get(FiberRef.currentLoggers)
      const minimumLogLevel = yield* FiberRef.get(FiberRef.currentMinimumLogLevel)
      const tracer = yield* Effect.tracer
      // Yields first, so that the effect does not run on the stack of the caller.
      return run(
        Effect.zipRight(Effect.yieldNow(), effect).pipe(
          Effect.uninterruptible,
          Effect.locally(FiberRef.currentLoggers, loggers),
          Effect.locally(FiberRef.currentMinimumLogLevel, minimumLogLevel),
          Effect.withTracer(tracer)
        )
      )
    })
  )
)
