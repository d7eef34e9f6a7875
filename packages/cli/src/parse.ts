/**
 * Reads a command line, strictly. `@effect/cli` would take a flag that it does not know for what comes next, a path, or drop
 * it with its value: a request would go where nobody meant it to, or with another client than was named.
 */
import { parseArgs } from "node:util"
import * as Arr from "effect/Array"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { type Fault, usage } from "./Fault.js"
import { type Command, commands, type Flag, type Flags, positionals as known, type Values } from "./flags.js"
import { listed } from "./wording.js"

export interface Parsed<F extends Flags> {
  readonly values: Values<F>
  readonly positionals: ReadonlyArray<string>
  readonly logLevel: Option.Option<string>
}

/** Of every command: `@effect/cli` brings it along. */
const logLevel = "log-level"

export const parse = <C extends Command>(
  command: C,
  args: ReadonlyArray<string>
): Either.Either<Parsed<typeof commands[C]>, Fault> => {
  const flags: Flags = { ...commands[command], [logLevel]: { value: "LEVEL", text: "" } }
  const { positionals, tokens, values } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      Object.entries(flags).map(([name, { alias, many, value }]) => [name, {
        type: value === undefined ? "boolean" : "string",
        multiple: many === true,
        ...(alias !== undefined && { short: alias })
      }])
    ),
    strict: false,
    tokens: true
  })
  const given = tokens.flatMap((token) => token.kind === "option" ? [token] : [])
  const problem = Arr.findFirst(given, (option, index) =>
    Option.orElse(
      wrong(flags, option),
      () => repeated(flags, option, given.slice(0, index))
    )).pipe(Option.orElse(() => miscounted(command, positionals.length)))
  return Option.match(problem, {
    onSome: (what) => Either.left(usage(`${what} See store-api ${command} --help.`)),
    onNone: () =>
      Either.right({
        positionals,
        logLevel: Option.filter(Option.fromNullable(values[logLevel]), Predicate.isString),
        values: Object.fromEntries(
          Object.entries<Flag>(commands[command]).map(([name, { many, value }]) => [
            name,
            many === true
              ? values[name] ?? []
              : value === undefined
              ? values[name] === true
              : Option.fromNullable(values[name])
          ])
        ) as Values<typeof commands[C]> // by the table, which the type is made of
      })
  })
}

/** A flag as it was given. */
interface Given {
  readonly name: string
  readonly rawName: string
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

const levels = ["all", "trace", "debug", "info", "warning", "error", "fatal", "none"]

const wrong = (flags: Flags, { inlineValue, name, rawName, value }: Given): Option.Option<string> => {
  const flag = flagOf(flags, name)
  if (flag === undefined) return Option.some(`There is no flag ${rawName}${near(flags, name)}.`)
  if (flag.value === undefined) return value === undefined ? Option.none() : Option.some(`${rawName} takes no value.`)
  if (value === undefined) return Option.some(`${rawName} needs a value: ${rawName} ${flag.value}.`)
  if (name === logLevel && !levels.includes(value)) return Option.some(`${rawName} must be one of ${listed(levels)}.`)
  // What looks like the next flag is more often that than a value.
  return inlineValue === true || value === "-" || !value.startsWith("-")
    ? Option.none()
    : Option.some(`${rawName} needs a value; one that begins with "-" is joined to it: ${rawName}=${flag.value}.`)
}

const flagOf = (flags: Flags, name: string): Flag | undefined => Object.hasOwn(flags, name) ? flags[name] : undefined

const near = (flags: Flags, name: string): string => {
  const wanted = name.toLowerCase()
  const meant = Object.keys(flags).filter((flag) => flag === wanted || (wanted.length > 1 && flag.startsWith(wanted)))
  return meant.length === 0 ? "" : `, but ${listed(meant.map((flag) => `--${flag}`))}`
}

const repeated = (flags: Flags, { name, rawName }: Given, before: ReadonlyArray<Given>): Option.Option<string> =>
  flagOf(flags, name)?.many !== true && before.some((other) => other.name === name)
    ? Option.some(`${rawName} is given twice.`)
    : Option.none()

const miscounted = (command: Command, count: number): Option.Option<string> => {
  const names = known[command]
  const least = names.filter((name) => !name.startsWith("[")).length
  if (count >= least && count <= names.length) return Option.none()
  return Option.some(
    names.length === 0
      ? `store-api ${command} takes nothing but flags.`
      : `It must be: store-api ${[command, ...names].join(" ")}.`
  )
}

/** The same line with the flags in front, each apart from its value: `@effect/cli` knows no other order. */
export const flagsFirst = ({ logLevel: level, positionals, values }: Parsed<Flags>): ReadonlyArray<string> => [
  ...Option.match(level, { onNone: () => [], onSome: (level) => [`--${logLevel}`, level] }),
  ...Object.entries<boolean | ReadonlyArray<string> | Option.Option<string>>(values).flatMap(([name, value]) =>
    typeof value === "boolean"
      ? value ? [`--${name}`] : []
      : (Option.isOption(value) ? Option.toArray(value) : value).flatMap((text) => [`--${name}`, text])
  ),
  ...positionals
]
