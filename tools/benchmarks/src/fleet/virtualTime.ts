/** Runs effects on virtual time, which passes from one awakening to the next, with chance from a seed. */
import { Clock, Duration, Effect, Exit, Logger, LogLevel, Random, type Scheduler } from "effect"
import * as cryptography from "./cryptography.js"
import { Sleepers } from "./sleepers.js"

export interface VirtualTime {
  /** Milliseconds since the simulation began. */
  readonly now: () => number
}

const epoch = Date.UTC(2026, 0, 15)

/** One simulation after the other: the platform's cryptography is the same for all. */
export const simulate = async <A>(seed: number, effect: (time: VirtualTime) => Effect.Effect<A>): Promise<A> => {
  let now = 0
  const sleepers = new Sleepers()
  const wall = () => epoch + Math.floor(now)
  const nanos = () => BigInt(Math.round(now * 1e6))
  const clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: wall,
    unsafeCurrentTimeNanos: nanos,
    currentTimeMillis: Effect.sync(wall),
    currentTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Effect.async<void>((resume) => {
        const sleeper = sleepers.add(now + Duration.toMillis(duration), () => resume(Effect.void))
        return Effect.sync(() => {
          sleeper.wake = undefined
        })
      })
  }

  // What fibers do next, in the order in which they are ready: Effect's own scheduler leaves that to the platform's timers.
  let ready: Array<() => void> = []
  const scheduler: Scheduler.Scheduler = {
    shouldYield: () => false,
    scheduleTask: (task) => {
      ready.push(task)
    }
  }
  const runReady = () => {
    while (ready.length > 0) {
      const tasks = ready
      ready = []
      for (const task of tasks) task()
    }
  }

  const platform = cryptography.inOrder()
  try {
    const fiber = Effect.runFork(
      effect({ now: () => now }).pipe(
        Effect.withClock(clock),
        Effect.withRandom(Random.make(seed)),
        Logger.withMinimumLogLevel(LogLevel.None)
      ),
      { scheduler }
    )
    while (true) {
      runReady()
      if (platform.isBusy()) {
        await platform.idle()
        continue
      }
      const exit = fiber.unsafePoll()
      if (exit !== null) {
        return Exit.getOrElse(exit, () => {
          throw new Error(`The simulation failed: ${String(exit)}`)
        })
      }
      const next = sleepers.take()
      if (next === undefined) throw new Error("Nobody sleeps, and the simulation has not ended")
      now = next.at
      next.wake?.()
    }
  } finally {
    platform.restore()
  }
}
