/** Runs acquisitions, each in its own fibers, so that no caller affects them. */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import type { AccessToken } from "../../AccessToken.js"
import { type AccessTokenError, TokenRequestError } from "../../AccessTokenError.js"
import type { Service as Source } from "../../TokenSource.js"
import { bounded } from "../bounded.js"
import { Renewal } from "../renewal.js"
import type { Acquisition } from "./tokenState.js"

export interface Acquisitions {
  /** Starts an acquisition in the background. */
  readonly launch: (acquisition: Acquisition) => Effect.Effect<unknown>
  /** Lets an acquisition fail, as if its time limit had passed. */
  readonly abandon: (acquisition: Acquisition) => Effect.Effect<unknown>
  /** Ends the acquisition in flight, and waits for its finalizers. */
  readonly close: Effect.Effect<void>
}

/** Reports how an acquisition ended. Only the first report of an acquisition counts, and none after closing. */
type Land = (acquisition: Acquisition, exit: Exit.Exit<AccessToken, AccessTokenError>) => Effect.Effect<void>

/** The time limit of an acquisition, in case its source never ends. */
const longestAcquisition = "2 minutes"

const timeoutError = new TokenRequestError({ reason: "Timeout", attempts: 0 })

/** How long closing the scope waits for the finalizers of an acquisition, such as the release of a lease. */
const longestClosing = "10 seconds"

export const make = (source: Source, land: Land): Effect.Effect<Acquisitions> =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const fork = yield* Scope.extend(forkInLayer, scope)

    const acquire = (acquisition: Acquisition) =>
      Effect.suspend(() => source.acquire(Option.fromNullable(acquisition.replacing))).pipe(
        Effect.provideService(Renewal, acquisition.isRenewal),
        Effect.withSpan("AccessTokenProvider.acquire", { captureStackTrace: false }),
        Effect.interruptible,
        Effect.exit,
        Effect.flatMap((exit) => land(acquisition, exit)),
        Effect.uninterruptible
      )

    /**
     * Limits the time of an acquisition. Interrupts the source when the result is known, which may be before the source
     * ends, and does not wait for it.
     */
    const watch = (acquisition: Acquisition, fiber: Fiber.RuntimeFiber<void>) =>
      Deferred.await(acquisition.done).pipe(
        Effect.timeoutFail({ duration: longestAcquisition, onTimeout: () => timeoutError }),
        Effect.interruptible,
        // Without effect if the acquisition has already landed with a failure.
        Effect.catchAllCause((cause) => land(acquisition, Exit.failCause(cause))),
        Effect.ensuring(Fiber.interruptFork(fiber)),
        Effect.uninterruptible
      )

    return {
      launch: (acquisition) => Effect.flatMap(fork(acquire(acquisition)), (fiber) => fork(watch(acquisition, fiber))),
      abandon: (acquisition) => fork(Effect.uninterruptible(land(acquisition, Exit.fail(timeoutError)))),
      close: Scope.close(scope, Exit.void).pipe(bounded(longestClosing, Effect.void))
    }
  })

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
