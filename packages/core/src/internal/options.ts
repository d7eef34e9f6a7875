/**
 * Checks options, which may come from JavaScript. One that is wrong fails, and a duration outside its useful range is
 * clamped.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { ConfigurationError } from "../AccessTokenError.js"

export const unusable = (option: string, reason: string) => new ConfigurationError({ option, reason })

const kinds = {
  boolean: "true or false",
  function: "a function",
  list: "a list",
  object: "an object"
}

type Kinds = Readonly<Record<string, keyof typeof kinds>>

/** The name of the options of the composed layers, which is not in front of the names of their fields. */
export const composed = "options"

/** Checks the kind of a record of options, and of those of its fields that are given. */
export const checkKinds = (
  name: string,
  options: unknown,
  fields: Kinds = {}
): Effect.Effect<void, ConfigurationError> => {
  if (!isOfKind("object", options)) return mustBe("object", name)
  for (const [field, kind] of Object.entries(fields)) {
    const value: unknown = Reflect.get(options, field)
    if (value !== undefined && !isOfKind(kind, value)) {
      return mustBe(kind, name === composed ? field : `${name}.${field}`)
    }
  }
  return Effect.void
}

const isOfKind = (kind: keyof typeof kinds, value: unknown): value is object => {
  if (kind === "list") return Array.isArray(value)
  // A duration is an object too, but has none of the options.
  if (kind === "object") return Predicate.isReadonlyRecord(value) && !Duration.isDuration(value)
  return typeof value === kind
}

const mustBe = (kind: keyof typeof kinds, option: string) => unusable(option, `must be ${kinds[kind]}`)

/** The limits of a duration, in milliseconds. */
interface Range {
  /** Default 0. */
  readonly least?: number
  /** Default none. */
  readonly most?: number
}

const decodeDuration = Option.liftThrowable(Duration.decode)

/**
 * Returns whole milliseconds within the range, or `Infinity`. Fails for a value that is not a duration, as it may come
 * from JavaScript or from a calculation: another type, an unknown unit, NaN, or less than zero.
 */
export const durationOf = (
  option: string,
  value: Duration.DurationInput,
  { least = 0, most = Infinity }: Range = {}
): Effect.Effect<number, ConfigurationError> => {
  const duration = Option.getOrUndefined(decodeDuration(value))
  // Effect 3 turns NaN and negative values into zero.
  if (duration === undefined || !partsOf(value).every(isNotNegative)) {
    return unusable(option, "must be a duration from zero, such as \"30 seconds\"")
  }
  return Effect.succeed(Math.min(Math.max(Math.ceil(Duration.toMillis(duration)), least), most))
}

/** Like `durationOf`, for a duration with which nothing works if it is zero. */
export const positiveDurationOf = (
  option: string,
  value: Duration.DurationInput,
  range?: Range
): Effect.Effect<number, ConfigurationError> =>
  Effect.filterOrFail(
    durationOf(option, value, range),
    (millis) => millis > 0,
    () => unusable(option, "must be greater than zero")
  )

/** The numbers in a duration as a caller writes it. */
const partsOf = (value: Duration.DurationInput): ReadonlyArray<unknown> => {
  if (Duration.isDuration(value)) return [Duration.toMillis(value)]
  return Predicate.isObject(value) ? Object.values(value) : [value]
}

const isNotNegative = (part: unknown): boolean =>
  Predicate.isString(part) ? !part.trim().startsWith("-") : Number(part) >= 0
