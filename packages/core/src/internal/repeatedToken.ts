/** Compares the token of an acquisition with the token that it replaces. */
import * as DateTime from "effect/DateTime"
import * as Equal from "effect/Equal"
import { AccessToken } from "../AccessToken.js"
import type { Instant } from "./instant.js"

type Compared = Pick<AccessToken, "value" | "expiresAt">

export const sameValue = (
  a: Pick<AccessToken, "value">,
  b: Pick<AccessToken, "value">
): boolean => Equal.equals(a.value, b.value)

/** Whether an acquisition brought no progress: the same token again, or one that expires no later. */
export const isRepeated = (last: Compared, token: Compared): boolean =>
  sameValue(last, token) || token.expiresAt.epochMillis <= last.expiresAt.epochMillis

/** By how much the expiry of a repeated token may differ, in milliseconds: a second, and the time of the request. */
const expiryTolerance = 2000

/** A token, and when it expires by the monotonic clock. */
export interface Ending {
  readonly token: AccessToken
  readonly end: number
}

/**
 * Returns the token, and when it expires if its lifetime began at `start`. A token that the endpoint returned again
 * keeps the end that is known from before: `expires_in` is in whole seconds, so that it would expire up to a second too
 * early, while the endpoint still returns it with an `expires_in` of zero. Both ends are times of the monotonic clock,
 * because the wall clock may have moved since the last one.
 */
export const endingOf = (
  token: AccessToken,
  start: number,
  knownEnd: number | undefined
): Ending => {
  const receivedEnd = start + lifeOf(token)
  const isKnown = knownEnd !== undefined && Math.abs(knownEnd - receivedEnd) < expiryTolerance
  const end = isKnown ? knownEnd : receivedEnd
  return { token: withLife(token, Math.floor(end - start)), end }
}

/**
 * The start of the lifetime by the monotonic clock, from the distance of `acquiredAt` to the wall clock now. A source
 * returns the times of that moment, so a jump of the wall clock before it does not count. If the token was requested in
 * this acquisition, the distance to the wall clock at its start counts too: a simple source reads the clock before its
 * request, and the wall clock may have moved back since.
 *
 * By the monotonic clock, the same token must not expire later than before, unless this acquisition asked for it. The
 * wall clock counts whole milliseconds, and may have moved during the acquisition. If it moved back, an old token may
 * seem new, but its times are the same as before.
 */
export const startOf = (
  token: AccessToken,
  last: Ending | undefined,
  startedAt: Instant,
  now: Instant
): number => {
  const acquiredAt = token.acquiredAt.epochMillis
  const start = Math.min(
    now.monotonic + Math.min(acquiredAt - now.wall, 0),
    startedAt.monotonic + Math.max(acquiredAt - startedAt.wall, 0)
  )
  if (last === undefined || !sameValue(last.token, token)) return start
  const isOld = start <= startedAt.monotonic - 1 ||
    acquiredAt === last.token.acquiredAt.epochMillis
  return isOld && !isExtended(last.token, token)
    ? Math.min(start, last.end - lifeOf(token))
    : start
}

/** In milliseconds. */
export const lifeOf = (
  { acquiredAt, expiresAt }: Pick<AccessToken, "acquiredAt" | "expiresAt">
): number => expiresAt.epochMillis - acquiredAt.epochMillis

/** The token with another lifetime, in whole milliseconds. */
const withLife = (token: AccessToken, life: number): AccessToken =>
  life === lifeOf(token) ? token : new AccessToken({
    ...token,
    expiresAt: DateTime.unsafeMake(token.acquiredAt.epochMillis + life)
  })

/** Whether the endpoint has extended the lifetime of a token that it returned again. */
export const isExtended = (last: AccessToken, token: AccessToken): boolean =>
  token.expiresAt.epochMillis - last.expiresAt.epochMillis >= expiryTolerance

/** A token that brought no progress, and expires sooner than this, is not renewed again before it has expired. */
const shortestLife = 8000

/**
 * The lifetime that counts for the margins of a token that brought no progress: what is `left` of it, so that its next
 * renewals are spread over that. If little is left, the next request is sent when it has expired.
 */
export const lifeOfRepeated = (left: number): number => left < shortestLife ? 0 : left

/** Callers renew a token when less than this fraction of its lifetime is left, at most. */
export const longestAhead = 0.25

/** Whether the first of many processes may renew a token that brought no progress when it was acquired. */
export const isRepeatedDue = (
  { left, life }: { readonly left: number; readonly life: number }
): boolean => left <= lifeOfRepeated(life) * longestAhead
