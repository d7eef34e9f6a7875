import { subscribe, unsubscribe } from "node:diagnostics_channel"
import * as Http from "node:http"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { Duration, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { test } from "../../core/test/support/test.js"
import {
  at,
  byName,
  call,
  collectGarbage,
  get,
  hanging,
  listen,
  onThisMachine,
  silent,
  startProxy,
  startStore,
  until
} from "./utils.js"

onThisMachine()

/** A proxy that responds to a tunnel request with this text and opens no tunnel. */
const startProxyWithoutTunnel = (response: string) =>
  Effect.suspend(() =>
    listen(
      Http.createServer().on("connect", (_request, socket) => {
        socket.write(response)
        socket.resume().on("end", () => socket.end())
      })
    )
  )

describe("closing the scope", () => {
  test.live("closes idle connections", function*() {
    const server = yield* startStore
    yield* Effect.gen(function*() {
      yield* call()
      assert.isAtLeast(server.open(), 1)
    }).pipe(Effect.provide(NodeStoreAuth.layer(at(server.url))))
    yield* until(() => server.open() === 0)
  })

  test.live("closes idle connections through a proxy and without it", function*() {
    const [server, proxy] = [yield* startStore, yield* startProxy()]
    yield* Effect.gen(function*() {
      yield* get(byName(server))
      yield* get(server.url)
      deepStrictEqual([server.open(), proxy.open()], [2, 1])
    }).pipe(Effect.provide(NodeHttp.layer({ proxy: new URL(proxy.url) })))
    yield* until(() => server.open() === 0 && proxy.open() === 0)
  })

  test.live("ends requests that hang or wait for a connection at once, without a retry", function*() {
    const server = yield* hanging
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(NodeHttp.layer({ connections: 1 }), scope)
    const both = Effect.all([Effect.flip(get(server.url)), Effect.flip(get(server.url))], { concurrency: 2 })
    const waiting = yield* Effect.fork(Effect.provide(both, context))
    yield* until(() => server.open() === 1)
    const [duration] = yield* Effect.timed(Scope.close(scope, Exit.void))
    assert.isBelow(Duration.toMillis(duration), 4000)
    deepStrictEqual((yield* Fiber.join(waiting)).map(({ _tag }) => _tag), ["RequestError", "RequestError"])
    yield* until(() => server.open() === 0)
    assert.strictEqual(server.opened(), 1)
  })

  const cases = [
    ["a handshake", silent, undefined],
    ["a handshake behind a tunnel", silent, startProxyWithoutTunnel("HTTP/1.1 200 OK\r\n\r\n")],
    ["a handshake with a proxy", hanging, silent],
    ["a tunnel", hanging, startProxyWithoutTunnel("")]
  ] as const
  for (const [what, target, through] of cases) {
    test.live(`ends ${what} that hangs`, function*() {
      const server = yield* target
      const proxy = through === undefined ? undefined : yield* through
      const seen = proxy ?? server
      const live = NodeHttp.layer({ proxy: proxy === undefined ? "none" : new URL(proxy.url) })
      yield* Effect.gen(function*() {
        const request = yield* Effect.fork(get(byName(server)))
        yield* until(() => seen.open() === 1)
        // The step is in progress by then.
        yield* Effect.sleep("300 millis")
        yield* Fiber.interrupt(request)
        assert.strictEqual(seen.open(), 1)
      }).pipe(Effect.provide(live))
      yield* until(() => server.open() === 0 && seen.open() === 0)
    })
  }
})

describe("a layer", () => {
  test.live("does not keep closed sockets in memory", function*() {
    const sockets: Array<WeakRef<object>> = []
    const onSocket = (message: unknown) => void sockets.push(new WeakRef((message as { socket: object }).socket))
    yield* Effect.acquireRelease(
      Effect.sync(() => subscribe("net.client.socket", onSocket)),
      () => Effect.sync(() => unsubscribe("net.client.socket", onSocket))
    )
    const server = yield* listen(
      Http.createServer((_request, response) => response.setHeader("Connection", "close").end())
    )
    const count = 20
    yield* Effect.gen(function*() {
      yield* Effect.repeatN(get(server.url), count - 1)
      yield* until(() => server.open() === 0)
      assert.lengthOf(sockets, count)
      yield* until(() => {
        collectGarbage()
        return sockets.filter((socket) => socket.deref() !== undefined).length < count / 2
      })
    }).pipe(Effect.provide(NodeHttp.layer()))
  })
})
