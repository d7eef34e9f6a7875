/** nginx limits the rate of token requests: the caller's result, and the number of requests. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { DateTime, Duration, Effect, Option } from "effect"
import { isLeftOut } from "../src/debian/Program.js"
import * as Front from "../src/nginx/Front.js"
import { nginx } from "../src/nginx/Nginx.js"
import { oidcProvider } from "../src/oidcProvider.js"
import { requestToken } from "../src/wire.js"

const timeout = 60_000

/** The attempts of one acquisition: the first and five more. */
const attempts = 6

const zone = (rate: string) => `limit_req_zone $binary_remote_addr zone=tokens:1m rate=${rate};`

/** nginx sends no `Retry-After` of its own; an empty header is not sent. */
const retryAfter = (seconds: number) => `map $status $retry_after { 429 "${seconds}"; default ""; }`

const start = (options: Front.Options) =>
  Effect.gen(function*() {
    const front = yield* Front.before(yield* oidcProvider.start({ life: 600 }), options)
    return { front, client: yield* Front.client(front.running) }
  })

describe.skipIf(isLeftOut(nginx))("limit_req before the token endpoint", () => {
  const refusals = [
    // Without a Retry-After, a 429 is not tried again.
    {
      name: "`limit_req_status` 429",
      directives: "limit_req_status 429;",
      status: 429,
      reason: "RateLimited",
      sent: 1
    },
    { name: "the default, 503", directives: "", status: 503, reason: "Unavailable", sent: attempts }
  ] as const

  it.scopedLive.each(refusals)(
    "$name: a typed error, and quiet until retryAt",
    ({ directives, name, reason, sent, status }) =>
      Effect.gen(function*() {
        const { client, front } = yield* start({
          http: zone("1r/m"),
          token: `limit_req zone=tokens; ${directives}`
        })
        yield* requestToken(front.running) // another client uses the one request of this minute
        const error = yield* Effect.flip(client.provider.get)
        const again = yield* Effect.flip(client.provider.get) // at once, because the cooldown may be as short as 750 ms
        const failedAt = yield* DateTime.now
        assert(error._tag === "TokenRefusedError")
        deepStrictEqual([error.reason, error.status], [reason, status])
        deepStrictEqual([error.code, error.description], [Option.none(), Option.none()]) // nginx responds with an HTML page
        assert.isTrue(Option.exists(error.retryAt, DateTime.greaterThan(DateTime.subtract(failedAt, { seconds: 1 }))))
        Front.assertHidden(error, [front.running.credentials.clientSecret])
        // The monotonic clock ends a cooldown. `retryAt` is its end by the wall clock, which may be adjusted.
        deepStrictEqual({ ...again, retryAt: error.retryAt }, { ...error })
        deepStrictEqual(yield* front.tokens, [200, ...Array.from({ length: sent }, () => status)])
        yield* Front.tell(front, {
          fault: `\`limit_req\` 1r/m, used up by another client, ${name}`,
          outcome: Front.inWords(error)
        })
      }),
    timeout
  )

  it.scopedLive(
    "one in a second and a half: the caller waits, and has a token within the deadline",
    () =>
      Effect.gen(function*() {
        const { client, front } = yield* start({
          http: zone("40r/m"), // all attempts together take at least 2.5 s
          token: "limit_req zone=tokens;"
        })
        const first = yield* client.provider.get
        const second = yield* client.provider.refresh
        assert.notStrictEqual(second, first)
        const statuses = yield* front.tokens
        deepStrictEqual([statuses.at(0), statuses.at(-1)], [200, 200])
        const refused = statuses.slice(1, -1)
        assert.isNotEmpty(refused)
        assert.isTrue(refused.every((status) => status === 503))
        yield* Front.tell(front, { fault: "`limit_req` 40r/m, the default, 503", outcome: "a token" })
      }),
    timeout
  )

  it.scopedLive("with a Retry-After that fits the deadline: one refusal, then a token", () =>
    Effect.gen(function*() {
      const { client, front } = yield* start({
        http: `${zone("20r/m")} ${retryAfter(3)}`,
        token: "limit_req zone=tokens; limit_req_status 429; add_header Retry-After $retry_after always;"
      })
      yield* client.provider.get
      const [duration] = yield* Effect.timed(client.provider.refresh)
      assert.isTrue(Duration.between(duration, { minimum: Duration.seconds(3), maximum: Duration.seconds(20) }))
      deepStrictEqual(yield* front.tokens, [200, 429, 200])
      yield* Front.tell(front, { fault: "`limit_req` 20r/m, 429 with `Retry-After: 3`", outcome: "a token" })
    }), timeout)

  it.scopedLive(
    "with a Retry-After beyond the deadline: one refusal, its time in retryAt, and quiet",
    () =>
      Effect.gen(function*() {
        const { client, front } = yield* start({
          http: `${zone("1r/m")} ${retryAfter(120)}`,
          token: "limit_req zone=tokens; limit_req_status 429; add_header Retry-After $retry_after always;"
        })
        yield* requestToken(front.running)
        const asked = yield* DateTime.now
        const error = yield* Effect.flip(client.provider.get)
        assert(error._tag === "TokenRefusedError")
        assert.strictEqual(error.reason, "RateLimited")
        const wait = Duration.toMillis(DateTime.distanceDuration(asked, Option.getOrThrow(error.retryAt)))
        assert.isAtLeast(wait, 120_000)
        assert.isBelow(wait, 125_000)
        Front.assertHidden(error, [front.running.credentials.clientSecret])
        deepStrictEqual(yield* Effect.flip(client.provider.get), error)
        deepStrictEqual(yield* front.tokens, [200, 429])
        yield* Front.tell(front, {
          fault: "`limit_req` 1r/m, used up by another client, 429 with `Retry-After: 120`",
          outcome: Front.inWords(error)
        })
      }),
    timeout
  )
})
