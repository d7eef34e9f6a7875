/** nginx closes connections, has a certificate of its own authority, or cannot reach the server behind it. */
import { text } from "node:stream/consumers"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Duration, Effect, Either, Fiber, Option } from "effect"
import { test } from "../../../packages/core/test/support/test.js"
import { credentials, serve } from "../src/AuthorizationServer.js"
import { nginx } from "../src/Nginx.js"
import { oidcProvider } from "../src/oidcProvider.js"
import { eventually, isLeftOut } from "../src/Program.js"
import { assertHidden, call, report } from "./support/client.js"
import * as Front from "./support/front.js"

/** The attempts of one acquisition: the first and five more. */
const attempts = 6

const times = (status: number, count: number) => Array.from({ length: count }, () => status)

/** Closes the connection without a response, like a network failure. */
const hangUp = (onConnection: number) => `if ($connection_requests = ${onConnection}) { return 444; }`
const hungUp = 444

/** For hanging up on a second request: the next request uses the connection of the one before. */
const oneConnection = { connections: 1 }

describe.skipIf(isLeftOut(nginx))("connections that nginx ends", () => {
  test.live("keepalive_requests 3, under load and with tokens renewed: no call fails, none is sent again", function*() {
    const running = yield* Front.server
    const front = yield* Front.before(running, { http: "keepalive_requests 3;" })
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
    const tokenRequests = yield* running.tokenRequests
    assert.isAbove(tokenRequests, 1)
    const requests = yield* front.requests
    deepStrictEqual(requests.map(({ status }) => status), times(200, calls + tokenRequests))
    // Connections were reused, and none more often than nginx allows.
    assert.strictEqual(Math.max(...requests.map(({ onConnection }) => onConnection)), 3)
    const connections = new Set(requests.map(({ connection }) => connection)).size
    assert.isAtLeast(connections, requests.length / 3)
    assert.isBelow(connections, requests.length / 2)
    yield* Front.tell(front, "`keepalive_requests 3`", "every call succeeds")
    yield* report("proxies", {
      "server": "nginx",
      "version": String(nginx.version),
      "in front of": `${oidcProvider.name} ${oidcProvider.version}`
    })
  })

  test.live("a connection that breaks during a token request costs one more attempt", function*() {
    const front = yield* Front.before(yield* Front.server, { token: hangUp(2), client: oneConnection })
    const first = yield* front.client.provider.get
    const second = yield* front.client.provider.refresh
    assert.notStrictEqual(second, first)
    const requests = yield* front.requests
    deepStrictEqual(requests.map(({ onConnection, status }) => [status, onConnection]), [
      [200, 1],
      [hungUp, 2],
      [200, 1]
    ])
    yield* Front.tell(front, "a pooled connection closed during a token request", "a token")
  })

  test.live("a connection that breaks during a call fails the call, which is not sent again; the next call succeeds", function*() {
    const front = yield* Front.before(yield* Front.server, { api: hangUp(2), client: oneConnection })
    const token = yield* front.client.provider.get
    for (const method of ["get", "post", "put", "del"] as const) {
      const before = yield* front.requests // the connection of the last of them is in the pool
      const error = yield* Effect.flip(front.client.api[method]("/v1/orders"))
      assert(error._tag === "RequestError")
      assert.match(error.message, /^Transport/)
      assertHidden(error, [credentials.clientSecret, token.value])
      assert.strictEqual(yield* call(front.client), 200)
      const after = (yield* front.requests).slice(before.length)
      deepStrictEqual(after.map(({ status }) => status), [hungUp, 200])
    }
    deepStrictEqual(yield* front.tokens, [200])
    const outcome = "`RequestError`, Transport; the next call succeeds"
    yield* Front.tell(front, "a pooled connection closed during a call", outcome)
  })

  test.live("some break under load: as many calls fail as nginx dropped, and each was sent once", function*() {
    const front = yield* Front.before(yield* Front.server, { api: hangUp(3) })
    const calls = 600
    const outcomes = yield* Effect.replicateEffect(Effect.either(call(front.client)), calls, { concurrency: 16 })
    const failed = outcomes.filter(Either.isLeft).map(({ left }) => left)
    assert.isNotEmpty(failed)
    assert.isTrue(failed.every(({ _tag }) => _tag === "RequestError"))
    const statuses = yield* front.calls
    deepStrictEqual(
      [...statuses].sort((one, other) => one - other),
      [...times(200, calls - failed.length), ...times(hungUp, failed.length)]
    )
    deepStrictEqual(yield* front.tokens, [200])
  })
})

/** Connections that a client ended in the handshake, or right after it without a request, as nginx logs them. */
const turnedAway = ({ errors }: Front.Front) =>
  errors().match(/(SSL_do_handshake\(\) failed|client closed connection while).*client: 127\.0\.0\.1/g)?.length ?? 0

