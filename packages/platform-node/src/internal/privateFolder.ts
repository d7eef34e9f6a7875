import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"

/**
 * Fails with the reason if another user could read or change files in the folder. On
 * Windows, which has no owner ids and modes, it succeeds.
 */
export const requirePrivate = (
  { mode, uid }: FileSystem.File.Info
): Effect.Effect<void, string> => {
  const user = process.getuid?.()
  if (user === undefined) return Effect.void
  if (Option.exists(uid, (uid) => uid !== user)) {
    return Effect.fail("its folder belongs to another user")
  }
  return (mode & 0o077) === 0
    ? Effect.void
    : Effect.fail(`other users can open its folder: its mode is ${octal(mode)}, not 700`)
}

const octal = (mode: number) => (mode & 0o777).toString(8).padStart(3, "0")

/** The error code of the system. Drops the system's message, which contains paths. */
export const reasonOf = (error: PlatformError): string => {
  const cause = error.cause
  if (Predicate.hasProperty(cause, "code") && typeof cause.code === "string") return cause.code
  return kindOf(error)
}

/** How an operation failed, such as `NotFound`. */
export const kindOf = (error: PlatformError) =>
  error._tag === "SystemError" ? error.reason : error._tag
