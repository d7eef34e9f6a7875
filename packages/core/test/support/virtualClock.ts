import { Clock, Duration, Effect } from "effect"
import { settle } from "./scriptedSource.js"

/**
 * A clock of two hands: the wall can be moved without the monotonic one, as an administrator, NTP or a suspend does.
 * Much faster than `TestClock`, for tests that take thousands of steps.
 */
export interface VirtualClock {
  readonly clock: Clock.Clock
  /** Time passes, by both clocks; what sleeps until then wakes in its order. */
  readonly advance: (by: Duration.DurationInput) => Effect.Effect<void>
  /** The wall clock is moved; no time passes. In milliseconds, negative to move it back. */
  readonly jump: (millis: number) => void
  /**
   * The process is stopped and goes on: time passes by both clocks, and no timer fires before the next `advance`. In
   * milliseconds.
   */
  readonly freeze: (millis: number) => void
  readonly wall: () => number
  readonly monotonic: () => number
  /** How many fibers sleep. */
  readonly sleepers: () => number
}

interface Sleeper {
  readonly wakesAt: number
  readonly wake: () => void
}

export const make = (start: number = Date.UTC(2026, 0, 15)): VirtualClock => {
  let monotonic = 0
  let offset = start
  let sleepers: ReadonlyArray<Sleeper> = []
  const wall = () => monotonic + offset
  const nanos = () => BigInt(Math.round(monotonic * 1e6))

  const clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: wall,
    unsafeCurrentTimeNanos: nanos,
    currentTimeMillis: Effect.sync(wall),
    currentTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Duration.toMillis(duration) <= 0 ? Effect.yieldNow() : Effect.async<void>((resume) => {
        const sleeper = { wakesAt: monotonic + Duration.toMillis(duration), wake: () => resume(Effect.void) }
        sleepers = [...sleepers, sleeper]
        return Effect.sync(() => {
          sleepers = sleepers.filter((other) => other !== sleeper)
        })
      })
  }

  const advance = (by: Duration.DurationInput): Effect.Effect<void> =>
    Effect.gen(function*() {
      const target = monotonic + Duration.toMillis(by)
      yield* settle
      while (true) {
        const next = sleepers.filter(({ wakesAt }) => wakesAt <= target).sort((a, b) => a.wakesAt - b.wakesAt)[0]
        if (next === undefined) break
        monotonic = Math.max(monotonic, next.wakesAt)
        sleepers = sleepers.filter((other) => other !== next)
        next.wake()
        yield* settle
      }
      monotonic = target
      yield* settle
    })

  return {
    clock,
    advance,
    jump: (millis) => {
      offset += millis
    },
    freeze: (millis) => {
      monotonic += millis
    },
    wall,
    monotonic: () => monotonic,
    sleepers: () => sleepers.length
  }
}
