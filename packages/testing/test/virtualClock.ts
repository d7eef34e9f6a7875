import { type Clock, Duration, Effect } from "effect"
import { clockOf, settle } from "./effectMajor.js"

/**
 * A clock whose wall time moves independently of its monotonic time, as an administrator, NTP or a suspended machine
 * moves it. Much faster than `TestClock` in tests with thousands of steps.
 */
export interface VirtualClock {
  readonly clock: Clock.Clock
  /** Advances both clocks. Fibers that sleep until then wake up in order. */
  readonly advance: (by: Duration.DurationInput) => Effect.Effect<void>
  /** Moves only the wall clock, in milliseconds. A negative value moves it back. */
  readonly jump: (millis: number) => void
  /** Advances both clocks, in milliseconds, as for a stopped process: no timer fires before the next `advance`. */
  readonly freeze: (millis: number) => void
  readonly wall: () => number
  readonly monotonic: () => number
  /** The number of sleeping fibers. */
  readonly sleepers: () => number
}

interface Sleeper {
  readonly wakesAt: number
  readonly wake: () => void
}

/** `idle` waits until no fiber can continue. */
export const make = (
  start: number = Date.UTC(2026, 0, 15),
  idle: Effect.Effect<void> = settle
): VirtualClock => {
  let monotonic = 0
  let offset = start
  let sleepers: ReadonlyArray<Sleeper> = []
  const wall = () => monotonic + offset

  const clock = clockOf({
    wall,
    monotonic: () => monotonic,
    sleep: (duration) =>
      Duration.toMillis(duration) <= 0 ? Effect.yieldNow() : Effect.async<void>((resume) => {
        const sleeper = {
          wakesAt: monotonic + Duration.toMillis(duration),
          wake: () => resume(Effect.void)
        }
        sleepers = [...sleepers, sleeper]
        return Effect.sync(() => {
          sleepers = sleepers.filter((other) => other !== sleeper)
        })
      })
  })

  const advance = (by: Duration.DurationInput): Effect.Effect<void> =>
    Effect.gen(function*() {
      const target = monotonic + Duration.toMillis(by)
      yield* idle
      while (true) {
        const next = sleepers.filter(({ wakesAt }) => wakesAt <= target).sort((a, b) =>
          a.wakesAt - b.wakesAt
        )[0]
        if (next === undefined) break
        monotonic = Math.max(monotonic, next.wakesAt)
        sleepers = sleepers.filter((other) =>
          other !== next
        )
        next.wake()
        yield* idle
      }
      monotonic = target
      yield* idle
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
