import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"

/** A folder that others may open or own. */
export interface NotPrivate {
  readonly _tag: "NotPrivate"
  readonly reason: string
}

/** Who else could read or change what is there. Windows has neither owners by number nor modes. */
export const notPrivate = ({ mode, uid }: FileSystem.File.Info): Option.Option<NotPrivate> => {
  const user = process.getuid?.()
  if (user === undefined) return Option.none()
  if (Option.exists(uid, (uid) => uid !== user)) {
    return Option.some({ _tag: "NotPrivate", reason: "its folder belongs to another user" })
  }
  return (mode & 0o077) === 0
    ? Option.none()
    : Option.some({ _tag: "NotPrivate", reason: `others may open its folder: its mode is ${octal(mode)}, not 700` })
}

const octal = (mode: number): string => (mode & 0o777).toString(8).padStart(3, "0")

/** The system's name of a fault. Its sentence holds paths. */
export const reasonOf = (error: PlatformError | NotPrivate): string => {
  if (error._tag === "NotPrivate") return error.reason
  const cause = error.cause
  if (Predicate.hasProperty(cause, "code") && typeof cause.code === "string") return cause.code
  return error._tag === "SystemError" ? error.reason : error._tag
}
