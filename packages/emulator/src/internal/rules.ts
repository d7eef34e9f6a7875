/** What the values of options and faults must be, which may come from JavaScript. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import { EmulatorError } from "../EmulatorError.js"

/** Returns the problem of a value, as the end of a sentence, or undefined if it is usable. */
export type Rule = (value: unknown) => string | undefined

/** A rule for each field. */
export type Rules<A> = { readonly [Field in keyof A]-?: Rule }

export const unusable = (
  option: string,
  problem: string,
  reason: EmulatorError["reason"] = "InvalidOption"
) => new EmulatorError({ reason, option, problem })

export const check = (
  option: string,
  value: unknown,
  rule: Rule
): Effect.Effect<void, EmulatorError> => {
  const problem = rule(value)
  return problem === undefined ? Effect.void : unusable(option, problem)
}

/** Checks a record and its fields. `path` is in front of the name of a field in an error. */
export const checkRecord = (
  option: string,
  value: object,
  rules: { readonly [field: string]: Rule },
  path = `${option}.`
): Effect.Effect<void, EmulatorError> =>
  Effect.zipRight(
    check(option, value, record),
    Effect.forEach(
      Object.entries(rules),
      ([field, rule]) => check(`${path}${field}`, Reflect.get(value, field), rule),
      { discard: true }
    )
  )

const makeRule = (isUsable: (value: unknown) => boolean, problem: string): Rule => (value) =>
  isUsable(value) ? undefined : problem

/** A rule for a value that has a default. */
export const optional = (rule: Rule): Rule => (value) =>
  value === undefined ? undefined : rule(value)

export const boolean = makeRule(Predicate.isBoolean, "must be true or false")
export const list = makeRule(Array.isArray, "must be a list")
export const record = makeRule(Predicate.isReadonlyRecord, "must be an object")
export const text = makeRule(Predicate.isString, "must be a text")

export const matches = (pattern: RegExp, problem: string) =>
  makeRule((value) => Predicate.isString(value) && pattern.test(value), problem)

export const oneOf = (...values: ReadonlyArray<string>) =>
  makeRule(
    (value) => values.some((allowed) => allowed === value),
    `must be ${values.join(" or ")}`
  )

export const wholeNumber = (
  least: number,
  most: number,
  problem = `must be a whole number from ${least} to ${most}`
) =>
  makeRule(
    (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
    problem
  )

/** The rule applies to the text of the secret. */
export const secret = (rule: Rule): Rule => (value) =>
  Redacted.isRedacted(value)
    ? rule(Redacted.value(value))
    : "must be wrapped with Redacted.make"

const decodeDuration = Option.liftThrowable(Duration.decode)

/** In milliseconds. NaN for another value, and for less than zero, which `Duration` would turn into zero. */
const millisOf = (value: unknown): number => {
  const duration = decodeDuration(value as Duration.DurationInput) // throws for another type
  const isBelowZero = (part: unknown) =>
    Predicate.isString(part) ? part.startsWith("-") : !(Number(part) >= 0)
  if (Option.isNone(duration)) return NaN
  const isWrong = !Duration.isDuration(value) && [value].flat().some(isBelowZero)
  return isWrong ? NaN : Duration.toMillis(duration.value)
}

export const duration = makeRule(
  (value) => millisOf(value) >= 0,
  "must be a duration from zero, such as \"30 seconds\""
)

export const positiveDuration = makeRule(
  (value) => millisOf(value) > 0,
  "must be a duration greater than zero, such as \"30 seconds\""
)

export const status = wholeNumber(200, 999)

export const headerName = matches(
  /^[\w!#$%&'*+.^`|~-]+$/,
  "must be the name of an HTTP header, such as Authorization"
)

/** As Node checks it. */
export const headerValue = matches(
  /^[\t\x20-\x7e\x80-\xff]*$/,
  "must be the value of an HTTP header"
)

const areHeaders = (value: unknown) =>
  Predicate.isReadonlyRecord(value) &&
  Object.entries(value).every(([name, values]) =>
    [headerName(name), ...[values].flat().map(headerValue)].every(Predicate.isUndefined)
  )

export const headers = makeRule(areHeaders, "must be headers that HTTP can carry")

const encode = Option.liftThrowable((value: unknown): unknown => JSON.stringify(value))

export const json = makeRule(
  (value) => Option.exists(encode(value), Predicate.isString),
  "must be a value that JSON can hold"
)
