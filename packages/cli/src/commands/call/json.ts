/** JSON for people. */
import * as Either from "effect/Either"

/**
 * Indents JSON if that changes only white space and escapes. Otherwise, as with a number that JavaScript would round or
 * a name that occurs twice, returns the text as it came.
 */
export const indent = (text: string): string =>
  Either.getOrElse(
    Either.try(() => {
      const value: unknown = JSON.parse(text)
      return JSON.stringify(value) === compactJson(text)
        ? JSON.stringify(value, undefined, 2)
        : text
    }),
    () => text
  )

/** Removes white space between tokens, and writes strings with the escapes of `JSON.stringify`. */
const compactJson = (text: string): string =>
  text.replace(
    /"[^"\\]*(?:\\.[^"\\]*)*"|\s+/g,
    (part) => part.startsWith("\"") ? JSON.stringify(JSON.parse(part)) : ""
  )
