import * as Clock from "effect/Clock"
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"

/** Both clocks in milliseconds: the wall clock since the epoch, the monotonic clock since an arbitrary time. */
export interface Instant {
  readonly wall: number
  readonly monotonic: number
}

export const reader = (clock: Clock.Clock) => (): Instant => ({
  wall: clock.unsafeCurrentTimeMillis(),
  monotonic: Number(clock.unsafeCurrentTimeNanos()) / 1e6
})

/** Reads both clocks of the context. */
export const now: Effect.Effect<Instant> = /* @__PURE__ */ Clock.clockWith((clock) => Effect.sync(reader(clock)))

/**
 * The time since an instant by the clock that advanced further. The monotonic clock may stop while the machine sleeps,
 * and the wall clock may be set back.
 */
export const elapsed = (since: Instant, now: Instant): number =>
  Math.max(now.wall - since.wall, now.monotonic - since.monotonic)

/**
 * The start of the lifetime by the monotonic clock, from the distance of `acquiredAt` to the wall clock at the start of
 * the acquisition, and now. The earlier one counts, so that a token expires too early rather than too late if the wall
 * clock jumped meanwhile. By the wall clock now, a token that was requested in this acquisition is not older than it,
 * however far that clock was set back.
 */
export const monotonicStart = (
  { acquiredAt }: { readonly acquiredAt: DateTime.Utc },
  startedAt: Instant,
  now: Instant
): number => {
  const start = now.monotonic + Math.min(acquiredAt.epochMillis - now.wall, 0)
  const afterStart = acquiredAt.epochMillis - startedAt.wall
  // The wall clock counts whole milliseconds.
  const isRequested = start > startedAt.monotonic - 1
  return Math.min(start, startedAt.monotonic + (isRequested ? Math.max(afterStart, 0) : afterStart))
}
