/** Records unhandled rejections and exceptions. Until the scope closes, the test runner's listeners are removed. */
import { Effect, type Scope } from "effect"

export interface Watch {
  readonly seen: Effect.Effect<ReadonlyArray<unknown>>
}

const events = ["unhandledRejection", "uncaughtException"] as const

export const make: Effect.Effect<Watch, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const seen: Array<unknown> = []
      const record = (reason: unknown) => void seen.push(reason)
      const previous = events.map((event) => process.listeners(event as "uncaughtException"))
      for (const event of events) process.removeAllListeners(event).on(event, record)
      return { seen, previous }
    }),
    ({ previous }) =>
      Effect.sync(() => {
        events.forEach((event, index) => {
          process.removeAllListeners(event)
          for (const listener of previous[index] ?? []) process.on(event, listener)
        })
      })
  ),
  ({ seen }) => ({ seen: Effect.sync(() => seen.slice()) })
)
