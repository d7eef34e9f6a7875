/**
 * Checks options, which may come from JavaScript. One that is wrong fails, and a duration outside its useful range is
 * clamped.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { ConfigurationError } from "../AccessTokenError.js"

export const unusable = (option: string, reason: string) =>
  new ConfigurationError({ option, reason })

/** The kinds of options, as errors name them. */
const kinds = {
  boolean: ["true or false", Predicate.isBoolean],
  function: ["a function", Predicate.isFunction],
  list: ["a list", Array.isArray],
  // A duration is an object too, but has none of the options.
  object: [
    "an object",
    (value: unknown) => Predicate.isReadonlyRecord(value) && !Duration.isDuration(value)
  ],
  text: ["a text", Predicate.isString],
  tokenType: ["Bearer or DPoP", (value: unknown) => value === "Bearer" || value === "DPoP"]
} as const

/** The name of the options of the composed layers, which is not in front of the names of their fields. */
export const composed = "options"

/** Checks that options are a record, and the kinds of those of its fields that are given. */
export const checkKinds = (
  name: string,
  options: object,
  fields: Readonly<Record<string, keyof typeof kinds>> = {}
): Effect.Effect<void, ConfigurationError> =>
  Effect.gen(function*() {
    yield* checkKind(name, options, "object")
    for (const [field, kind] of Object.entries(fields)) {
      const value: unknown = Reflect.get(options, field)
      if (value !== undefined) {
        yield* checkKind(name === composed ? field : `${name}.${field}`, value, kind)
      }
    }
  })

const checkKind = (option: string, value: unknown, kind: keyof typeof kinds) => {
  const [name, includes] = kinds[kind]
  return includes(value) ? Effect.void : unusable(option, `must be ${name}`)
}

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
  const millis = Option.match(decodeDuration(value), {
    onNone: () => NaN,
    onSome: Duration.toMillis
  })
  // Effect 3 turns NaN and negative values into zero.
  // Effect 4 counts no array as an object.
  const hasParts = Array.isArray(value) || Predicate.isReadonlyRecord(value)
  const written = hasParts && !Duration.isDuration(value) ? Object.values(value) : [value]
  return millis >= 0 && !written.some((part) => /^\s*-|NaN/.test(String(part)))
    ? Effect.succeed(Math.min(Math.max(Math.ceil(millis), least), most))
    : unusable(option, "must be a duration from zero, such as \"30 seconds\"")
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
