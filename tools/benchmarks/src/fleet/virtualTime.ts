/** Runs effects on virtual time, which passes from one awakening to the next, with chance from a seed. */
import { setImmediate as turn } from "node:timers/promises"
import { Clock, Duration, Effect, Exit, Logger, LogLevel, Random, type Scheduler } from "effect"

const epoch = Date.UTC(2026, 0, 15)

/** Returns the milliseconds since the simulation began. */
export type Now = () => number

/** Runs a simulation. Only one may run at a time, because they share the platform's cryptography. */
export const simulate = async <A>(seed: number, effect: (now: Now) => Effect.Effect<A>): Promise<A> => {
  let time = 0
  const sleepers = new Sleepers()
  const wall = () => epoch + Math.floor(time)
  const nanos = () => BigInt(Math.round(time * 1e6))
  const clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: wall,
    unsafeCurrentTimeNanos: nanos,
    currentTimeMillis: Effect.sync(wall),
    currentTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Effect.async<void>((resume) => {
        const sleeper = sleepers.add(time + Duration.toMillis(duration), () => resume(Effect.void))
        return Effect.sync(() => {
          sleeper.wake = undefined
        })
      })
  }

  // Runs the fibers in the order in which they are ready: Effect's own scheduler leaves that to the platform's timers.
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
      runReady()
      if (cryptography.isBusy()) {
        await cryptography.idle()
        continue
      }
      const exit = fiber.unsafePoll()
      if (exit !== null) {
        return Exit.getOrElse(exit, () => {
          throw new Error(`The simulation failed: ${String(exit)}`)
        })
      }
      const next = sleepers.take()
      if (next === undefined) throw new Error("The simulation has not ended, but no fiber will wake up")
      time = next.at
      next.wake?.()
    }
  } finally {
    cryptography.restore()
  }
}

export interface Sleeper {
  readonly at: number
  /** Removed by an interruption. */
  wake: (() => void) | undefined
}

/** The sleeping fibers. Of those that wake at the same time, the first to sleep wakes first. */
export class Sleepers {
  /** The last element is the next to wake. */
  readonly #all: Array<Sleeper> = []

  add(at: number, wake: () => void): Sleeper {
    const sleeper: Sleeper = { at, wake }
    let [low, high] = [0, this.#all.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#all[middle]?.at ?? at) > at) low = middle + 1
      else high = middle
    }
    this.#all.splice(low, 0, sleeper)
    return sleeper
  }

  /** Removes and returns the next sleeper to wake. Skips interrupted ones. */
  take(): Sleeper | undefined {
    let next = this.#all.pop()
    while (next !== undefined && next.wake === undefined) next = this.#all.pop()
    return next
  }
}

const operations = ["decrypt", "deriveBits", "deriveKey", "encrypt", "importKey"] as const

type Operation = (...parameters: ReadonlyArray<unknown>) => Promise<unknown>

/** The platform's cryptography runs in threads, in real time. Here its results come in the order of the calls. */
const inOrder = () => {
  const { subtle } = globalThis.crypto
  let open = 0
  let last: Promise<unknown> = Promise.resolve()
  // The methods of the platform are those of the prototype. Tests that ran before may have put others over them.
  const before = Object.getOwnPropertyDescriptors(subtle)
  for (const name of operations) {
    const original = subtle[name].bind(subtle) as Operation
    const value: Operation = (...parameters) => {
      open += 1
      const answer = original(...parameters)
      const inTurn = last.then(() => answer)
      last = inTurn.catch(() => undefined).then(() => {
        open -= 1
      })
      // Without a handler, a failure before its turn would be an unhandled rejection.
      answer.catch(() => undefined)
      return inTurn
    }
    Object.defineProperty(subtle, name, { configurable: true, value })
  }
  return {
    /** Whether a result is awaited. */
    isBusy: () => open > 0,
    /** Resolves when no result is awaited any more, and every awaiting fiber has its result. */
    idle: async () => {
      while (open > 0) {
        await last
        await turn()
      }
    },
    restore: () => {
      for (const name of operations) Reflect.deleteProperty(subtle, name)
      Object.defineProperties(subtle, before)
    }
  }
}
