/** A step of `store-api check`. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { exitCodes } from "../Fault.js"

/** The problem, and one line that says what to do. */
export class Failed extends Data.TaggedError("Failed")<{
  readonly what: string
  readonly remedy: string
  readonly code: number
}> {}

export const failed = (kind: keyof typeof exitCodes, what: string, remedy: string): Failed =>
  new Failed({ what, remedy, code: exitCodes[kind].code })

/** The system's code of an error. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "no reason given"

export const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>, onTimeout: () => Failed) =>
  Effect.timeoutFail(effect, { duration: "10 seconds", onTimeout })
