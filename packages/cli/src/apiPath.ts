/** The path of a call, as it is typed. */
import * as Effect from "effect/Effect"
import { type Fault, usage } from "./Fault.js"

/** A fragment is never sent (RFC 9110, 7.1): whoever typed one meant something else. */
export const checked = (path: string): Effect.Effect<string, Fault> =>
  path.includes("#")
    ? Effect.fail(
      usage("The PATH must be without #: what comes after it is not sent. As a part of the path it is %23.")
    )
    : Effect.succeed(path)
