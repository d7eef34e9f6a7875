/** The server behind nginx is down, or silent. */
import * as Net from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Duration, Effect, Fiber, Option, type Scope } from "effect"
import { eventually, isLeftOut } from "../src/debian/Program.js"
import { serve } from "../src/loopback.js"
import * as Front from "../src/nginx/Front.js"
import { nginx } from "../src/nginx/Nginx.js"
import { oidcProvider } from "../src/oidcProvider.js"

const timeout = 60_000

/** The attempts of one acquisition: the first and five more. */
const attempts = 6

const start = oidcProvider.start({ life: 600 })

/** No program listens on this port: the system never assigns it, and its service is obsolete. */
const down = "http://127.0.0.1:1"

/** Accepts requests and never responds; counts them. */
const silent: Effect.Effect<{ readonly url: string; readonly requests: () => number }, never, Scope.Scope> = Effect.gen(
  function*() {
    let requests = 0
    const url = yield* serve(() =>
      Effect.succeed(() => {
        requests++
      })
    )
    return { url, requests: () => requests }
  }
)

/** A proxy that closes each connection until it is repaired. */
const brokenWay = (
  to: string
): Effect.Effect<{ readonly url: string; readonly mend: Effect.Effect<void> }, never, Scope.Scope> =>
  Effect.gen(function*() {
    let mended = false
    const sockets = new Set<Net.Socket>()
    const server = Net.createServer((socket) => {
      const { hostname, port } = new URL(to)
      if (!mended) {
        socket.destroy()
        return
      }
      const onward = Net.connect(Number(port), hostname)
      for (const each of [socket, onward]) sockets.add(each.on("error", () => undefined))
      socket.pipe(onward).pipe(socket)
    })
    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.async<void>((resume) => {
          server.close(() => resume(Effect.void))
          for (const socket of sockets) socket.destroy()
        })
    )
    const { port } = server.address() as Net.AddressInfo // it listens on a port, not on a path
    return { url: `http://127.0.0.1:${port}`, mend: Effect.sync(() => void (mended = true)) }
  })

describe.skipIf(isLeftOut(nginx))("502", () => {
  it.scopedLive(
    "to token requests: Unavailable, after six attempts, and nothing of nginx's page in the error",
    () =>
      Effect.gen(function*() {
        const front = yield* Front.before({ ...yield* start, authUrl: down }, {})
        const { provider } = yield* Front.client(front.running)
        const error = yield* Effect.flip(provider.get)
        assert(error._tag === "TokenRefusedError")
        deepStrictEqual([error.reason, error.status], ["Unavailable", 502])
        deepStrictEqual([error.code, error.description], [Option.none(), Option.none()])
        assert.isTrue(Option.isSome(error.retryAt))
        Front.assertHidden(error, [front.running.credentials.clientSecret])
        deepStrictEqual(yield* front.tokens, Array.from({ length: attempts }, () => 502))
        yield* Front.tell(front, { fault: "502, the token endpoint is down", outcome: Front.inWords(error) })
      }),
    timeout
  )

  it.scopedLive(
    "to token requests, for a while: the waiting caller has a token once the server is up",
    () =>
      Effect.gen(function*() {
        const running = yield* start
        const { mend, url } = yield* brokenWay(running.authUrl)
        const front = yield* Front.before({ ...running, authUrl: url }, {})
        const client = yield* Front.client(front.running)
        const waiting = yield* Effect.fork(client.provider.get)
        yield* eventually(front.tokens, ({ length }) => length >= 2)
        yield* mend
        yield* Fiber.join(waiting)
        const statuses = yield* front.tokens
        assert.isAtLeast(statuses.length, 3)
        deepStrictEqual(statuses, [...Array.from({ length: statuses.length - 1 }, () => 502), 200])
        assert.strictEqual(yield* Front.call(client), 200)
        yield* Front.tell(front, { fault: "502, the token endpoint is down for a while", outcome: "a token" })
      }),
    timeout
  )

  it.scopedLive("to a call reaches the caller, and the call is sent once", () =>
    Effect.gen(function*() {
      const front = yield* Front.before({ ...yield* start, apiUrl: down }, {})
      assert.strictEqual(yield* Front.call(yield* Front.client(front.running)), 502)
      deepStrictEqual([yield* front.tokens, yield* front.calls], [[200], [502]])
      yield* Front.tell(front, { fault: "502, the API is down", outcome: "the 502" })
    }), timeout)
})

describe.skipIf(isLeftOut(nginx))("504, after proxy_read_timeout 1s", () => {
  const http = "proxy_read_timeout 1s;"

  it.scopedLive("to token requests: Unavailable, after six attempts", () =>
    Effect.gen(function*() {
      const { requests, url } = yield* silent
      const front = yield* Front.before({ ...yield* start, authUrl: url }, { http })
      const { provider } = yield* Front.client(front.running)
      const [duration, error] = yield* Effect.timed(Effect.flip(provider.get))
      assert(error._tag === "TokenRefusedError")
      deepStrictEqual([error.reason, error.status], ["Unavailable", 504])
      Front.assertHidden(error, [front.running.credentials.clientSecret])
      assert.isTrue(Duration.lessThan(duration, Duration.seconds(30)))
      deepStrictEqual(yield* front.tokens, Array.from({ length: attempts }, () => 504))
      assert.strictEqual(requests(), attempts)
      yield* Front.tell(front, { fault: "504, the token endpoint is silent", outcome: Front.inWords(error) })
    }), timeout)

  it.scopedLive("to a call reaches the caller, and the call is sent once", () =>
    Effect.gen(function*() {
      const { requests, url } = yield* silent
      const front = yield* Front.before({ ...yield* start, apiUrl: url }, { http })
      assert.strictEqual(yield* Front.call(yield* Front.client(front.running)), 504)
      deepStrictEqual([yield* front.tokens, yield* front.calls], [[200], [504]])
      assert.strictEqual(requests(), 1)
      yield* Front.tell(front, { fault: "504, the API is silent", outcome: "the 504" })
    }), timeout)
})
