/** Parses the expected outcome of a token endpoint scenario: `X (Reason) or Y after N attempts`. */
import type { AccessTokenError } from "@store-api/core"

export interface Expectation {
  readonly outcomes: ReadonlyArray<string>
  /** What `least` and `most` count. */
  readonly unit: "request" | "attempt"
  readonly least: number
  readonly most: number
}

/** The first attempt and five retries. */
const mostAttempts = 6

export const parse = (expected: string): Expectation => {
  const [, outcomes = expected, amount = "any", unit = "attempts"] =
    / *(.+?) after (one|several|\d+) (requests?|attempts?)$/.exec(expected) ?? []
  const bounds = {
    one: [1, 1],
    several: [2, mostAttempts],
    any: [1, mostAttempts]
  }[amount] ?? [Number(amount), Number(amount)]
  return {
    outcomes: outcomes.split(" or "),
    unit: unit.startsWith("request") ? "request" : "attempt",
    least: bounds[0] ?? 1,
    most: bounds[1] ?? mostAttempts
  }
}

/** `Tag (Reason)`, or the tag alone for errors whose reason the scenarios do not name. */
export const describe = (error: { readonly _tag: string }): string =>
  "reason" in error && error._tag !== "TokenExpiredError" && error._tag !== "CredentialsError"
    ? `${error._tag} (${String(error.reason)})`
    : error._tag

export const matches = (outcomes: ReadonlyArray<string>, error: AccessTokenError.AccessTokenError): boolean =>
  outcomes.includes(describe(error)) || outcomes.includes(error._tag)
