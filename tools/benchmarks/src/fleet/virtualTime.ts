/** Runs effects on virtual time, which passes from one awakening to the next, with chance from a seed. */
import { setImmediate as turn } from "node:timers/promises"
import { Clock, Duration, Effect, Exit, Logger, LogLevel, Random, type Scheduler } from "effect"

const epoch = Date.UTC(2026, 0, 15)

/** Returns the milliseconds since the simulation began. */
export type Now = () => number

/** Runs a simulation. Only one may run at a time, because they share the platform's cryptography. */
export const simulate = async <A>(seed: number, effect: (now: Now) => Effect.Effect<A>): Promise<A> => {
  let time = 0
  const sleepers = sleeping()
  const wall = () => epoch + Math.floor(time)
  const nanos = () => BigInt(Math.round(time * 1e6))
  const clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: wall,
    unsafeCurrentTimeNanos: nanos,
    currentTimeMillis: Effect.sync(wall),
    currentTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Effect.async<void>((resume) =>
        Effect.sync(sleepers.add(time + Duration.toMillis(duration), () => resume(Effect.void)))
      )
  }
  // Runs the fibers in the order in which they are ready: Effect's own scheduler leaves that to the platform's timers.
  const ready: Array<() => void> = []
  const scheduler: Scheduler.Scheduler = {
    shouldYield: () => false,
    scheduleTask: (task) => {
      ready.push(task)
    }
  }
  const cryptography = inOrder()
  try {
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
      if (await cryptography.settled()) continue
      const exit = fiber.unsafePoll()
      if (exit !== null) return Exit.getOrElse(exit, () => failed(String(exit)))
      const next = sleepers.take() ?? failed("no fiber will wake up")
      time = next.at
      next.wake()
    }
  } finally {
    cryptography.restore()
  }
}

const failed = (why: string): never => {
  throw new Error(`The simulation failed: ${why}`)
}

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

/** The sleeping fibers. Of those that wake at the same time, the first to sleep wakes first. */
const sleeping = () => {
  /** The last element is the next to wake. */
  const all: Array<Sleeper> = []
  const interrupted = new WeakSet<Sleeper>()
  return {
    /** Returns how to interrupt the sleep. */
    add: (at: number, wake: () => void) => {
      const sleeper = { at, wake }
      let [low, high] = [0, all.length]
      while (low < high) {
        const middle = (low + high) >> 1
        if ((all[middle]?.at ?? at) > at) low = middle + 1
        else high = middle
      }
      all.splice(low, 0, sleeper)
      return () => void interrupted.add(sleeper)
    },
    take: (): Sleeper | undefined => {
      let next = all.pop()
      while (next !== undefined && interrupted.has(next)) next = all.pop()
      return next
    }
  }
}

type Operation = (...parameters: ReadonlyArray<unknown>) => Promise<unknown>

/** The platform's cryptography runs in threads, in real time. Here one operation ends before the next begins. */
const inOrder = () => {
  const { subtle } = globalThis.crypto
  let open = 0
  let last: Promise<unknown> = Promise.resolve()
  // The methods of the platform are those of the prototype. Tests that ran before may have put others over them.
  const before = Object.getOwnPropertyDescriptors(subtle)
  const operations = ["decrypt", "deriveBits", "deriveKey", "encrypt", "importKey"] as const
  for (const name of operations) {
    const original = subtle[name].bind(subtle) as Operation
    const value: Operation = (...parameters) => {
      open += 1
      const result = last.then(() => original(...parameters))
      last = result.catch(() => undefined).then(() => {
        open -= 1
      })
      return result
    }
    Object.defineProperty(subtle, name, { configurable: true, value })
  }
  return {
    /** Resolves when every fiber has the results that it awaits, with whether there were any. */
    settled: async (): Promise<boolean> => {
      if (open === 0) return false
      while (open > 0) {
        await last
        await turn()
      }
      return true
    },
    restore: () => {
      for (const name of operations) Reflect.deleteProperty(subtle, name)
      Object.defineProperties(subtle, before)
    }
  }
}
