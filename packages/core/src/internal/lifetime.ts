/** The lifetime of a token by the wall clock, in milliseconds. */
import type * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"

/** The lifetime of a token (the specification, "Limits"). */
export const maxLife = 60 * 60_000

/** The lifetime for an `expires_in` in seconds, at most `longest`. Zero means that the token has already expired. */
export const lifeOf = (expiresIn: number, longest: number): number =>
  Math.min(Math.max(Math.floor(expiresIn) * 1000, 0), longest)

/** Whole milliseconds, as the wall clock counts. */
export const wholeMillis = (duration: Duration.DurationInput): number =>
  Math.max(Math.ceil(Duration.toMillis(duration)), 0)

/** The default of the option `leeway`. */
export const defaultLeeway = 30_000

/** The remaining lifetime, in whole milliseconds, below which a token is too short for a caller that can wait. */
export const leewayOf = (life: number, leeway: number): number => Math.min(leeway, life * 0.05)

/** If the wall clock is further before `acquiredAt` than this, the age of the token is unknown. */
export const clockTolerance = 1000

/** Why a token has expired by the wall clock, or undefined while it is valid. */
export const expiredReason = (
  { acquiredAt, expiresAt }: {
    readonly acquiredAt: DateTime.Utc
    readonly expiresAt: DateTime.Utc
  },
  now: number
): "Elapsed" | "ClockMovedBack" | undefined => {
  if (now >= expiresAt.epochMillis) return "Elapsed"
  return now < acquiredAt.epochMillis - clockTolerance ? "ClockMovedBack" : undefined
}
