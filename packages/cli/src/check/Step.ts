/** A step of `store-api check`: what is tried, and what it says. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { exitCodes } from "../Fault.js"

/** What is wrong, and one sentence on what to do about it. */
export class Failed extends Data.TaggedError("Failed")<{
  readonly what: string
  readonly remedy: string
  readonly code: typeof exitCodes[keyof typeof exitCodes]
}> {}

/** Longer than that, nothing on the way to a token should take. */
export const stepTimeout = "10 seconds"

/** What the system calls a fault. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "no reason given"

/** Waits for as long as a step may. */
export const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>, onTimeout: () => Failed) =>
  Effect.timeoutFail(effect, { duration: stepTimeout, onTimeout })
