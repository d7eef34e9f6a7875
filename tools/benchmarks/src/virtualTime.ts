/** Runs effects on virtual time, which passes from one awakening to the next, with chance from a seed. */
import { setImmediate as turn } from "node:timers/promises"
import { Clock, Duration, Effect, Exit, Logger, LogLevel, Random, type Scheduler } from "effect"

const epoch = Date.UTC(2026, 0, 15)

/** Returns the milliseconds since the simulation began. */
export type Now = () => number

interface Sleeper {
  readonly at: number
  wake: (() => void) | undefined
}

/** Runs one simulation in this process, whose cryptography it replaces. */
export const simulate = async <A>(seed: number, effect: (now: Now) => Effect.Effect<A>): Promise<A> => {
  let time = 0
  /** The last is the next to wake. Of those that wake at the same time, the first to sleep wakes first. */
  const sleepers: Array<Sleeper> = []
  const sleep = (duration: Duration.DurationInput) =>
    Effect.async<void>((resume) => {
      const at = time + Duration.toMillis(duration)
      const sleeper: Sleeper = { at, wake: () => resume(Effect.void) }
      let [low, high] = [0, sleepers.length]
      while (low < high) {
        const middle = (low + high) >> 1
        if ((sleepers[middle]?.at ?? at) > at) low = middle + 1
        else high = middle
      }
      sleepers.splice(low, 0, sleeper)
      return Effect.sync(() => sleeper.wake = undefined)
    })
  const wall = () => epoch + Math.floor(time)
  const nanos = () => BigInt(Math.round(time * 1e6))
  const clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: wall,
    unsafeCurrentTimeNanos: nanos,
    currentTimeMillis: Effect.sync(wall),
    currentTimeNanos: Effect.sync(nanos),
    sleep
  }
  // Runs the fibers in the order in which they are ready: Effect's own scheduler leaves that to the platform's timers.
  const ready: Array<() => void> = []
  const scheduler: Scheduler.Scheduler = { shouldYield: () => false, scheduleTask: (task) => void ready.push(task) }
  withoutCryptography()
  const fiber = Effect.runFork(
    effect(() => time).pipe(
      Effect.withClock(clock),
      Effect.withRandom(Random.make(seed)),
      Logger.withMinimumLogLevel(LogLevel.None)
    ),
    { scheduler }
  )
  while (true) {
    do {
      for (const task of ready.splice(0)) task()
      // After all microtasks.
      await turn()
    } while (ready.length > 0)
    const exit = fiber.unsafePoll()
    if (exit !== null) {
      return Exit.getOrElse(exit, () => {
        throw new Error(String(exit))
      })
    }
    let next = sleepers.pop()
    while (next !== undefined && next.wake === undefined) next = sleepers.pop()
    if (next === undefined) throw new Error("No fiber will wake up.")
    time = next.at
    next.wake?.()
  }
}

/** The platform's cryptography runs in threads, in real time. One that changes nothing replaces it. */
const withoutCryptography = () => {
  const data = (_parameters: unknown, _key: unknown, bytes: unknown) => Promise.resolve(bytes)
  const key = () => Promise.resolve({})
  const deriveBits = () => Promise.resolve(new ArrayBuffer(16))
  Object.assign(globalThis.crypto.subtle, { encrypt: data, decrypt: data, importKey: key, deriveKey: key, deriveBits })
}
