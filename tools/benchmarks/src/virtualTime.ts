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

/** Runs one simulation in this process, whose cryptography it changes: see `oneByOne`. */
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
  const settled = oneByOne()
  const fiber = Effect.runFork(
    effect(() => time).pipe(
      Effect.withClock(clock),
      Effect.withRandom(Random.make(seed)),
      Logger.withMinimumLogLevel(LogLevel.None)
    ),
    { scheduler }
  )
  while (true) {
    while (ready.length > 0) for (const task of ready.splice(0)) task()
    if (await settled()) continue
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

/**
 * The platform's cryptography runs in threads, in real time. Changes it so that one operation ends before the next
 * begins. The returned function resolves when every fiber has the results that it awaits, with whether there were any.
 */
const oneByOne = () => {
  const subtle = globalThis.crypto.subtle as unknown as Record<string, (...given: Array<unknown>) => Promise<unknown>>
  let open = 0
  let last: Promise<unknown> = Promise.resolve()
  for (const name of ["decrypt", "deriveBits", "deriveKey", "encrypt", "importKey"]) {
    const original = subtle[name]?.bind(subtle)
    const value = (...given: Array<unknown>) => {
      open += 1
      const result = last.then(() => original?.(...given))
      last = result.catch(() => undefined).then(() => {
        open -= 1
      })
      return result
    }
    Object.defineProperty(subtle, name, { value })
  }
  return async (): Promise<boolean> => {
    if (open === 0) return false
    while (open > 0) {
      await last
      await turn()
    }
    return true
  }
}
