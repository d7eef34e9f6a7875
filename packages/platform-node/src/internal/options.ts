/** Checks options, which may come from JavaScript. The errors have the names and sentences of `@store-api/core`. */
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"

export const unusable = (option: string, reason: string) =>
  new ConfigurationError({ option, reason })

export const check = (
  option: string,
  isUsable: boolean,
  reason: string
): Effect.Effect<void, ConfigurationError> => isUsable ? Effect.void : unusable(option, reason)

export const checkRecord = (
  option: string,
  value: unknown
): Effect.Effect<void, ConfigurationError> =>
  check(option, Predicate.isReadonlyRecord(value), "must be an object")