describe.skipIf(isLeftOut(nginx))("TLS of nginx", () => {
  test.live("with the authority in `ca`: token and call over https", function*() {
    const { ca, tls } = Front.authority()
    const front = yield* Front.before(yield* Front.server, { tls, client: { ca } })
    assert.strictEqual(yield* call(front.client), 200)
    deepStrictEqual([yield* front.tokens, yield* front.calls], [[200], [200]])
    yield* Front.tell(front, "https, its authority in `ca`", "a token, and the response to the call")
  })

  test.live("without it, and with another: Certificate, and nothing is sent", function*() {
    const running = yield* Front.server
    const { tls } = Front.authority()
    const clients = [
      { fault: "https, its authority unknown", client: {} },
      { fault: "https, another authority in `ca`", client: { ca: Front.authority().ca } }
    ]
    for (const { client, fault } of clients) {
      const front = yield* Front.before(running, { tls, client })
      const error = yield* Front.refused(front, { _tag: "TokenRequestError", reason: "Certificate", attempts: 1 })
      // The client refused the certificate of this nginx.
      yield* eventually(Effect.sync(() => turnedAway(front)), (times) => times === 1)
      deepStrictEqual([yield* front.requests, yield* running.tokenRequests], [[], 0])
      yield* Front.tell(front, fault, error)
    }
  })
})

/** No program listens on this port: the system never assigns it, and its service is obsolete. */
const down = "http://127.0.0.1:1"

/** Accepts requests and never responds; counts them. */
const silent = serve(() => () => undefined)

/** Closes each connection until it is repaired. Then it passes token requests on to this server. */
const broken = (to: string) =>
  Effect.gen(function*() {
    let isRepaired = false
    const passOn = async (path: string, body: string) => {
      const headers = { "content-type": "application/x-www-form-urlencoded" }
      return (await fetch(`${to}${path}`, { method: "POST", headers, body })).text()
    }
    const { url } = yield* serve(() => (request, response) => {
      if (isRepaired) {
        void text(request).then((body) => passOn(request.url ?? "", body)).then((all) => response.end(all))
      } else request.socket.destroy()
    })
    return { url, repair: Effect.sync(() => void (isRepaired = true)) }
  })

const unavailable = { _tag: "TokenRefusedError", reason: "Unavailable" } as const
/** Nothing of nginx's page is in the error. */
const html = { code: Option.none(), description: Option.none() }
const slowly = "proxy_read_timeout 1s;"

/** The configuration of each fault. A server of the name `silent` never responds. */
const faults: Readonly<Record<string, Front.Options>> = {
  "every connection closed during a token request": { token: "return 444;" },
  "502, the token endpoint is down": { authUrl: down },
  "504, the token endpoint is silent": { authUrl: "silent", http: slowly },
  "502, the API is down": { apiUrl: down },
  "504, the API is silent": { apiUrl: "silent", http: slowly }
}

/** nginx with a fault, and a silent server where it is named, with the requests that this received. */
const faulty = (fault: keyof typeof faults) =>
  Effect.gen(function*() {
    const { requests, url } = yield* silent
    const silenced = (to: string | undefined) => to === "silent" ? url : to
    const { apiUrl, authUrl, ...options } = faults[fault] ?? {}
    const urls = { apiUrl: silenced(apiUrl), authUrl: silenced(authUrl) }
    const front = yield* Front.before(yield* Front.server, { ...options, ...urls })
    return { front, requests }
  })

describe.skipIf(isLeftOut(nginx))("a server behind nginx that fails", () => {
  it.scopedLive.each(
    [
      ["every connection closed during a token request", 444, 0, {
        _tag: "TokenRequestError",
        reason: "Transport",
        attempts
      }],
      ["502, the token endpoint is down", 502, 0, { ...unavailable, status: 502, ...html }],
      ["504, the token endpoint is silent", 504, attempts, { ...unavailable, status: 504 }]
    ] as const
  )("%s: a typed error after six attempts", ([fault, status, received, fields]) =>
    Effect.gen(function*() {
      const { front, requests } = yield* faulty(fault)
      const [duration, error] = yield* Effect.timed(Front.refused(front, fields))
      assert.isTrue(Duration.lessThan(duration, Duration.seconds(30)))
      assert.isTrue(Option.isSome(error.retryAt))
      deepStrictEqual([yield* front.tokens, yield* requests], [times(status, attempts), received])
      yield* Front.tell(front, fault, error)
    }))

  it.scopedLive.each([["502, the API is down", 502, 0], ["504, the API is silent", 504, 1]] as const)(
    "%s: the status reaches the caller, and the call is sent once",
    ([fault, status, received]) =>
      Effect.gen(function*() {
        const { front, requests } = yield* faulty(fault)
        assert.strictEqual(yield* call(front.client), status)
        deepStrictEqual([yield* front.tokens, yield* front.calls, yield* requests], [[200], [status], received])
        yield* Front.tell(front, fault, `the ${status}`)
      })
  )

  test.live("502 to token requests, for a while: the waiting caller has a token once the server is up", function*() {
    const running = yield* Front.server
    const { repair, url } = yield* broken(running.authUrl)
    const front = yield* Front.before(running, { authUrl: url })
    const waiting = yield* Effect.fork(front.client.provider.get)
    yield* eventually(front.tokens, ({ length }) => length >= 2)
    yield* repair
    yield* Fiber.join(waiting)
    const statuses = yield* front.tokens
    assert.isAtLeast(statuses.length, 3)
    deepStrictEqual(statuses, [...times(502, statuses.length - 1), 200])
    assert.strictEqual(yield* call(front.client), 200)
    yield* Front.tell(front, "502, the token endpoint is down for a while", "a token")
  })
})
