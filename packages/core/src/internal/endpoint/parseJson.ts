import * as Option from "effect/Option"

/** None for a text that is not JSON. The visitor sees each field, with those inside of it first. */
export const parseJson = Option.liftThrowable(
  (text: string, visit?: (name: string, value: unknown) => unknown): unknown => JSON.parse(text, visit)
)
