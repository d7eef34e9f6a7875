import * as Predicate from "effect/Predicate"

/** The error code of the system or of Redis. It is short and never repeats what was sent. */
export const reasonOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "code") && typeof error.code === "string") return error.code
  if (!(error instanceof Error)) return "unknown"
  const [word = error.constructor.name] = /^[A-Z]{3,}(?= )/.exec(error.message) ?? []
  return word
}
