/**
 * nginx between the library and oidc-provider: it limits the rate, redirects, closes connections, has a certificate of
 * its own authority, or cannot reach the server behind it.
 */
import { text } from "node:stream/consumers"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { AccessTokenError } from "@store-api/core"
import type { NodeStoreAuth } from "@store-api/platform-node"
import { DateTime, Duration, Effect, Fiber, Option } from "effect"
import { test } from "../../../packages/core/test/support/test.js"
import * as x509 from "../../../packages/emulator/src/internal/x509.js"
import { eventually, isLeftOut, nginx, type NginxOptions, startNginx } from "../src/Program.js"
import { credentials, oidcProvider, type Running, serve, tokenPath } from "../src/servers.js"
import { assertHidden, call, client, requestToken } from "./support.js"

interface Options extends Pick<NginxOptions, "http" | "tls"> {
  /** Directives for the locations of the token endpoint and of the API. */
  readonly token?: string
  readonly api?: string
  /** The location of the token endpoint in the configuration; by default only the path. */
  readonly tokenLocation?: string
  /** Where nginx finds the token endpoint and the API; by default at the server. */
  readonly authUrl?: string
  readonly apiUrl?: string
  /** How the client connects. */
  readonly client?: NodeStoreAuth.Options["http"]
}

/** The token endpoint and the API of a server, behind nginx. */
const before = (running: Running, options: Options = {}) =>
  Effect.gen(function*() {
    const { api = "", apiUrl, authUrl, http, tls, token = "", tokenLocation = `= ${tokenPath}` } = options
    const nginx = yield* startNginx({
      http,
      tls,
      server: `
        location ${tokenLocation} { ${token} proxy_pass ${authUrl ?? running.authUrl}${tokenPath}; }
        location / { ${api} proxy_pass ${apiUrl ?? running.apiUrl}; }`
    })
    const urls = { authUrl: nginx.url, apiUrl: nginx.url }
    const statuses = (ofTokens: boolean) =>
      Effect.map(
        nginx.requests,
        (all) => all.filter(({ path }) => path.startsWith(tokenPath) === ofTokens).map(({ status }) => status)
      )
    return {
      ...nginx,
      ...urls,
      client: yield* client(urls, credentials, options.client),
      // The statuses of its responses to token requests and to all others, in order.
      tokens: statuses(true),
      calls: statuses(false)
    }
  })

const server = oidcProvider.start(600)

/** An authority that only this test knows, and a certificate that it signs for a server on loopback. */
const authority = () => {
  const issuer = x509.authority()
  return { ca: issuer.cert, tls: x509.leaf("localhost", [Buffer.from([127, 0, 0, 1])], { issuer }) }
}

const { ca, tls } = authority()

/** oidc-provider, nginx before it as a target of redirects, a server that never responds, and the nginx to test. */
const setUp = (options: (urls: { readonly silent: string; readonly target: string }) => Options, secure = false) =>
  Effect.gen(function*() {
    const running = yield* server
    const silent = yield* serve(() => () => undefined)
    const target = yield* before(running, secure ? { tls, client: { ca } } : {})
    return {
      running,
      silent,
      target,
      front: yield* before(running, options({ silent: silent.url, target: target.url }))
    }
  })

const times = (status: number, count: number) => Array.from({ length: count }, () => status)

const zone = (rate: string) => `limit_req_zone $binary_remote_addr zone=tokens:1m rate=${rate};`

/** nginx sends no `Retry-After` of its own; an empty header is not sent. */
const withRetryAfter = (rate: string, seconds: number): Options => ({
  http: `${zone(rate)} map $status $retry_after { 429 "${seconds}"; default ""; }`,
  token: "limit_req zone=tokens; limit_req_status 429; add_header Retry-After $retry_after always;"
})

/** No program listens on this port: the system never assigns it, and its service is obsolete. */
const down = "http://127.0.0.1:1"

