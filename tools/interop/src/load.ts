/** Many concurrent callers, for long enough that several tokens expire. */
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { DateTime, Duration, Effect, Option, Redacted, Schedule } from "effect"

export const callers = 36

/** The published figures come from a busy machine. Any other run needs the same tokens, but not the same load. */
const isPublished = process.env["INTEROP_WRITE"] === "true"

export const leastCalls = isPublished ? 10_000 : 1_000

/** At least four tokens of three seconds, however fast the calls are made. In milliseconds. */
const leastMillis = 12_000

/** The pause between two calls of one caller. It keeps the servers busy on two cores without overloading them. */
const pause = Duration.millis(isPublished ? 25 : 200)

export interface Load {
  readonly calls: number
  /** How many of them ended with a 401. */
  readonly unauthorized: number
  /** Any status but 200 and 401. */
  readonly others: ReadonlyArray<number>
  /** The longest that a call took, its repetition included. In milliseconds. */
  readonly slowest: number
  /** From before the first call to after the last, by the monotonic clock. */
  readonly seconds: number
  /** The `expires_in` of each token, in seconds, by the token's value. */
  readonly lives: ReadonlyMap<string, number>
}

/** Fails if a call fails; any status is a success. */
export const load = Effect.gen(function*() {
  const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  let calls = 0
  let unauthorized = 0
  let slowest = 0
  const others: Array<number> = []
  const lives = new Map<string, number>()

  const start = performance.now()
  const finished = () => calls >= leastCalls && performance.now() - start >= leastMillis

  const call = Effect.gen(function*() {
    const began = performance.now()
    const response = yield* client.get("/v1/orders")
    yield* response.text
    slowest = Math.max(slowest, performance.now() - began)
    calls++
    if (response.status === 401) unauthorized++
    else if (response.status !== 200) others.push(response.status)
  })
  const watch = provider.current.pipe(
    Effect.map(Option.map((token) => {
      const life = Duration.toSeconds(DateTime.distanceDuration(token.acquiredAt, token.expiresAt))
      lives.set(Redacted.value(token.value), life)
    })),
    Effect.ignore,
    Effect.repeat(Schedule.spaced("100 millis"))
  )

  const caller = Effect.repeat(Effect.zipLeft(call, Effect.sleep(pause)), { until: finished })
  // Each caller starts after the first response of the one before, so that the connections do not open all at once.
  const joining = (left: number): Effect.Effect<void, Effect.Effect.Error<typeof call>> =>
    left === 0
      ? Effect.void
      : Effect.zipRight(call, Effect.all([caller, joining(left - 1)], { concurrency: "unbounded", discard: true }))

  // The watcher never ends.
  yield* Effect.raceFirst(joining(callers), Effect.zipRight(watch, Effect.never))
  const result: Load = { calls, unauthorized, others, slowest, seconds: (performance.now() - start) / 1000, lives }
  return result
})
