/** Runs acquisitions, each in its own fibers, so that no caller affects them, and lands their results. */
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as FiberSet from "effect/FiberSet"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import type { AccessToken } from "../../AccessToken.js"
import { type AccessTokenError, TokenRequestError } from "../../AccessTokenError.js"
import type * as TokenSource from "../../TokenSource.js"
import { bounded } from "../bounded.js"
import type { Instant } from "../instant.js"
import type { Measure } from "./measure.js"
import type { TokenPolicy } from "./tokenPolicy.js"
import * as tokenState from "./tokenState.js"

export interface Acquisitions {
  /** Starts an acquisition in the background. */
  readonly launch: (inFlight: tokenState.InFlight) => Effect.Effect<unknown>
  /** Lets an acquisition fail, as if its time limit had passed. */
  readonly abandon: (inFlight: tokenState.InFlight) => Effect.Effect<unknown>
  /** Interrupts what runs, and waits for its finalizers. */
  readonly close: Effect.Effect<void>
}

/** The time limit of an acquisition, in case its source never ends. */
const longestAcquisition = "2 minutes"

const timeoutError = new TokenRequestError({ reason: "Timeout", attempts: 0 })

/** How long closing the scope waits for the finalizers of an acquisition, such as the release of a lease. */
const longestClosing = "10 seconds"

/** The state of the provider, as an event changes it. */
export type Change = <A>(
  event: (state: tokenState.State, now: Instant) => readonly [A, tokenState.State]
) => Effect.Effect<A>

export const make = ({ change, measure, policy, source }: {
  readonly source: TokenSource.Service
  readonly policy: TokenPolicy
  readonly change: Change
  readonly measure: Measure
}): Effect.Effect<Acquisitions> =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const fork = yield* Scope.extend(forkInLayer, scope)

    /** Only the first result of an acquisition counts, and none after closing. */
    const land = (inFlight: tokenState.InFlight, exit: Exit.Exit<AccessToken, AccessTokenError>) =>
      Effect.gen(function*() {
        const chance = yield* Random.next
        const landed = yield* change(tokenState.land(policy, { inFlight, exit, chance }))
        if (landed === undefined) return
        // Updates the metrics first, so that callers see them updated. Completes the callers even if that throws.
        yield* Effect.ensuring(
          Effect.sync(() => measure.landed(landed)),
          Deferred.done(inFlight.done, landed.exit)
        )
        yield* report(landed)
      })

    const acquire = (inFlight: tokenState.InFlight) =>
      Effect.suspend(() => source.acquire(inFlight.acquisition)).pipe(
        Effect.withSpan("AccessTokenProvider.acquire", { captureStackTrace: false }),
        Effect.interruptible,
        Effect.exit,
        Effect.flatMap((exit) => land(inFlight, exit)),
        // `land` throws if the source returned something else than a token. If a logger throws, the acquisition has
        // already landed, and the second `land` has no effect.
        Effect.catchAllDefect((defect) => land(inFlight, Exit.die(defect))),
        Effect.uninterruptible
      )

    /**
     * Limits the time of an acquisition. Interrupts the source when the result is known, which may be before the source
     * ends, and does not wait for it.
     */
    const watch = (inFlight: tokenState.InFlight, fiber: Fiber.RuntimeFiber<void>) =>
      Deferred.await(inFlight.done).pipe(
        Effect.timeoutFail({ duration: longestAcquisition, onTimeout: () => timeoutError }),
        Effect.interruptible,
        // Without effect if the acquisition has already landed with a failure.
        Effect.catchAllCause((cause) => land(inFlight, Exit.failCause(cause))),
        Effect.ensuring(Fiber.interruptFork(fiber)),
        Effect.uninterruptible
      )

    return {
      launch: (inFlight) => Effect.flatMap(fork(acquire(inFlight)), (fiber) => fork(watch(inFlight, fiber))),
      abandon: (inFlight) => fork(Effect.uninterruptible(land(inFlight, Exit.fail(timeoutError)))),
      close: Scope.close(scope, Exit.void).pipe(bounded(longestClosing, Effect.void))
    }
  })

/** Logs the failure of a renewal, because callers of `get` do not see it. Callers get any other failure. */
const report = ({ failure, held, inFlight }: tokenState.Landed): Effect.Effect<void> => {
  if (failure === undefined) {
    return Effect.annotateLogs(Effect.logDebug("Access token acquired"), {
      expiresAt: DateTime.formatIso(held.token.expiresAt)
    })
  }
  const renewed = tokenState.renewedToken(inFlight)
  if (renewed === undefined) return Effect.void
  const warning = held === undefined
    ? Effect.logWarning("Access token renewal failed, and the cached token is not valid any more")
    : Effect.logWarning("Access token renewal failed; the cached token is served until it expires")
  return Effect.annotateLogs(warning, { expiresAt: DateTime.formatIso(renewed.expiresAt), ...failure })
}

/**
 * Starts effects in fibers that end with the scope. They run in the runtime of the layer that is being built, without
 * its span, which ends long before the layer does. From the fiber that starts them, they have only the loggers, the
 * minimum log level and the tracer, which users often provide beside our layer and not below it.
 */
const forkInLayer = FiberSet.makeRuntime().pipe(
  Effect.mapInputContext((context: Context.Context<Scope.Scope>) => Context.omit(Tracer.ParentSpan)(context)),
  Effect.map((run) => (effect: Effect.Effect<void>) =>
    Effect.gen(function*() {
      const loggers = yield* FiberRef.get(FiberRef.currentLoggers)
      const minimumLogLevel = yield* FiberRef.get(FiberRef.currentMinimumLogLevel)
      const tracer = yield* Effect.tracer
      // Yields first, so that the effect does not run on the stack of the caller.
      return run(
        Effect.zipRight(Effect.yieldNow(), effect).pipe(
          Effect.locally(FiberRef.currentLoggers, loggers),
          Effect.locally(FiberRef.currentMinimumLogLevel, minimumLogLevel),
          Effect.withTracer(tracer)
        )
      )
    })
  )
)
