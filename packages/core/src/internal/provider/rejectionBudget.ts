import { elapsed, type Instant } from "../instant.js"
import { fullBudget, rejectionCost } from "./tokenPolicy.js"

/**
 * Limits how many rejections take effect. Each one costs a minute of the budget, which grows by a minute per minute up
 * to five minutes, but only while a token is cached.
 *
 * So at most 15 acquisitions in any ten minutes replace a rejected token, at any rhythm of calls: the first one, four
 * from the minutes that are left then, and ten from those that grow until the end. With growth between a rejection and
 * its replacement, which may be long, it would be 16.
 *
 * Time is that of the clock that advanced further: a machine that slept has its budget back, and a wall clock that is
 * set forward adds to it.
 */
export interface RejectionBudget {
  /** Milliseconds that were left at that time. */
  readonly left: number
  readonly at: Instant
}

export const full: RejectionBudget = { left: fullBudget, at: { wall: 0, monotonic: 0 } }

/** A rejected token was replaced: discards what grew while no token was cached. */
export const resume = ({ left }: RejectionBudget, now: Instant): RejectionBudget => ({
  left,
  at: now
})

/** Returns the budget after one more rejection, or undefined if it does not suffice. */
export const spend = (
  { at, left }: RejectionBudget,
  now: Instant
): RejectionBudget | undefined => {
  const available = Math.min(left + elapsed(at, now), fullBudget)
  return available < rejectionCost ? undefined : { left: available - rejectionCost, at: now }
}
