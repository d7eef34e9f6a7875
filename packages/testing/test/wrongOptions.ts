/** Values that an option must refuse, by the kind of the option. JavaScript and calculations produce them. */
import { inspect } from "node:util"
import { assert } from "@effect/vitest"
import { AccessTokenError } from "@store-api/core"
import { Effect, Exit, FastCheck as fc, Redacted } from "effect"
import { shows } from "./renderings.js"

/** Wrong values of each option. */
export type Wrong<A> = { readonly [Option in keyof A]-?: ReadonlyArray<unknown> }

/** A value of any type, as JavaScript may pass it. */
export const untyped = (value: unknown) => value as never

/** Checks that an effect fails with an error that names the option and shows no value. */
export const isRefused = (
  build: Effect.Effect<unknown, unknown>,
  option: string,
  value: unknown
): Effect.Effect<AccessTokenError.ConfigurationError> =>
  Effect.map(Effect.exit(Effect.flip(build)), (exit) => {
    assert(Exit.isSuccess(exit), `${option} ${inspect(value)}: ${inspect(exit)}`)
    const error = exit.value
    assert.instanceOf(error, AccessTokenError.ConfigurationError)
    assert.strictEqual(error.option, option, inspect(value))
    assert.match(error.message, /^The option [\w.]+ .{5,}[.]$/)
    assert.isFalse(shows(error, "canary"))
    return error
  })

const others = [null, NaN, true, "a canary", 5, [], {}, () => "a canary", Symbol("canary")]

const isObject = (value: unknown) => typeof value === "object" && value !== null

/** Of another type. */
export const notA = {
  boolean: others.filter((value) => typeof value !== "boolean"),
  function: others.filter((value) => typeof value !== "function"),
  list: others.filter((value) => !Array.isArray(value)),
  number: others.filter((value) => typeof value !== "number" || Number.isNaN(value)),
  object: others.filter((value) => !isObject(value) || Array.isArray(value)),
  /** A plain text is not one. */
  secret: [...others, Redacted.make(5)],
  text: others.filter((value) => typeof value !== "string")
} satisfies Readonly<Record<string, ReadonlyArray<unknown>>>

/** Of another type, without a unit or below zero. Effect 3 turns `Duration.seconds(-1)` into zero before we see it. */
export const notADuration: ReadonlyArray<unknown> = [
  ...notA.number.filter((value) => !isObject(value) || Array.isArray(value)),
  -1,
  -Infinity,
  -0.5,
  -1n,
  [1],
  [1, -1],
  [0, NaN],
  "-1 seconds",
  "-0.5 millis",
  "5",
  "1 secnd"
]

/** Numbers below zero, and texts that are not durations. */
export const anyWrongDuration: fc.Arbitrary<unknown> = fc.oneof(
  fc.double({ max: -Number.MIN_VALUE }),
  fc.bigInt({ max: -1n }),
  fc.string().filter((text) => !/^\d+(\.\d+)? [a-z]+$/.test(text)),
  fc.double({ max: -0.001, noNaN: true, noDefaultInfinity: true }).map((seconds) =>
    `${seconds.toFixed(3)} seconds`
  )
)
