/** Many concurrent callers, for long enough that several tokens expire. */
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Option, Redacted, Schedule } from "effect"
import { isLeftOut } from "../src/Program.js"
import * as servers from "../src/servers.js"
import { assertRejected, call, type Client, client, counted, inOwnProcess, requestToken } from "./support.js"

/** The lifetime of a token in seconds. Short enough to expire often. */
const life = 3

/** The provider's default: at most this part of the lifetime is left when a token is renewed. */
const refreshAhead = 0.25

const callers = 36

const leastCalls = 1000

/** At least four tokens of three seconds, however fast the calls are made. In milliseconds. */
const leastMillis = 12_000

/** Fails if a call fails; any status is a success. */
const load = (store: Client) =>
  Effect.gen(function*() {
    const statuses: Array<number> = []
    /** The `expires_in` of each token, in seconds, by the token's value. */
    const lives = new Map<string, number>()

    const start = performance.now()
    const finished = () => statuses.length >= leastCalls && performance.now() - start >= leastMillis

    const oneCall = Effect.map(call(store), (status) => statuses.push(status))
    // The pause keeps the servers busy on two cores without overloading them.
    const caller = Effect.repeat(Effect.zipLeft(oneCall, Effect.sleep("200 millis")), { until: finished })
    // Each caller starts after the first response of the one before, so that the connections do not open all at once.
    const joining = (left: number): Effect.Effect<void, Effect.Effect.Error<typeof caller>> =>
      left === 0 ? Effect.void : Effect.zipRight(
        oneCall,
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
    return { statuses, seconds: (performance.now() - start) / 1000, lives: [...lives.values()] }
  })

const { glewlwydWithoutScope: _, ...tested } = servers

describe.concurrent.each(Object.entries(tested))("%s", (server, { programs = [] }) => {
  it.scopedLive.skipIf(programs.some(isLeftOut))(
    `${callers} callers, at least ${leastCalls} calls, tokens of ${life} s: no call ends with a 401`,
    () =>
      Effect.gen(function*() {
        const running = yield* inOwnProcess(server as keyof typeof tested, life)
        const first = yield* requestToken(running)
        const { calls, result, tokenRequests, unauthorized } = yield* counted(running, load(yield* client(running)))
        const { lives, seconds, statuses } = result
        // Only a call that takes twice the lifetime of a token can see two tokens expire.
        assert.deepStrictEqual(statuses.filter((status) => status !== 200), [])
        assert.strictEqual(calls, statuses.length + unauthorized, "a call is repeated after a 401, once")

        // The lifetimes as reported: some servers round the remaining lifetime down.
        const longest = Math.max(...lives)
        assert.isAtLeast(Math.min(...lives), life - 1)
        assert.isAtMost(longest, life)
        const average = lives.reduce((sum, life) => sum + life, 0) / lives.length
        assert.isAtMost(tokenRequests, Math.ceil(seconds / (average * (1 - refreshAhead))) + 1)
        assert.isAtLeast(tokenRequests, Math.floor(seconds / longest), "each token ended")
        yield* assertRejected(running, first.access_token)
      }),
    180_000
  )
})
