/** The path that `call` and `check` request. */
import * as Effect from "effect/Effect"
import { type Fault, usage } from "./Fault.js"

/** A fragment is never sent (RFC 9110 §7.1), so it is a mistake. */
export const checkPath = (path: string): Effect.Effect<string, Fault> =>
  path.includes("#")
    ? usage(
      "The path must not contain a #, because a fragment is not sent. In a path, write %23."
    )
    : Effect.succeed(path)
