import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as Runtime from "effect/Runtime"
import * as Tracer from "effect/Tracer"

/** Starts an effect in a new fiber. `caller` are the fiber refs of the fiber that starts it. */
export type Launch = (effect: Effect.Effect<void>, caller: FiberRefs.FiberRefs) => void

/**
 * Starts effects in the runtime of the layer that is being built. They continue when their caller is interrupted.
 * `forkDaemon` would also inherit the caller's log annotations, spans and uninterruptibility. These effects inherit
 * only the loggers, the minimum log level and the tracer, which users often provide beside our layer and not below it.
 */
export const make: Effect.Effect<Launch> = Effect.map(Effect.runtime(), (runtime) => (effect, caller) => {
  const carried = <A>(fiberRef: FiberRef.FiberRef<A>) =>
    Effect.locally(fiberRef, FiberRefs.getOrDefault(caller, fiberRef))
  const services = FiberRefs.getOrDefault(caller, DefaultServices.currentServices)
  const carrying = effect.pipe(
    carried(FiberRef.currentLoggers),
    carried(FiberRef.currentMinimumLogLevel),
    Effect.withTracer(Context.get(services, Tracer.Tracer))
  )
  Runtime.runFork(runtime, carrying)
})
