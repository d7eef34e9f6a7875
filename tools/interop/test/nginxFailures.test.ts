/** nginx closes connections, has a certificate of its own authority, or cannot reach the server behind it. */
import { text } from "node:stream/consumers"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Duration, Effect, Either, Fiber, Option } from "effect"
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
  it.scopedLive("keepalive_requests 3, under load and with tokens renewed: no call fails, none is sent again", () =>
    Effect.gen(function*() {
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
    }))

  it.scopedLive("a connection that breaks during a token request costs one more attempt", () =>
    Effect.gen(function*() {
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
    }))

  it.scopedLive("all of them break during token requests: Transport, after six attempts", () =>
    Effect.gen(function*() {
      const front = yield* Front.before(yield* Front.server, { token: "return 444;" })
      const error = yield* Front.refused(front, { _tag: "TokenRequestError", reason: "Transport", attempts })
      assert.isTrue(Option.isSome(error.retryAt))
      deepStrictEqual(yield* front.tokens, times(hungUp, attempts))
      yield* Front.tell(front, "every connection closed during a token request", error)
    }))

  it.scopedLive(
    "a connection that breaks during a call fails the call, which is not sent again; the next call succeeds",
    () =>
      Effect.gen(function*() {
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
  )

  it.scopedLive("some break under load: as many calls fail as nginx dropped, and each was sent once", () =>
    Effect.gen(function*() {
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
    }))
})

/** Connections that a client ended in the handshake, or right after it without a request, as nginx logs them. */
const turnedAway = ({ errors }: Front.Front) =>
  errors().match(/(SSL_do_handshake\(\) failed|client closed connection while).*client: 127\.0\.0\.1/g)?.length ?? 0

describe.skipIf(isLeftOut(nginx))("TLS of nginx", () => {
  it.scopedLive("with the authority in `ca`: token and call over https", () =>
    Effect.gen(function*() {
      const { ca, tls } = Front.authority()
      const front = yield* Front.before(yield* Front.server, { tls, client: { ca } })
      assert.strictEqual(yield* call(front.client), 200)
      deepStrictEqual([yield* front.tokens, yield* front.calls], [[200], [200]])
      yield* Front.tell(front, "https, its authority in `ca`", "a token, and the response to the call")
    }))

  it.scopedLive("without it, and with another: Certificate, and nothing is sent", () =>
    Effect.gen(function*() {
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
    }))
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

describe.skipIf(isLeftOut(nginx))("502", () => {
  it.scopedLive("to token requests: Unavailable, after six attempts, and nothing of nginx's page in the error", () =>
    Effect.gen(function*() {
      const front = yield* Front.before(yield* Front.server, { authUrl: down })
      const error = yield* Front.refused(front, {
        _tag: "TokenRefusedError",
        reason: "Unavailable",
        status: 502,
        code: Option.none(),
        description: Option.none()
      })
      assert.isTrue(Option.isSome(error.retryAt))
      deepStrictEqual(yield* front.tokens, times(502, attempts))
      yield* Front.tell(front, "502, the token endpoint is down", error)
    }))

  it.scopedLive("to token requests, for a while: the waiting caller has a token once the server is up", () =>
    Effect.gen(function*() {
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
    }))

  it.scopedLive("to a call reaches the caller, and the call is sent once", () =>
    Effect.gen(function*() {
      const front = yield* Front.before(yield* Front.server, { apiUrl: down })
      assert.strictEqual(yield* call(front.client), 502)
      deepStrictEqual([yield* front.tokens, yield* front.calls], [[200], [502]])
      yield* Front.tell(front, "502, the API is down", "the 502")
    }))
})

describe.skipIf(isLeftOut(nginx))("504, after proxy_read_timeout 1s", () => {
  const http = "proxy_read_timeout 1s;"

  it.scopedLive("to token requests: Unavailable, after six attempts", () =>
    Effect.gen(function*() {
      const { requests, url } = yield* silent
      const front = yield* Front.before(yield* Front.server, { authUrl: url, http })
      const fields = { _tag: "TokenRefusedError", reason: "Unavailable", status: 504 } as const
      const [duration, error] = yield* Effect.timed(Front.refused(front, fields))
      assert.isTrue(Duration.lessThan(duration, Duration.seconds(30)))
      deepStrictEqual(yield* front.tokens, times(504, attempts))
      assert.strictEqual(yield* requests, attempts)
      yield* Front.tell(front, "504, the token endpoint is silent", error)
    }))

  it.scopedLive("to a call reaches the caller, and the call is sent once", () =>
    Effect.gen(function*() {
      const { requests, url } = yield* silent
      const front = yield* Front.before(yield* Front.server, { apiUrl: url, http })
      assert.strictEqual(yield* call(front.client), 504)
      deepStrictEqual([yield* front.tokens, yield* front.calls], [[200], [504]])
      assert.strictEqual(yield* requests, 1)
      yield* Front.tell(front, "504, the API is silent", "the 504")
    }))
})
