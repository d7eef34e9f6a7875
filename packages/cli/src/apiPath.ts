/** The path that `call` and `check` request. */
import * as Effect from "effect/Effect"
import { type CommandError, usageError } from "./CommandError.js"

/** A fragment is never sent (RFC 9110 §7.1), so it is a mistake. */
export const checkPath = (path: string): Effect.Effect<string, CommandError> =>
  path.includes("#")
    ? usageError(
      "The path must not contain a #, because a fragment is not sent. In a path, write %23."
    )
    : Effect.succeed(path)
