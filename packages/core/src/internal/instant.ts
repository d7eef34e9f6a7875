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
export const now: Effect.Effect<Instant> = /* @__PURE__ */ Clock.clockWith((clock) =>
  Effect.sync(reader(clock))
)

/**
 * The time since an instant by the clock that advanced further. The monotonic clock may stop while the machine sleeps,
 * and the wall clock may be set back.
 */
export const elapsed = (since: Instant, now: Instant): number =>
  Math.max(now.wall - since.wall, now.monotonic - since.monotonic)

/**
 * The start of the lifetime by the monotonic clock, from the distance of `acquiredAt` to the wall clock now. A source
 * returns the times of that moment, so a jump of the wall clock before it does not count. If the token was requested in
 * this acquisition, the distance to the wall clock at its start counts too: a simple source reads the clock before its
 * request, and the wall clock may have moved back since.
 */
export const monotonicStart = (
  { acquiredAt }: { readonly acquiredAt: DateTime.Utc },
  startedAt: Instant,
  now: Instant
): number => {
  const start = now.monotonic + Math.min(acquiredAt.epochMillis - now.wall, 0)
  const afterStart = Math.max(acquiredAt.epochMillis - startedAt.wall, 0)
  return Math.min(start, startedAt.monotonic + afterStart)
}