/** Closes the connection without a response, like a network failure. nginx logs that as a status. */
const hangUp = (onConnection: number) => `if ($connection_requests = ${onConnection}) { return 444; }`
const hungUp = 444

/** For hanging up on a second request: the next request uses the connection of the one before. */
const oneConnection = { connections: 1 }

const slowly = "proxy_read_timeout 1s;"

interface Fault {
  readonly fault: string
  readonly options: Parameters<typeof setUp>[0]
  /** The fields of the error. Nothing of nginx's page is in them. */
  readonly error: Partial<AccessTokenError.AccessTokenError>
  /** The statuses of the token requests. With a 200, another client uses the only request of this minute. */
  readonly tokens: ReadonlyArray<number>
  /** How many requests reach the silent server. */
  readonly reached?: number
  /** The seconds until `retryAt`. */
  readonly wait?: number
  /** Whether the target of a redirect has a trusted certificate. */
  readonly secure?: boolean
}

const none = { code: Option.none(), description: Option.none() }
const unavailable = { _tag: "TokenRefusedError", reason: "Unavailable", ...none } as const
const rateLimited = { _tag: "TokenRefusedError", reason: "RateLimited", status: 429, ...none } as const
const redirect = { _tag: "TokenRequestError", reason: "Redirect", attempts: 1 } as const
const untrusted = { _tag: "TokenRequestError", reason: "Certificate", attempts: 1 } as const

const faults: ReadonlyArray<Fault> = [
  {
    fault: "every connection closed during a token request",
    options: () => ({ token: "return 444;" }),
    error: { _tag: "TokenRequestError", reason: "Transport", attempts: 6 },
    tokens: times(hungUp, 6)
  },
  {
    fault: "502, the token endpoint is down",
    options: () => ({ authUrl: down }),
    error: { ...unavailable, status: 502 },
    tokens: times(502, 6)
  },
  {
    fault: "504, the token endpoint is silent",
    options: ({ silent }) => ({ authUrl: silent, http: slowly }),
    error: { ...unavailable, status: 504 },
    tokens: times(504, 6),
    reached: 6
  },
  {
    fault: "`limit_req`, the default, 503",
    options: () => ({ http: zone("1r/m"), token: "limit_req zone=tokens;" }),
    error: { ...unavailable, status: 503 },
    tokens: [200, ...times(503, 6)]
  },
  {
    // Without a Retry-After, a 429 is not tried again.
    fault: "`limit_req_status` 429",
    options: () => ({ http: zone("1r/m"), token: "limit_req zone=tokens; limit_req_status 429;" }),
    error: rateLimited,
    tokens: [200, 429]
  },
  {
    fault: "429 with a Retry-After beyond the deadline",
    options: () => withRetryAfter("1r/m", 120),
    error: rateLimited,
    tokens: [200, 429],
    wait: 120
  },
  ...[301, 302, 303, 307, 308].map((status): Fault => ({
    fault: `${status} to another origin`,
    options: ({ target }) => ({ token: `return ${status} ${target}$request_uri;` }),
    error: redirect,
    tokens: [status]
  })),
  {
    fault: "301 from http to https of the same host, whose certificate is trusted",
    options: ({ target }) => ({ token: `return 301 ${target}$request_uri;`, client: { ca } }),
    secure: true,
    error: redirect,
    tokens: [301]
  },
  {
    // With proxy_pass, nginx redirects (301) from the location's name without the slash to the one with it.
    fault: "the slash that nginx adds to the name of a location",
    options: () => ({ tokenLocation: `${tokenPath}/` }),
    error: redirect,
    tokens: [301]
  },
  { fault: "an unknown authority", options: () => ({ tls }), error: untrusted, tokens: [] },
  {
    fault: "an authority that is not the one in `ca`",
    options: () => ({ tls, client: { ca: authority().ca } }),
    error: untrusted,
    tokens: []
  }
]

