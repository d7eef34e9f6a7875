/** Checks whether a value shows a text, in any of the ways to print it. */
import { inspect } from "node:util"
import { Cause, Exit, Inspectable } from "effect"

const renderings = (value: unknown): ReadonlyArray<string> => [
  String(value),
  value instanceof Error ? `${value.message}\n${value.stack ?? ""}` : "",
  JSON.stringify(value),
  JSON.stringify(Exit.fail(value)),
  inspect(value, { depth: Infinity }),
  inspect(value, { depth: Infinity, customInspect: false, showHidden: true }),
  Inspectable.toStringUnknown(value),
  Cause.pretty(Cause.fail(value), { renderErrorCause: true })
]

/** The text as it is, percent-encoded, and as in a JSON string. */
const forms = (text: string) => [text, encodeURIComponent(text), JSON.stringify(text).slice(1, -1)]

export const shows = (value: unknown, text: string): boolean =>
  renderings(value).some((rendering) => forms(text).some((form) => rendering.includes(form)))
