/** Parts of Effect that tests use and that differ between its majors. */
import { type HttpClientError } from "@effect/platform"
import {
  Cause,
  Clock,
  type Console,
  type Duration,
  Effect,
  Fiber,
  Metric,
  MetricKeyType,
  MetricState,
  Option,
  Scheduler,
  type Scope,
  TestClock,
  type TestServices
} from "effect"
import type { YieldWrap } from "effect/Utils"

/** The steps of a test on the real clock, and on the test clock. */
export type LiveSteps = Generator<
  YieldWrap<Effect.Effect<unknown, unknown, Scope.Scope>>,
  void,
  never
>
export type Steps = Generator<
  YieldWrap<Effect.Effect<unknown, unknown, Scope.Scope | TestServices.TestServices>>,
  void,
  never
>

/** Creates a clock from a wall clock and a monotonic clock, both in milliseconds. */
export const clockOf = ({ monotonic, sleep, wall }: {
  readonly wall: () => number
  readonly monotonic: () => number
  readonly sleep: (duration: Duration.Duration) => Effect.Effect<void>
}): Clock.Clock => {
  const nanos = () => BigInt(Math.round(monotonic() * 1e6))
  return {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: wall,
    unsafeCurrentTimeNanos: nanos,
    currentTimeMillis: Effect.sync(wall),
    currentTimeNanos: Effect.sync(nanos),
    sleep
  }
}

/** Waits until no other fiber can continue. Fibers run in microtasks, which all end before an immediate. */
export const settle: Effect.Effect<void> = Effect.async((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

/** Starts to record when sleeping fibers wake up. Must run before the first sleep. */
export const watchSleeps: Effect.Effect<void> = Effect.void

/** The time of the test clock at which the next fiber wakes up. */
export const nextWakeUp: Effect.Effect<number> = Effect.map(
  TestClock.sleeps(),
  (all) => Math.min(...all)
)

/** Passes a test the number of running fibers without a parent. */
export const countingFibers = <A, E, R>(
  use: (fibers: Effect.Effect<number>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(Fiber.roots, (roots) => {
    const before = new Set(roots)
    return use(
      Effect.map(
        Fiber.roots,
        (roots) => [...roots].filter((fiber) => !before.has(fiber)).length
      )
    )
  })

/** A series of a metric, as an exporter reads it. */
export interface Series {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly description: string | undefined
  readonly kind: "counts up" | "gauge" | ReadonlyArray<number>
  /** A histogram has a count and a sum. */
  readonly value: number | readonly [count: number, sum: number] | undefined
}

const valueOf = (state: MetricState.MetricState.Untyped): Series["value"] => {
  if (MetricState.isCounterState(state)) return Number(state.count)
  if (MetricState.isGaugeState(state)) return Number(state.value)
  return MetricState.isHistogramState(state) ? [state.count, state.sum] : undefined
}

/** All series of this process. */
export const allSeries: Effect.Effect<ReadonlyArray<Series>> = Effect.map(
  Metric.snapshot,
  (pairs) =>
    pairs.map(({ metricKey: { description, keyType, name, tags }, metricState }) => ({
      name,
      labels: Object.fromEntries(tags.map(({ key, value }) => [key, value])),
      description: Option.getOrUndefined(description),
      kind: MetricKeyType.isHistogramKey(keyType)
        ? keyType.boundaries.values.filter(Number.isFinite)
        : MetricKeyType.isCounterKey(keyType) && keyType.incremental
        ? "counts up"
        : "gauge",
      value: valueOf(metricState)
    }))
)

/** The reason of an error of the HTTP client, such as `Transport`. */
export const httpReason = (error: HttpClientError.HttpClientError): string => error.reason

/** Whether a cause is exactly one typed failure. */
export const isFailure = (cause: Cause.Cause<unknown>): boolean => cause._tag === "Fail"

/** All errors and defects of a cause. */
export const failuresOf = (cause: Cause.Cause<unknown>): ReadonlyArray<unknown> => [
  ...Cause.failures(cause),
  ...Cause.defects(cause)
]

/** Creates a cause from a failure and a defect. */
export const failureAndDefect = (failure: unknown, defect: unknown): Cause.Cause<unknown> =>
  Cause.sequential(Cause.fail(failure), Cause.die(defect))

/**
 * Creates a scheduler. `yields` decides by the number of operations whether a fiber yields. `schedule` gets its task,
 * and a function that schedules the task as usual.
 */
export const schedulerOf = (
  yields: (operations: number) => boolean,
  schedule: (task: () => void, asUsual: () => void) => void
): Scheduler.Scheduler => ({
  shouldYield: (fiber) => yields(fiber.currentOpCount) ? 0 : false,
  scheduleTask: (task, priority) =>
    schedule(task, () => Scheduler.defaultScheduler.scheduleTask(task, priority))
})

/** Passes every call of the console to `see`. */
export const withConsole =
  (see: (method: string, args: ReadonlyArray<unknown>) => void) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.consoleWith((current) => {
      const unsafe = new Proxy(current.unsafe, {
        get: (_, method) => (...args: ReadonlyArray<unknown>) => see(String(method), args)
      })
      return Effect.withConsole(effect, { ...current, unsafe } satisfies Console.Console)
    })

/** Lets the HTTP client record headers on its spans. Effect 3 always does. */
export const withHeadersOnSpans = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => effect
