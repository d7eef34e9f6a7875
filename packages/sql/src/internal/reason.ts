import * as Predicate from "effect/Predicate"

/** Errors by their messages, for which the drivers have different codes, or none. */
const reasonsByMessage: ReadonlyArray<readonly [message: RegExp, reason: string]> = [
  [/(cannot|unable to) open (the )?database/i, "SQLITE_CANTOPEN"],
  [/database( table)? is locked/i, "SQLITE_BUSY"],
  [/timed? ?out/i, "no response in time"],
  [/connection (is |was )?(terminated|closed)/i, "connection closed"]
]

/** The driver's error in short: its code, because the rest can contain parameters. */
export const reasonOf = (error: unknown): string => {
  // A variable that the layer of the client reads is missing or invalid.
  if (Predicate.isTagged(error, "ConfigError")) return "unusable configuration"
  const causes = causesOf(error)
  const texts = causes.map((cause) => "message" in cause ? String(cause.message) : "")
  const codes = causes.map((cause) => "code" in cause ? String(cause.code) : "")
  return reasonsByMessage.find(([message]) => texts.some((text) => message.test(text)))?.[1] ??
    codes.find((code) => /^[A-Z0-9_]+$/.test(code)) ??
    "unknown"
}

/** An error, its cause, the cause of that, and so on. */
const causesOf = (error: unknown): ReadonlyArray<object> =>
  Predicate.isObject(error)
    ? [error, ...causesOf(Predicate.hasProperty(error, "cause") ? error.cause : undefined)]
    : []
