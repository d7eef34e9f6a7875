/** nginx closes connections that a pool would use again: between requests, or during one. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect, Either, Option } from "effect"
import { isLeftOut } from "../src/debian/Program.js"
import * as Front from "../src/nginx/Front.js"
import { nginx } from "../src/nginx/Nginx.js"
import { oidcProvider } from "../src/oidcProvider.js"
import { report } from "../src/page.js"

const timeout = 60_000

/** Closes the connection without a response, like a network failure. */
const hangUp = (onConnection: number) => `if ($connection_requests = ${onConnection}) { return 444; }`
const hungUp = 444

interface Start extends Front.Options {
  /** The option `http.connections`: 1 if the next request must use the same connection. */
  readonly connections?: number
}

const start = ({ connections, ...options }: Start) =>
  Effect.gen(function*() {
    const front = yield* Front.before(yield* oidcProvider.start({ life: 600 }), options)
    return { front, client: yield* Front.client(front.running, { connections }) }
  })

const count = <A>(all: ReadonlyArray<A>, wanted: (one: A) => boolean) => all.filter(wanted).length

describe.skipIf(isLeftOut(nginx))("connections that nginx ends", () => {
  it.scopedLive(
    "keepalive_requests 3, under load and with tokens renewed: no call fails, none is sent again",
    () =>
      Effect.gen(function*() {
        const { client, front } = yield* start({ http: "keepalive_requests 3;" })
        const calls = 1500
        const numbers = Array.from({ length: calls }, (_, index) => index)
        const statuses = yield* Effect.forEach(
          numbers,
          (number) =>
            number % 100 === 0 ? Effect.zipRight(client.provider.refresh, Front.call(client)) : Front.call(client),
          { concurrency: 16 }
        )
        assert.strictEqual(count(statuses, (status) => status === 200), calls)
        const tokenRequests = yield* front.running.tokenRequests
        assert.isAbove(tokenRequests, 1)
        const requests = yield* front.requests
        deepStrictEqual(requests.map(({ status }) => status), Array.from({ length: calls + tokenRequests }, () => 200))
        // Connections were reused, and none more often than nginx allows.
        assert.strictEqual(Math.max(...requests.map(({ onConnection }) => onConnection)), 3)
        const connections = new Set(requests.map(({ connection }) => connection)).size
        assert.isAtLeast(connections, requests.length / 3)
        assert.isBelow(connections, requests.length / 2)
        yield* Front.tell(front, { fault: "`keepalive_requests 3`", outcome: "every call succeeds" })
        yield* report("proxies", {
          server: "nginx",
          version: String(nginx.version),
          "in front of": `${oidcProvider.name} ${oidcProvider.version}`
        })
      }),
    timeout
  )

  it.scopedLive("a connection that breaks during a token request costs one more attempt", () =>
    Effect.gen(function*() {
      const { client, front } = yield* start({ token: hangUp(2), connections: 1 })
      const first = yield* client.provider.get
      const second = yield* client.provider.refresh
      assert.notStrictEqual(second, first)
      const requests = yield* front.requests
      deepStrictEqual(requests.map(({ onConnection, status }) => [status, onConnection]), [
        [200, 1],
        [hungUp, 2],
        [200, 1]
      ])
      yield* Front.tell(front, { fault: "a pooled connection closed during a token request", outcome: "a token" })
    }), timeout)

  it.scopedLive("all of them break during token requests: Transport, after six attempts", () =>
    Effect.gen(function*() {
      const { client, front } = yield* start({ token: "return 444;" })
      const error = yield* Effect.flip(client.provider.get)
      assert(error._tag === "TokenRequestError")
      deepStrictEqual([error.reason, error.attempts], ["Transport", 6])
      assert.isTrue(Option.isSome(error.retryAt))
      Front.assertHidden(error, [front.running.credentials.clientSecret])
      deepStrictEqual(yield* front.tokens, Array.from({ length: 6 }, () => hungUp))
      yield* Front.tell(front, {
        fault: "every connection closed during a token request",
        outcome: Front.inWords(error)
      })
    }), timeout)

  it.scopedLive(
    "a connection that breaks during a call fails the call, which is not sent again; the next call succeeds",
    () =>
      Effect.gen(function*() {
        const { client, front } = yield* start({ api: hangUp(2), connections: 1 })
        const token = yield* client.provider.get
        for (const method of ["get", "post", "put", "del"] as const) {
          const before = yield* front.requests // the connection of the last of them is in the pool
          const error = yield* Effect.flip(client.api[method]("/v1/orders"))
          assert(error._tag === "RequestError")
          assert.match(error.message, /^Transport/)
          Front.assertHidden(error, [front.running.credentials.clientSecret, token.value])
          assert.strictEqual(yield* Front.call(client), 200)
          const after = (yield* front.requests).slice(before.length)
          deepStrictEqual(after.map(({ status }) => status), [hungUp, 200])
        }
        deepStrictEqual(yield* front.tokens, [200])
        yield* Front.tell(front, {
          fault: "a pooled connection closed during a call",
          outcome: "`RequestError`, Transport; the next call succeeds"
        })
      }),
    timeout
  )

  it.scopedLive(
    "some break under load: as many calls fail as nginx dropped, and each was sent once",
    () =>
      Effect.gen(function*() {
        const { client, front } = yield* start({ api: hangUp(3) })
        const calls = 600
        const outcomes = yield* Effect.replicateEffect(Effect.either(Front.call(client)), calls, { concurrency: 16 })
        const failed = outcomes.filter(Either.isLeft).map(({ left }) => left)
        assert.isNotEmpty(failed)
        assert.isTrue(failed.every(({ _tag }) => _tag === "RequestError"))
        const statuses = yield* front.calls
        assert.strictEqual(statuses.length, calls)
        assert.strictEqual(count(statuses, (status) => status === hungUp), failed.length)
        assert.strictEqual(count(statuses, (status) => status === 200), calls - failed.length)
        assert.strictEqual(yield* front.running.tokenRequests, 1)
      }),
    timeout
  )
})
