/** The parts of Effect 4 that differ from Effect 3 in tests. `packages/testing/test/effectMajor.ts` describes them. */
import { Cause, Clock, Console, Duration, Effect, Metric, Scheduler, type Scope } from "effect"
import { HttpClient, type HttpClientError } from "effect/http"

export type LiveSteps = Steps
export type Steps = Generator<Effect.Effect<unknown, unknown, Scope.Scope>, void, never>

export const clockOf = ({ monotonic, sleep, wall }: {
  readonly wall: () => number
  readonly monotonic: () => number
  readonly sleep: (duration: Duration.Duration) => Effect.Effect<void>
}): Clock.Clock => {
  const nanosOf = (millis: () => number) => () => BigInt(Math.round(millis() * 1e6))
  return {
    currentTimeMillisUnsafe: wall,
    currentTimeNanosUnsafe: nanosOf(wall),
    monotonicTimeNanosUnsafe: nanosOf(monotonic),
    currentTimeMillis: Effect.sync(wall),
    currentTimeNanos: Effect.sync(nanosOf(wall)),
    monotonicTimeNanos: Effect.sync(nanosOf(monotonic)),
    sleep
  }
}

const nextTurn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

/** Waits until no other fiber can continue. Each fork of a fork starts in the next turn of the event loop. */
export const settle: Effect.Effect<void> = Effect.forEach([1, 2, 3, 4], () => nextTurn, { discard: true })

/** The moments at which fibers that sleep wake up, by clock: the test clock does not show them. */
const sleeps = new WeakMap<Clock.Clock, Set<{ readonly until: number }>>()

export const watchSleeps: Effect.Effect<void> = Effect.map(Clock.Clock, (clock) => {
  if (sleeps.has(clock)) return
  const sleepers = new Set<{ readonly until: number }>()
  sleeps.set(clock, sleepers)
  const sleep = clock.sleep.bind(clock)
  Object.assign(clock, {
    sleep: (duration: Duration.Duration) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const sleeper = { until: clock.currentTimeMillisUnsafe() + Duration.toMillis(duration) }
          sleepers.add(sleeper)
          return sleeper
        }),
        () => sleep(duration),
        (sleeper) => Effect.sync(() => sleepers.delete(sleeper))
      )
  })
})

export const nextWakeUp: Effect.Effect<number> = Clock.clockWith((clock) =>
  Effect.sync(() => Math.min(...[...sleeps.get(clock) ?? []].map(({ until }) => until)))
)

export const countingFibers = <A, E, R>(
  use: (fibers: Effect.Effect<number>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    let running = 0
    return use(Effect.sync(() => running)).pipe(
      Effect.provideService(Metric.FiberRuntimeMetrics, {
        recordFiberStart: () => void running++,
        recordFiberEnd: () => void running--
      })
    )
  })

const valueOf = (state: Metric.Metric.Snapshot["state"]) => {
  if ("buckets" in state) return [state.count, state.sum]
  if ("incremental" in state) return Number(state.count)
  return "value" in state ? Number(state.value) : undefined
}

export const allSeries = Effect.map(Metric.snapshot, (all) =>
  all.map(({ attributes = {}, description, id, state }) => ({
    name: id,
    labels: { ...attributes },
    description,
    kind: "buckets" in state
      ? state.buckets.map(([boundary]) => boundary)
      : "incremental" in state && state.incremental
      ? "counts up"
      : "gauge",
    value: valueOf(state)
  })))

export type Series = Effect.Success<typeof allSeries>[number]

export const httpReason = ({ reason }: HttpClientError.HttpClientError): string => reason._tag.replace(/Error$/, "")

export const isFailure = ({ reasons }: Cause.Cause<unknown>): boolean =>
  reasons.length === 1 && reasons.every(Cause.isFailReason)

export const failuresOf = ({ reasons }: Cause.Cause<unknown>): ReadonlyArray<unknown> =>
  reasons.flatMap((reason) =>
    Cause.isFailReason(reason) ? [reason.error] : Cause.isDieReason(reason) ? [reason.defect] : []
  )

export const failureAndDefect = (failure: unknown, defect: unknown): Cause.Cause<unknown> =>
  Cause.combine(Cause.fail(failure), Cause.die(defect))

export const schedulerOf = (
  yields: (operations: number) => boolean,
  schedule: (task: () => void, asUsual: () => void) => void
): Scheduler.Scheduler => {
  const dispatcher = new Scheduler.MixedScheduler().makeDispatcher()
  return {
    executionMode: "async",
    shouldYield: (fiber) => yields(fiber.currentOpCount),
    makeDispatcher: () => ({
      scheduleTask: (task, priority) => schedule(task, () => dispatcher.scheduleTask(task, priority)),
      flush: () => dispatcher.flush()
    })
  }
}

export const withConsole = (see: (method: string, args: ReadonlyArray<unknown>) => void) =>
<A, E, R>(
  effect: Effect.Effect<A, E, R>
) =>
  Effect.flatMap(Console.Console, (current) =>
    Effect.provideService(
      effect,
      Console.Console,
      new Proxy(current, { get: (_, method) => (...args: ReadonlyArray<unknown>) => see(String(method), args) })
    ))

export const withHeadersOnSpans = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, HttpClient.TracerHeaderFilter, () => true)
