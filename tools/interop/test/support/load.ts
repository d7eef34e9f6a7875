/** Many concurrent callers, for long enough that several tokens expire. */
import { assert, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Option, Redacted, Schedule } from "effect"
import type { AuthorizationServer } from "../../src/AuthorizationServer.js"
import { assertRejected, call, type Client, client, counted, report, requestToken } from "./client.js"

/** The lifetime of a token in seconds. Short enough to expire often. */
const life = 3

/** The provider's default: at most this part of the lifetime is left when a token is renewed. */
const refreshAhead = 0.25

const callers = 36

/** The published figures come from a busy machine. Any other run needs the same tokens, but not the same load. */
const isPublished = process.env["INTEROP_WRITE"] === "true"

const leastCalls = isPublished ? 10_000 : 1_000

/** At least four tokens of three seconds, however fast the calls are made. In milliseconds. */
const leastMillis = 12_000

/** The pause between two calls of one caller. It keeps the servers busy on two cores without overloading them. */
const pause = Duration.millis(isPublished ? 25 : 200)

export const underLoad = (server: AuthorizationServer): void => {
  it.scopedLive(
    `${callers} callers, at least ${leastCalls} calls, tokens of ${life} s: no call ends with a 401`,
    () =>
      Effect.gen(function*() {
        const running = yield* server.start({ life })
        const first = yield* requestToken(running)
        const { calls, result, tokenRequests, unauthorized } = yield* counted(running, load(yield* client(running)))
        const { durations, lives, seconds, statuses } = result
        const slowest = `${Math.round(Math.max(...durations))} ms`
        assert.isAtLeast(statuses.length, leastCalls)
        // Only a call that takes twice the lifetime of a token can see two tokens expire.
        assert.deepStrictEqual(statuses.filter((status) => status !== 200), [], `the slowest call took ${slowest}`)
        assert.strictEqual(calls, statuses.length + unauthorized, "a call is repeated after a 401, once")

        // The lifetimes as reported: some servers round the remaining lifetime down.
        const [shortest, longest] = [Math.min(...lives), Math.max(...lives)]
        assert.isAtLeast(shortest, life - 1)
        assert.isAtMost(longest, life)
        const average = lives.reduce((sum, life) => sum + life, 0) / lives.length
        const allowed = Math.ceil(seconds / (average * (1 - refreshAhead))) + 1
        assert.isAtMost(tokenRequests, allowed)
        assert.isAtLeast(tokenRequests, Math.floor(seconds / longest), "each token ended")
        yield* assertRejected(running, first.access_token)

        yield* report("load", {
          "server": server.name,
          "callers": `${callers}`,
          "calls": statuses.length.toLocaleString("en"),
          "401 seen by callers": "0",
          "slowest call": slowest,
          "401 at the resource, call repeated": `${unauthorized}`,
          "seconds": seconds.toFixed(1),
          "reported lifetime": shortest === longest ? `${longest} s` : `${shortest} to ${longest} s`,
          "token requests": `${tokenRequests}`,
          "allowed": `${allowed}`
        })
      }),
    180_000
  )
}

/** Fails if a call fails; any status is a success. */
const load = (store: Client) =>
  Effect.gen(function*() {
    const statuses: Array<number> = []
    /** In milliseconds, with the repetition of a call. */
    const durations: Array<number> = []
    /** The `expires_in` of each token, in seconds, by the token's value. */
    const lives = new Map<string, number>()

    const start = performance.now()
    const finished = () => statuses.length >= leastCalls && performance.now() - start >= leastMillis

    const timedCall = Effect.map(Effect.timed(call(store)), ([duration, status]) => {
      durations.push(Duration.toMillis(duration))
      statuses.push(status)
    })
    const caller = Effect.repeat(Effect.zipLeft(timedCall, Effect.sleep(pause)), { until: finished })
    // Each caller starts after the first response of the one before, so that the connections do not open all at once.
    const joining = (left: number): Effect.Effect<void, Effect.Effect.Error<typeof caller>> =>
      left === 0 ? Effect.void : Effect.zipRight(
        timedCall,
        Effect.all([caller, joining(left - 1)], { concurrency: "unbounded", discard: true })
      )
    const watch = store.provider.current.pipe(
      Effect.map(Option.map(({ acquiredAt, expiresAt, value }) =>
        lives.set(Redacted.value(value), Duration.toSeconds(DateTime.distanceDuration(acquiredAt, expiresAt)))
      )),
      Effect.ignore,
      Effect.repeat(Schedule.spaced("100 millis"))
    )

    // The watcher never ends.
    yield* Effect.raceFirst(joining(callers), Effect.zipRight(watch, Effect.never))
    return { statuses, durations, seconds: (performance.now() - start) / 1000, lives: [...lives.values()] }
  })
