/** nginx limits the rate of token requests, or redirects them. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { DateTime, Duration, Effect, Option } from "effect"
import { test } from "../../../packages/core/test/support/test.js"
import { tokenPath } from "../src/AuthorizationServer.js"
import { nginx } from "../src/Nginx.js"
import { isLeftOut } from "../src/Program.js"
import { call, callApi, requestToken } from "./support/client.js"
import * as Front from "./support/front.js"

const zone = (rate: string) => `limit_req_zone $binary_remote_addr zone=tokens:1m rate=${rate};`

/** nginx sends no `Retry-After` of its own; an empty header is not sent. */
const withRetryAfter = (rate: string, seconds: number): Front.Options => ({
  http: `${zone(rate)} map $status $retry_after { 429 "${seconds}"; default ""; }`,
  token: "limit_req zone=tokens; limit_req_status 429; add_header Retry-After $retry_after always;"
})

describe.skipIf(isLeftOut(nginx))("limit_req before the token endpoint", () => {
  it.scopedLive.each([
    // Without a Retry-After, a 429 is not tried again.
    { name: "`limit_req_status` 429", token: "limit_req_status 429;", status: 429, reason: "RateLimited", sent: 1 },
    { name: "the default, 503", token: "", status: 503, reason: "Unavailable", sent: 6 }
  ])(
    "$name: a typed error, and quiet until retryAt",
    ({ name, reason, sent, status, token }) =>
      Effect.gen(function*() {
        const options = { http: zone("1r/m"), token: `limit_req zone=tokens; ${token}` }
        const front = yield* Front.before(yield* Front.server, options)
        yield* requestToken(front) // another client uses the one request of this minute
        const error = yield* Effect.flip(front.client.provider.get)
        const again = yield* Front.refused(front, { _tag: error._tag }) // at once, because the cooldown may be as short as 750 ms
        const failedAt = yield* DateTime.now
        assert(error._tag === "TokenRefusedError")
        deepStrictEqual([error.reason, error.status], [reason, status])
        deepStrictEqual([error.code, error.description], [Option.none(), Option.none()]) // nginx responds with an HTML page
        assert.isTrue(Option.exists(error.retryAt, DateTime.greaterThan(DateTime.subtract(failedAt, { seconds: 1 }))))
        // The monotonic clock ends a cooldown. `retryAt` is its end by the wall clock, which may be adjusted.
        deepStrictEqual({ ...again, retryAt: error.retryAt }, { ...error })
        deepStrictEqual(yield* front.tokens, [200, ...Array.from({ length: sent }, () => status)])
        yield* Front.tell(front, `\`limit_req\` 1r/m, used up by another client, ${name}`, error)
      })
  )

  test.live("one in a second and a half: the caller waits, and has a token within the deadline", function*() {
    const options = { http: zone("40r/m"), token: "limit_req zone=tokens;" } // all attempts take at least 2.5 s
    const front = yield* Front.before(yield* Front.server, options)
    const first = yield* front.client.provider.get
    const second = yield* front.client.provider.refresh
    assert.notStrictEqual(second, first)
    const statuses = yield* front.tokens
    deepStrictEqual([statuses.at(0), statuses.at(-1)], [200, 200])
    const refused = statuses.slice(1, -1)
    assert.isNotEmpty(refused)
    assert.isTrue(refused.every((status) => status === 503))
    yield* Front.tell(front, "`limit_req` 40r/m, the default, 503", "a token")
  })

  test.live("with a Retry-After that fits the deadline: one refusal, then a token", function*() {
    const front = yield* Front.before(yield* Front.server, withRetryAfter("20r/m", 3))
    yield* front.client.provider.get
    const [duration] = yield* Effect.timed(front.client.provider.refresh)
    assert.isTrue(Duration.between(duration, { minimum: Duration.seconds(3), maximum: Duration.seconds(20) }))
    deepStrictEqual(yield* front.tokens, [200, 429, 200])
    yield* Front.tell(front, "`limit_req` 20r/m, 429 with `Retry-After: 3`", "a token")
  })

  test.live("with a Retry-After beyond the deadline: one refusal, its time in retryAt, and quiet", function*() {
    const front = yield* Front.before(yield* Front.server, withRetryAfter("1r/m", 120))
    yield* requestToken(front)
    const asked = yield* DateTime.now
    const error = yield* Front.refused(front, { _tag: "TokenRefusedError", reason: "RateLimited" })
    const wait = Duration.toMillis(DateTime.distanceDuration(asked, Option.getOrThrow(error.retryAt)))
    assert.isAtLeast(wait, 120_000)
    assert.isBelow(wait, 125_000)
    deepStrictEqual(yield* Effect.flip(front.client.provider.get), error)
    deepStrictEqual(yield* front.tokens, [200, 429])
    yield* Front.tell(front, "`limit_req` 1r/m, used up by another client, 429 with `Retry-After: 120`", error)
  })
})

