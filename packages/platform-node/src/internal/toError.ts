import { inspect } from "node:util"
import * as Predicate from "effect/Predicate"

/**
 * Returns what is an `Error` as it is, and an `Error` with a sentence for any other value: Effect's `ConfigError`, or
 * what a layer or a `transformClient` failed with. It keeps the tag of the value. It has no `cause`, because an error
 * with a cause that cannot be cloned cannot be sent to another thread.
 */
export const toError = (value: unknown): Error => {
  if (value instanceof Error) return value
  const error = new Error(sentenceOf(value))
  const tag = Predicate.hasProperty(value, "_tag") ? value._tag : undefined
  return Predicate.isString(tag) ? Object.assign(error, { _tag: tag, name: tag }) : error
}

const sentenceOf = (value: unknown): string => {
  if (Predicate.isTagged(value, "ConfigError")) {
    // eslint-disable-next-line @typescript-eslint/no-base-to-string -- it has its own `toString`
    return `Cannot read the options from the configuration: ${String(value)}. ` +
      "Set each variable that is missing, or pass the options instead"
  }
  const text = Predicate.isString(value) ? value : inspect(value, { depth: 1 })
  return `A store or transformClient failed with a value that is not an Error: ${text}`
}
