import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"

/** Starts an effect in a new fiber, which ends with the scope. */
export type ForkInLayer = (effect: Effect.Effect<void>) => Effect.Effect<Fiber.RuntimeFiber<void>>

/**
 * The new fibers run in the runtime of the layer that is being built, without its span, which ends long before the
 * layer does. From the fiber that starts them, they have only the loggers, the minimum log level and the tracer, which
 * users often provide beside our layer and not below it.
 */
export const make: Effect.Effect<ForkInLayer, never, Scope.Scope> = FiberSet.makeRuntime().pipe(
  Effect.mapInputContext((context: Context.Context<Scope.Scope>) => Context.omit(Tracer.ParentSpan)(context)),
  Effect.map((run) => (effect) =>
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
