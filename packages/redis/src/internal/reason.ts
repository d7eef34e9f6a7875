import * as Predicate from "effect/Predicate"

/** The system's or Redis's own name of a fault, which is short and holds nothing of what was sent. */
export const reasonOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "code") && typeof error.code === "string") return error.code
  if (!(error instanceof Error)) return "unknown"
  const [word = error.constructor.name] = /^[A-Z]{3,}(?= )/.exec(error.message) ?? []
  return word
}
