/** Renders a value in every way in which it may be printed, logged or encoded. */
import { inspect } from "node:util"
import { Cause, Exit, Inspectable } from "effect"

export const renderings = (value: unknown): string =>
  [
    String(value),
    value instanceof Error ? `${value.message}\n${value.stack ?? ""}` : "",
    JSON.stringify(value),
    JSON.stringify(Exit.fail(value)),
    inspect(value, { depth: 20 }),
    inspect(value, { depth: 20, customInspect: false, showHidden: true }),
    Inspectable.toStringUnknown(value),
    Cause.pretty(Cause.fail(value)),
    Cause.pretty(Cause.die(value), { renderErrorCause: true })
  ].join("\n")

/** Whether a rendering contains a text: as it is, or escaped as in JSON or JavaScript. */
export const shows = (value: unknown, text: string): boolean => {
  const all = renderings(value)
  return [text, JSON.stringify(text).slice(1, -1), inspect(text).slice(1, -1)].some((form) => all.includes(form))
}
