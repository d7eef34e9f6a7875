/** Sees what nobody handled. While it watches, nobody else does: the test runner would fail on the first. */
import { Effect, type Scope } from "effect"

export interface Watch {
  readonly seen: Effect.Effect<ReadonlyArray<unknown>>
}

const events = ["unhandledRejection", "uncaughtException"] as const

export const make: Effect.Effect<Watch, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const seen: Array<unknown> = []
      const note = (reason: unknown) => void seen.push(reason)
      const others = events.map((event) => process.listeners(event as "uncaughtException"))
      for (const event of events) process.removeAllListeners(event).on(event, note)
      return { seen, others }
    }),
    ({ others }) =>
      Effect.sync(() => {
        events.forEach((event, index) => {
          process.removeAllListeners(event)
          for (const listener of others[index] ?? []) process.on(event, listener)
        })
      })
  ),
  ({ seen }) => ({ seen: Effect.sync(() => seen.slice()) })
)
