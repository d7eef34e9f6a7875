/** Captures the console and the warnings of the process. */
import { format, inspect } from "node:util"
import type { Output } from "./renderings.js"

const methods = ["log", "info", "warn", "error", "debug", "trace"] as const

/** Captures until the returned function is called. */
export const watchProcess = (see: (output: Output) => void): () => void => {
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
