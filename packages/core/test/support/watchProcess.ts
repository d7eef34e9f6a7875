/** Records what a test would otherwise not see of its process: the console, warnings, rejections and exceptions. */
import { format, inspect } from "node:util"
import { Effect, type Scope } from "effect"
import type { Output } from "./renderings.js"

const methods = ["log", "info", "warn", "error", "debug", "trace"] as const

/** Captures the console and the warnings until the returned function is called. */
export const watchConsole = (see: (output: Output) => void): () => void => {
  const original = { ...console }
  for (const method of methods) {
    console[method] = (...args: ReadonlyArray<unknown>) => see({ name: `console.${method}`, text: format(...args) })
  }
  const warn = (warning: Error) => see({ name: "warning", text: inspect(warning, { depth: 20 }) })
  process.on("warning", warn)
  return () => {
    process.off("warning", warn)
    Object.assign(console, original)
  }
}

const events = ["unhandledRejection", "uncaughtException"] as const

/** Records unhandled rejections and exceptions. Until the scope closes, the test runner's listeners are removed. */
export const watchUnhandled: Effect.Effect<Effect.Effect<ReadonlyArray<unknown>>, never, Scope.Scope> = Effect.map(
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
  ({ seen }) => Effect.sync(() => seen.slice())
)
