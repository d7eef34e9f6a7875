/** Every way in which a program can print a value. */
import { format, inspect } from "node:util"
import { Cause, Effect, Either, Exit, Inspectable, Option } from "effect"
import { failureAndDefect } from "./effectMajor.js"

export interface Output {
  readonly name: string
  readonly text: string
}

/** Prints all levels, and of long values far more than the length of a canary, but not megabytes. */
const whole = { depth: Infinity, maxArrayLength: 2000, maxStringLength: 20_000 } as const

/** Returns the error that a run of a failing effect throws. In Effect 3 it is a `FiberFailure`. */
const fiberFailure = (value: unknown): unknown => {
  try {
    return Effect.runSync(Effect.fail(value))
  } catch (thrown) {
    return thrown
  }
}

export const printers: Readonly<Record<string, (value: unknown) => string>> = {
  "message": (value) => value instanceof Error ? value.message : String(value),
  "String": String,
  "stack": (value) => value instanceof Error ? value.stack ?? "" : "",
  "JSON": (value) => JSON.stringify(value) || "",
  "JSON of a spread": (value) => JSON.stringify({ ...(value as object) }),
  "inspect": (value) => inspect(value),
  "inspect, whole": (value) => inspect(value, whole),
  "inspect, showHidden": (value) => inspect(value, { ...whole, showHidden: true }),
  "inspect, customInspect: false": (value) =>
    inspect(value, { ...whole, customInspect: false }),
  "inspect, customInspect: false, showHidden": (value) =>
    inspect(value, { ...whole, customInspect: false, showHidden: true }),
  "format %s %o %O %j": (value) => format("%s %o %O %j", value, value, value, value),
  "toStringUnknown": (value) => Inspectable.toStringUnknown(value),
  "Cause.pretty of a failure": (value) =>
    Cause.pretty(Cause.fail(value), { renderErrorCause: true }),
  "Cause.pretty of a defect": (value) =>
    Cause.pretty(Cause.die(value), { renderErrorCause: true }),
  "JSON of a Cause": (value) => JSON.stringify(failureAndDefect(value, value)),
  "inspect of a Cause": (value) => inspect(Cause.fail(value), whole),
  "JSON of an Exit": (value) => JSON.stringify([Exit.fail(value), Exit.succeed(value)]),
  "inspect of an Exit": (value) =>
    inspect(Exit.fail(value), { ...whole, customInspect: false }),
  "String of an Exit": (value) => `${String(Exit.fail(value))} ${String(Exit.succeed(value))}`,
  "inspect of Option and Either": (value) =>
    inspect([Option.some(value), Either.left(value)], whole),
  "FiberFailure": (value) => {
    const thrown = fiberFailure(value)
    return [inspect(thrown, whole), JSON.stringify(thrown), ...messagesOf(thrown)].join("\n")
  },
  "FiberFailure, customInspect: false": (value) =>
    inspect(fiberFailure(value), { ...whole, customInspect: false, showHidden: true })
}

const messagesOf = (thrown: unknown) =>
  thrown instanceof Error
    ? [String(thrown), thrown.message, thrown.stack ?? ""]
    : [String(thrown)]

/** Together these show everything that any printer shows. `controls.test.ts` checks this. */
const distinct = [
  "String",
  "JSON",
  "JSON of a spread",
  "inspect, showHidden",
  "toStringUnknown",
  "Cause.pretty of a failure",
  "JSON of an Exit",
  "inspect of a Cause",
  "FiberFailure",
  "FiberFailure, customInspect: false"
]

/** The printers whose output differs between an Exit and its value. */
const outer = ["String", "JSON", "inspect, showHidden", "toStringUnknown"]

const renderBy =
  (names: ReadonlyArray<string>) => (name: string, value: unknown): ReadonlyArray<Output> =>
    names.map((printer) => ({
      name: `${name}: ${printer}`,
      text: attempt(printers[printer] ?? String, value)
    }))

export const render = renderBy(Object.keys(printers))
export const renderDistinct = renderBy(distinct)
export const renderOuter = renderBy(outer)

/** The error of a printer that fails (a cycle in JSON) is an output too. */
const attempt = (print: (value: unknown) => string, value: unknown): string => {
  try {
    return print(value)
  } catch (error) {
    return inspect(error)
  }
}

/** All distinct renderings of a value, as one text. */
export const renderings = (value: unknown): string =>
  renderDistinct("", value).map(({ text }) => text).join("\n")

/** Whether a rendering contains a text: as it is, or escaped as in JSON or JavaScript. */
export const shows = (value: unknown, text: string): boolean => {
  const all = renderings(value)
  return [text, JSON.stringify(text).slice(1, -1), inspect(text).slice(1, -1)].some((form) =>
    all.includes(form)
  )
}
