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
 * the request, and now. The earlier one counts, so that whichever way the wall clock jumped during the request, the
 * token expires too early rather than too late.
 */
export const monotonicStart = (
  { acquiredAt }: { readonly acquiredAt: DateTime.Utc },
  startedAt: Instant,
  now: Instant
): number =>
  Math.min(
    startedAt.monotonic + (acquiredAt.epochMillis - startedAt.wall),
    now.monotonic + Math.min(acquiredAt.epochMillis - now.wall, 0)
  )
