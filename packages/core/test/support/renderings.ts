/** Every way in which a value may end up before somebody's eyes. */
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

/** Whether a text shows up in a rendering, as it is or as a source of JSON or of JavaScript would quote it. */
export const shows = (value: unknown, text: string): boolean => {
  const all = renderings(value)
  return [text, JSON.stringify(text).slice(1, -1), inspect(text).slice(1, -1)].some((form) => all.includes(form))
}
