import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as Runtime from "effect/Runtime"
import type * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"

/** Starts an effect at once, in a fiber of its own. `caller`: the fiber refs of the fiber that wants it. */
export type Launch = (effect: Effect.Effect<void>, caller: FiberRefs.FiberRefs) => void

/**
 * Starts effects in the runtime of the layer that is being built and in the given scope: whoever starts one may be
 * interrupted, or end, and it goes on. `forkIn` would do that too, but would carry the caller's log annotations, spans and
 * uninterruptibility along. From the caller come only the loggers, the minimum log level and the tracer, which users
 * merge beside our layer rather than below it.
 */
export const make = (scope: Scope.Scope): Effect.Effect<Launch> =>
  Effect.map(Effect.runtime(), (runtime) => (effect, caller) => {
    const carried = <A>(fiberRef: FiberRef.FiberRef<A>) =>
      Effect.locally(fiberRef, FiberRefs.getOrDefault(caller, fiberRef))
    const services = FiberRefs.getOrDefault(caller, DefaultServices.currentServices)
    const carrying = effect.pipe(
      carried(FiberRef.currentLoggers),
      carried(FiberRef.currentMinimumLogLevel),
      Effect.withTracer(Context.get(services, Tracer.Tracer))
    )
    Runtime.runFork(runtime, carrying, { scope })
  })
