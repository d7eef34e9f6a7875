import * as redis from "@redis/client"
import * as Predicate from "effect/Predicate"

/** The errors without a code. By their exported names, because a bundler may rename the classes. */
const names = [
  "AbortError",
  "ClientClosedError",
  "ClientOfflineError",
  "ConnectionTimeoutError",
  "DisconnectsClientError",
  "MaxCommandRedirectionsError",
  "RootNodesUnavailableError",
  "SocketClosedUnexpectedlyError",
  "SocketTimeoutError",
  "TimeoutError"
] as const

/** The error code of the system or of Redis. It is short and never repeats what was sent. */
export const reasonOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "code") && typeof error.code === "string") return error.code
  if (!(error instanceof Error)) return "unknown"
  if (/^ERR unknown command \W?eval/i.test(error.message)) return "EVAL is disabled"
  const [word] = /^[A-Z]{3,}(?= )/.exec(error.message) ?? []
  return word ?? names.find((name) => error instanceof redis[name]) ?? error.name
}
