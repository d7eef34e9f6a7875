/** nginx redirects: neither the credentials nor the token follow. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import { isLeftOut } from "../src/debian/Program.js"
import { tokenPath } from "../src/loopback.js"
import * as certificate from "../src/nginx/certificate.js"
import * as Front from "../src/nginx/Front.js"
import { nginx } from "../src/nginx/Nginx.js"
import { oidcProvider } from "../src/oidcProvider.js"
import { callApi, requestToken } from "../src/wire.js"

const timeout = 60_000

const leftOut = isLeftOut(nginx) || isLeftOut(certificate.program)

const start = oidcProvider.start({ life: 600 })

describe.skipIf(leftOut)("redirects of nginx", () => {
  it.scopedLive.each([301, 302, 303, 307, 308])(
    "%i of the token request to another origin is refused",
    (status) =>
      Effect.gen(function*() {
        const running = yield* start
        const target = yield* Front.before(running, {})
        const front = yield* Front.before(running, { token: `return ${status} ${target.url}$request_uri;` })
        const { provider } = yield* Front.client(front.running)
        const error = yield* Effect.flip(provider.get)
        assert(error._tag === "TokenRequestError")
        deepStrictEqual([error.reason, error.attempts], ["Redirect", 1])
        Front.assertHidden(error, [running.credentials.clientSecret])
        deepStrictEqual([yield* front.tokens, yield* target.tokens], [[status], []])
        // Positive control: the target accepts a request and reports it.
        yield* requestToken(target.running)
        deepStrictEqual([yield* target.tokens, yield* running.tokenRequests], [[200], 1])
        yield* Front.tell(front, { fault: `${status} to another origin`, outcome: Front.inWords(error) })
      }),
    timeout
  )

  it.scopedLive(
    "301 from http to https of the same host is refused, though its certificate is trusted",
    () =>
      Effect.gen(function*() {
        const running = yield* start
        const { ca, cert, key } = yield* certificate.make
        const target = yield* Front.before(running, { tls: { cert, key } })
        const front = yield* Front.before(running, { token: `return 301 ${target.url}$request_uri;` })
        const { provider } = yield* Front.client(front.running, { ca })
        const error = yield* Effect.flip(provider.get)
        assert(error._tag === "TokenRequestError")
        deepStrictEqual([error.reason, error.attempts], ["Redirect", 1])
        Front.assertHidden(error, [running.credentials.clientSecret])
        deepStrictEqual([yield* front.tokens, yield* target.tokens, yield* running.tokenRequests], [[301], [], 0])
        const direct = yield* Front.client(target.running, { ca })
        yield* direct.provider.get
        deepStrictEqual([yield* target.tokens, yield* running.tokenRequests], [[200], 1])
        yield* Front.tell(front, { fault: "301 from http to https", outcome: Front.inWords(error) })
      }),
    timeout
  )

  it.scopedLive("the slash that nginx adds to the name of a location is refused", () =>
    Effect.gen(function*() {
      const running = yield* start
      // With proxy_pass, nginx redirects (301) from the location's name without the slash to the one with it.
      const front = yield* Front.before(running, { tokenLocation: `${tokenPath}/` })
      const { provider } = yield* Front.client(front.running)
      const error = yield* Effect.flip(provider.get)
      assert(error._tag === "TokenRequestError")
      assert.strictEqual(error.reason, "Redirect")
      Front.assertHidden(error, [running.credentials.clientSecret])
      const paths = Effect.map(front.requests, (all) => all.map(({ path, status }) => [path, status]))
      deepStrictEqual([yield* paths, yield* running.tokenRequests], [[[tokenPath, 301]], 0])
      yield* Front.tell(front, { fault: "301 that adds a slash", outcome: Front.inWords(error) })
      const { status } = yield* Effect.promise(() => fetch(`${front.url}${tokenPath}/`, { method: "POST" }))
      assert.notStrictEqual(status, 301)
      deepStrictEqual([yield* paths, yield* running.tokenRequests], [[[tokenPath, 301], [`${tokenPath}/`, status]], 1])
    }), timeout)

  it.scopedLive(
    "308 of a call to another origin is the caller's, and the token does not travel",
    () =>
      Effect.gen(function*() {
        const running = yield* start
        const target = yield* Front.before(running, {})
        const front = yield* Front.before(running, { api: `return 308 ${target.url}$request_uri;` })
        assert.strictEqual(yield* Front.call(yield* Front.client(front.running)), 308)
        deepStrictEqual([yield* front.calls, yield* target.calls, yield* running.calls], [[308], [], 0])
        yield* callApi(target.running)
        deepStrictEqual([yield* target.calls, yield* running.calls], [[401], 1])
        yield* Front.tell(front, { fault: "308 of a call to another origin", outcome: "the 308" })
      }),
    timeout
  )
})
