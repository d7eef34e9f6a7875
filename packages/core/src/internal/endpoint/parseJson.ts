import * as Option from "effect/Option"

/** None for a text that is not JSON. */
export const parseJson = Option.liftThrowable((text: string): unknown => JSON.parse(text))
