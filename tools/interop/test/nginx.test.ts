/**
 * nginx between the library and @node-oauth/oauth2-server: it limits the rate, redirects, closes connections, or cannot
 * reach the server behind it.
 */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { AccessTokenError } from "@store-api/core"
import { test } from "@store-api/testing/test"
import { DateTime, Duration, Effect, Option } from "effect"
import { isLeftOut, nginx, type NginxOptions, startNginx } from "../src/Program.js"
import { credentials, nodeOAuth2Server, type Running, serve, tokenPath } from "../src/servers.js"
import { assertHidden, call, clientOf, requestToken } from "./support.js"

interface Options extends Pick<NginxOptions, "http"> {
  /** Directives for the location of the token endpoint. */
  readonly token?: string
  /** The location of the token endpoint in the configuration; by default only the path. */
  readonly tokenLocation?: string
  /** Where nginx finds the token endpoint; by default at the server. */
  readonly authUrl?: string
}

/** The token endpoint and the API of a server, behind nginx. */
const before = (running: Running, options: Options = {}) =>
  Effect.gen(function*() {
    const { authUrl = running.authUrl, http, token = "", tokenLocation = `= ${tokenPath}` } = options
    const nginx = yield* startNginx({
      http,
      server: `
        location ${tokenLocation} { ${token} proxy_pass ${authUrl}${tokenPath}; }
        location / { proxy_pass ${running.apiUrl}; }`
    })
    const target = { ...running, authUrl: nginx.url, apiUrl: nginx.url }
    // The statuses of its responses to token requests, in order.
    const tokens = Effect.map(nginx.requests, (all) =>
      all.filter(({ path }) => path.startsWith(tokenPath)).map(({ status }) => status))
    return { ...nginx, ...target, tokens, client: yield* clientOf(target) }
  })

const server = nodeOAuth2Server.start(600)

const times = (status: number, count: number) => Array.from({ length: count }, () => status)

const zone = (rate: string) => `limit_req_zone $binary_remote_addr zone=tokens:1m rate=${rate};`

const refusing = "limit_req zone=tokens; limit_req_status 429;"

/** nginx sends no `Retry-After` of its own; an empty header is not sent. */
const withRetryAfter = (rate: string, seconds: number): Options => ({
  http: `${zone(rate)} map $status $retry_after { 429 "${seconds}"; default ""; }`,
  token: `${refusing} add_header Retry-After $retry_after always;`
})

/** No program listens on this port: the system never assigns it, and its service is obsolete. */
const down = "http://127.0.0.1:1"

const slowly = "proxy_read_timeout 1s;"

/** The fields of the error. Nothing of nginx's page is in them. */
const none = { code: Option.none(), description: Option.none() }
const unavailable = { _tag: "TokenRefusedError", reason: "Unavailable", ...none } as const
const rateLimited = { _tag: "TokenRefusedError", reason: "RateLimited", status: 429, ...none } as const
const closed = { _tag: "TokenRequestError", reason: "Transport", attempts: 6 } as const
const redirect = { _tag: "TokenRequestError", reason: "Redirect", attempts: 1 } as const

/** The last: the statuses of the token requests. With a 200, another client uses the only request of this minute. */
const faults: ReadonlyArray<
  readonly [
    fault: string,
    options: Options | ((silent: string) => Options),
    error: Partial<AccessTokenError.AccessTokenError>,
    tokens: ReadonlyArray<number>
  ]
> = [
  // nginx logs this status when it closes the connection without a response.
  ["every connection closed during a token request", { token: "return 444;" }, closed, times(444, 6)],
  ["502, the token endpoint is down", { authUrl: down }, { ...unavailable, status: 502 }, times(502, 6)],
  [
    "504, the token endpoint is silent",
    (silent) => ({ authUrl: silent, http: slowly }),
    { ...unavailable, status: 504 },
    times(504, 6)
  ],
  [
    "`limit_req`, the default, 503",
    { http: zone("1r/m"), token: "limit_req zone=tokens;" },
    { ...unavailable, status: 503 },
    [200, ...times(503, 6)]
  ],
  // Without a Retry-After, a 429 is not tried again.
  ["`limit_req_status` 429", { http: zone("1r/m"), token: refusing }, rateLimited, [200, 429]],
  ["429 with a Retry-After beyond the deadline", withRetryAfter("1r/m", 120), rateLimited, [200, 429]],
  // With proxy_pass, nginx redirects (301) from the location's name without the slash to the one with it.
  ["the slash that nginx adds to the name of a location", { tokenLocation: `${tokenPath}/` }, redirect, [301]]
]

describe.skipIf(isLeftOut(nginx))("nginx in front of a server", { concurrent: true }, () => {
  test.live.each(faults)(
    "%s: a typed error, and the next caller sends nothing",
    function*([fault, options, fields, tokens]) {
      // A server that never responds.
      const silent = yield* serve(() => () => undefined)
      const front = yield* before(yield* server, typeof options === "function" ? options(silent.url) : options)
      const isUsedUp = tokens[0] === 200
      if (isUsedUp) yield* requestToken(front)
      const asked = yield* DateTime.now
      const [duration, error] = yield* Effect.timed(Effect.flip(front.client.provider.get))
      // At once, because the cooldown may be as short as 750 ms.
      const again = yield* Effect.flip(front.client.provider.get)
      assert.deepInclude(error, fields)
      assertHidden(error, [credentials.clientSecret])
      assert.isTrue(Duration.lessThan(duration, Duration.seconds(30)))
      // A redirect lasts until somebody changes it.
      assert.strictEqual(Option.isNone(error.retryAt), fields === redirect)
      if (fault.includes("Retry-After")) {
        const wait = Duration.toSeconds(DateTime.distanceDuration(asked, Option.getOrThrow(error.retryAt)))
        assert.isTrue(wait >= 120 && wait < 125, `${wait} s`)
      }
      // The monotonic clock ends a cooldown. `retryAt` is its end by the wall clock, which may be adjusted.
      deepStrictEqual({ ...again, retryAt: error.retryAt }, { ...error })
      deepStrictEqual([yield* front.tokens, yield* silent.requests], [tokens, tokens[0] === 504 ? 6 : 0])
    }
  )

  test.live("keepalive_requests 3, under load and with tokens renewed: no call fails, none is sent again", function*() {
    const running = yield* server
    const front = yield* before(running, { http: "keepalive_requests 3;" })
    const calls = 1500
    const statuses = yield* Effect.forEach(Array.from({ length: calls }).keys(), (index) =>
      Effect.zipRight(
        index % 100 === 0 ? Effect.asVoid(front.client.provider.refresh) : Effect.void,
        call(front.client)
      ), { concurrency: 16 })
    deepStrictEqual(statuses, times(200, calls))
    const { tokenRequests } = running.counts
    assert.isAbove(tokenRequests, 1)
    const requests = yield* front.requests
    deepStrictEqual(requests.map(({ status }) => status), times(200, calls + tokenRequests))
    // Connections were reused as often as nginx allows.
    assert.strictEqual(Math.max(...requests.map(({ onConnection }) => onConnection)), 3)
  })
})