const redirect = { _tag: "TokenRequestError", reason: "Redirect", attempts: 1 } as const

describe.skipIf(isLeftOut(nginx))("redirects of nginx", () => {
  it.scopedLive.each([301, 302, 303, 307, 308])(
    "%i of the token request to another origin is refused",
    (status) =>
      Effect.gen(function*() {
        const running = yield* Front.server
        const target = yield* Front.before(running)
        const front = yield* Front.before(running, { token: `return ${status} ${target.url}$request_uri;` })
        const error = yield* Front.refused(front, redirect)
        deepStrictEqual([yield* front.tokens, yield* target.tokens], [[status], []])
        // Positive control: the target accepts a request and reports it.
        yield* requestToken(target)
        deepStrictEqual([yield* target.tokens, yield* running.tokenRequests], [[200], 1])
        yield* Front.tell(front, `${status} to another origin`, error)
      })
  )

  test.live("301 from http to https of the same host is refused, though its certificate is trusted", function*() {
    const running = yield* Front.server
    const { ca, tls } = Front.authority()
    const client = { ca }
    const target = yield* Front.before(running, { tls, client })
    const front = yield* Front.before(running, { token: `return 301 ${target.url}$request_uri;`, client })
    const error = yield* Front.refused(front, redirect)
    deepStrictEqual([yield* front.tokens, yield* target.tokens, yield* running.tokenRequests], [[301], [], 0])
    yield* target.client.provider.get
    deepStrictEqual([yield* target.tokens, yield* running.tokenRequests], [[200], 1])
    yield* Front.tell(front, "301 from http to https", error)
  })

  test.live("the slash that nginx adds to the name of a location is refused", function*() {
    const running = yield* Front.server
    // With proxy_pass, nginx redirects (301) from the location's name without the slash to the one with it.
    const front = yield* Front.before(running, { tokenLocation: `${tokenPath}/` })
    const error = yield* Front.refused(front, redirect)
    const paths = Effect.map(front.requests, (all) => all.map(({ path, status }) => [path, status]))
    deepStrictEqual([yield* paths, yield* running.tokenRequests], [[[tokenPath, 301]], 0])
    yield* Front.tell(front, "301 that adds a slash", error)
    const { status } = yield* Effect.promise(() => fetch(`${front.url}${tokenPath}/`, { method: "POST" }))
    assert.notStrictEqual(status, 301)
    deepStrictEqual([yield* paths, yield* running.tokenRequests], [[[tokenPath, 301], [`${tokenPath}/`, status]], 1])
  })

  test.live("308 of a call to another origin is the caller's, and the token does not travel", function*() {
    const running = yield* Front.server
    const target = yield* Front.before(running)
    const front = yield* Front.before(running, { api: `return 308 ${target.url}$request_uri;` })
    assert.strictEqual(yield* call(front.client), 308)
    deepStrictEqual([yield* front.calls, yield* target.calls, yield* running.calls], [[308], [], 0])
    yield* callApi(target)
    deepStrictEqual([yield* target.calls, yield* running.calls], [[401], 1])
    yield* Front.tell(front, "308 of a call to another origin", "the 308")
  })
})