describe.skipIf(isLeftOut(nginx))("nginx in front of a server", { concurrent: true }, () => {
  test.live.each(faults)("$fault: a typed error, and the next caller sends nothing", function*(row) {
    const { front, running, silent, target } = yield* setUp(row.options, row.secure)
    const isUsedUp = row.tokens[0] === 200
    if (isUsedUp) yield* requestToken(front)
    const asked = yield* DateTime.now
    const [duration, error] = yield* Effect.timed(Effect.flip(front.client.provider.get))
    // At once, because the cooldown may be as short as 750 ms.
    const again = yield* Effect.flip(front.client.provider.get)
    assert.deepInclude(error, row.error)
    assertHidden(error, [credentials.clientSecret])
    assert.isTrue(Duration.lessThan(duration, Duration.seconds(30)))
    // A redirect and a certificate last until somebody changes them.
    assert.strictEqual(Option.isNone(error.retryAt), row.error === redirect || row.error === untrusted)
    if (row.wait !== undefined) {
      const wait = Duration.toSeconds(DateTime.distanceDuration(asked, Option.getOrThrow(error.retryAt)))
      assert.isTrue(wait >= row.wait && wait < row.wait + 5, `${wait} s`)
    }
    // The monotonic clock ends a cooldown. `retryAt` is its end by the wall clock, which may be adjusted.
    deepStrictEqual({ ...again, retryAt: error.retryAt }, { ...error })
    deepStrictEqual([yield* front.tokens, yield* silent.requests], [row.tokens, row.reached ?? 0])
    deepStrictEqual([yield* target.tokens, (yield* running.counts).tokenRequests], [[], isUsedUp ? 1 : 0])
    if (row.error !== untrusted) return
    // Connections that the client ended in the handshake, or right after it without a request, as nginx logs them.
    const pattern = /(SSL_do_handshake\(\) failed|client closed connection while).*client: 127\.0\.0\.1/g
    yield* eventually(Effect.sync(() => front.errors().match(pattern) ?? []), ({ length }) => length === 1)
  })

  test.live.each<Pick<Fault, "fault" | "options"> & { readonly status: number; readonly reached?: number }>([
    { status: 502, fault: "the API is down", options: () => ({ apiUrl: down }) },
    {
      status: 504,
      fault: "the API is silent",
      options: ({ silent }) => ({ apiUrl: silent, http: slowly }),
      reached: 1
    },
    {
      status: 308,
      fault: "to another origin, where the token does not travel",
      options: ({ target }) => ({ api: `return 308 ${target}$request_uri;` })
    }
  ])("$status, $fault: the status reaches the caller, and the call is sent once", function*(row) {
    const { front, running, silent, target } = yield* setUp(row.options)
    assert.strictEqual(yield* call(front.client), row.status)
    deepStrictEqual(
      [yield* front.tokens, yield* front.calls, yield* silent.requests],
      [[200], [row.status], row.reached ?? 0]
    )
    deepStrictEqual([yield* target.calls, (yield* running.counts).calls], [[], 0])
  })

  test.live("with its authority in `ca`, token and call go over https", function*() {
    const { target } = yield* setUp(() => ({}), true)
    assert.strictEqual(yield* call(target.client), 200)
    deepStrictEqual([yield* target.tokens, yield* target.calls], [[200], [200]])
  })

  test.live("502 to token requests, for a while: the waiting caller has a token once the server is up", function*() {
    const running = yield* server
    let isRepaired = false
    const headers = { "content-type": "application/x-www-form-urlencoded" }
    const broken = yield* serve(() => async (request, response) => {
      if (!isRepaired) return void request.socket.destroy()
      const body = await text(request)
      const passed = await fetch(`${running.authUrl}${tokenPath}`, { method: "POST", headers, body })
      response.end(await passed.text())
    })
    const front = yield* before(running, { authUrl: broken.url })
    const waiting = yield* Effect.fork(front.client.provider.get)
    yield* eventually(front.tokens, ({ length }) => length >= 2)
    isRepaired = true
    yield* Fiber.join(waiting)
    const statuses = yield* front.tokens
    assert.isAtLeast(statuses.length, 3)
    deepStrictEqual(statuses, [...times(502, statuses.length - 1), 200])
    assert.strictEqual(yield* call(front.client), 200)
  })

  test.live.each([
    {
      // All attempts take at least 2.5 s.
      limit: "one in a second and a half",
      options: { http: zone("40r/m"), token: "limit_req zone=tokens;" },
      refused: 503
    },
    {
      limit: "one in three seconds, with a Retry-After that fits the deadline",
      options: withRetryAfter("20r/m", 3),
      refused: 429
    }
  ])("a limit of $limit: the caller waits, and has a token within the deadline", function*({ options, refused }) {
    const front = yield* before(yield* server, options)
    const first = yield* front.client.provider.get
    const [duration, second] = yield* Effect.timed(front.client.provider.refresh)
    assert.notStrictEqual(second, first)
    assert.isBelow(Duration.toSeconds(duration), 20)
    const statuses = yield* front.tokens
    assert.isAbove(statuses.length, 2)
    deepStrictEqual(statuses, [200, ...times(refused, statuses.length - 2), 200])
    // One refusal says how long to wait.
    if (refused === 429) deepStrictEqual([statuses.length, Duration.toSeconds(duration) >= 3], [3, true])
  })

  test.live("keepalive_requests 3, under load and with tokens renewed: no call fails, none is sent again", function*() {
    const running = yield* server
    const front = yield* before(running, { http: "keepalive_requests 3;" })
    const calls = 1500
    const statuses = yield* Effect.forEach(
      Array.from({ length: calls }, (_, index) => index),
      (index) =>
        Effect.zipRight(
          index % 100 === 0 ? Effect.asVoid(front.client.provider.refresh) : Effect.void,
          call(front.client)
        ),
      { concurrency: 16 }
    )
    deepStrictEqual(statuses, times(200, calls))
    const { tokenRequests } = yield* running.counts
    assert.isAbove(tokenRequests, 1)
    const requests = yield* front.requests
    deepStrictEqual(requests.map(({ status }) => status), times(200, calls + tokenRequests))
    // Connections were reused, and none more often than nginx allows.
    assert.strictEqual(Math.max(...requests.map(({ onConnection }) => onConnection)), 3)
    const connections = new Set(requests.map(({ connection }) => connection)).size
    assert.isAtLeast(connections, requests.length / 3)
    assert.isBelow(connections, requests.length / 2)
  })

  test.live("a connection that breaks during a token request costs one more attempt", function*() {
    const front = yield* before(yield* server, { token: hangUp(2), client: oneConnection })
    const first = yield* front.client.provider.get
    assert.notStrictEqual(yield* front.client.provider.refresh, first)
    deepStrictEqual(
      (yield* front.requests).map(({ onConnection, status }) => [status, onConnection]),
      [[200, 1], [hungUp, 2], [200, 1]]
    )
  })

  test.live("a connection that breaks during a call fails the call, which is not sent again; the next call succeeds", function*() {
    const front = yield* before(yield* server, { api: hangUp(2), client: oneConnection })
    const token = yield* front.client.provider.get
    for (const method of ["get", "post", "put", "del"] as const) {
      const earlier = yield* front.requests // the connection of the last of them is in the pool
      const error = yield* Effect.flip(front.client.api[method]("/v1/orders"))
      assert(error._tag === "RequestError")
      assert.match(error.message, /^Transport/)
      assertHidden(error, [credentials.clientSecret, token.value])
      assert.strictEqual(yield* call(front.client), 200)
      const after = (yield* front.requests).slice(earlier.length)
      deepStrictEqual(after.map(({ status }) => status), [hungUp, 200])
    }
    deepStrictEqual(yield* front.tokens, [200])
  })
})
