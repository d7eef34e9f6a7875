import * as Clock from "effect/Clock"
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
