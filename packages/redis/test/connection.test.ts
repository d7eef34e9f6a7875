import { connect, createServer as createTcpServer } from "node:net"
import { createServer } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { RedisTokenStore } from "@store-api/redis"
import { Deferred, type Duration, Effect, Either, Fiber, Layer, Option, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import { canMakeCertificates, selfSigned } from "../../platform-node/test/support/certificates.js"
import { listen } from "../../platform-node/test/utils.js"
import { onVirtualTime, until } from "./support/fleet.js"
import { proxyTo } from "./support/proxy.js"
import { isLeftOut, redisServer } from "./support/redisServer.js"

const proxiedRedis = Effect.flatMap(redisServer(), ({ port }) => proxyTo(port))

const storeAt = (port: number) => RedisTokenStore.make({ url: Redacted.make(`redis://127.0.0.1:${port}`) })

describe.skipIf(isLeftOut)("a connection without responses", () => {
  test.live(
    "is replaced when a command is interrupted after at least a quarter of a second, and not before",
    function*() {
      const proxy = yield* proxiedRedis
      yield* onVirtualTime((virtual) =>
        Effect.gen(function*() {
          const store = yield* storeAt(proxy.port)
          const interruptAfter = (time: Duration.DurationInput) =>
            Effect.gen(function*() {
              const command = yield* Effect.fork(store.get("key"))
              yield* virtual.advance(time)
              assert.isTrue(Option.isNone(yield* Fiber.poll(command)), "no response")
              yield* Fiber.interrupt(command)
            })
          yield* store.put("key", "entry", "1 hour")
          yield* proxy.lose
          for (let time = 0; time < 10; time++) {
            yield* interruptAfter(0)
            yield* interruptAfter("249 millis")
          }
          yield* interruptAfter("250 millis")
          yield* until("the store works", Effect.isSuccess(store.get("key")))
          deepStrictEqual(yield* store.get("key"), Option.some("entry"))
          assert.strictEqual(yield* proxy.opened, 2)
        })
      )
    }
  )

  test.live("is replaced once for all interrupted commands, even right after a response", function*() {
    const proxy = yield* proxiedRedis
    yield* onVirtualTime((virtual) =>
      Effect.gen(function*() {
        const store = yield* storeAt(proxy.port)
        yield* store.put("key", "entry", "1 hour")
        yield* proxy.lose
        const commands = yield* Effect.forEach(Array(3).keys(), () => Effect.fork(store.get("key")))
        yield* virtual.advance("250 millis")
        yield* Fiber.interruptAll(commands)
        yield* until("the store works", Effect.isSuccess(store.get("key")))
        assert.strictEqual(yield* proxy.opened, 2)
      })
    )
  })

  test.live(
    "is kept if a response arrived since the command: the command was slow, and the connection works",
    function*() {
      const redis = yield* redisServer()
      const proxy = yield* proxyTo(redis.port)
      yield* onVirtualTime((virtual) =>
        Effect.gen(function*() {
          const store = yield* storeAt(proxy.port)
          yield* proxy.hold
          const earlier = yield* Effect.fork(store.put("key", "entry", "1 hour"))
          yield* until("the entry is put", Effect.map(redis.command("GET", "key"), (entry) => entry === "entry"))
          yield* redis.pause
          yield* virtual.advance(1)
          const slow = yield* Effect.fork(store.get("key"))
          yield* virtual.advance("1 second")
          yield* proxy.release
          yield* Fiber.join(earlier)
          assert.isTrue(Option.isNone(yield* Fiber.poll(slow)), "no response")
          yield* Fiber.interrupt(slow)
          yield* redis.resume
          deepStrictEqual(yield* store.get("key"), Option.some("entry"))
          assert.strictEqual(yield* proxy.opened, 1)
        })
      )
    }
  )

  test.live(
    "since its handshake is replaced by a command after ten seconds, and not before",
    function*() {
      const proxy = yield* proxiedRedis
      yield* proxy.hold
      yield* onVirtualTime((virtual) =>
        Effect.gen(function*() {
          // The ten seconds count from the creation of the client.
          yield* virtual.advance("1 hour")
          const making = yield* Effect.fork(storeAt(proxy.port))
          yield* until("the store connects", Effect.map(proxy.opened, (count) => count === 1))
          yield* virtual.advance("1 second")
          const store = yield* Fiber.join(making)
          yield* virtual.advance("9 seconds")
          assert.strictEqual((yield* Effect.flip(store.get("key"))).reason, "no connection")
          // The proxy accepts this connection after those of the store, which are then lost like the first.
          yield* Effect.acquireRelease(
            Effect.sync(() => connect(proxy.port, "127.0.0.1")),
            (socket) => Effect.sync(() => socket.destroy())
          )
          yield* until("the connection is accepted", Effect.map(proxy.opened, (count) => count >= 2))
          yield* proxy.lose
          yield* proxy.release
          yield* virtual.advance("1 millis")
          yield* until("the store works", Effect.isSuccess(store.get("key")))
          assert.strictEqual(yield* proxy.opened, 3)
        })
      )
    }
  )
})

describe.skipIf(isLeftOut)("a store whose scope is closed", () => {
  test.live("has closed its connection, even if Redis does not respond", function*() {
    const proxy = yield* proxiedRedis
    for (const fault of [Effect.void, proxy.hold]) {
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* storeAt(proxy.port)
        yield* store.put("key", "entry", "1 hour")
        assert.strictEqual(yield* proxy.living, 1)
        yield* fault
      }))
      yield* until("the connection is closed", Effect.map(proxy.living, (count) => count === 0))
    }
  })

  test.live("fails, and does not connect again", function*() {
    const proxy = yield* proxiedRedis
    yield* onVirtualTime((virtual) =>
      Effect.gen(function*() {
        const store = yield* Effect.scoped(storeAt(proxy.port))
        yield* virtual.advance("1 minute")
        assert.isTrue(Either.isLeft(yield* Effect.either(store.get("key"))))
        // The proxy accepts this connection after those of the store.
        yield* Effect.acquireRelease(
          Effect.sync(() => connect(proxy.port, "127.0.0.1")),
          (socket) => Effect.sync(() => socket.destroy())
        )
        yield* until("the connection is accepted", Effect.map(proxy.opened, (count) => count >= 2))
        assert.strictEqual(yield* proxy.opened, 2)
      })
    )
  })
})

describe.skipIf(isLeftOut)("a store that is interrupted while it connects", () => {
  test.live("leaves no connection, at any moment", function*() {
    const proxy = yield* proxiedRedis
    for (const pause of [0, 0, 1, 1, 2, 2, 3, 3, 5, 5, 8, 8, 13, 13]) {
      const making = yield* Effect.fork(Effect.scoped(storeAt(proxy.port)))
      yield* pause === 0 ? Effect.yieldNow() : Effect.sleep(pause)
      yield* Fiber.interrupt(making)
    }
    // This store connects after all those, so that their connections were opened before it works.
    const last = yield* storeAt(proxy.port)
    yield* last.get("key")
    assert.isAbove(yield* proxy.opened, 5, "several stores had connected")
    yield* until("the last connection is the only one", Effect.map(proxy.living, (count) => count === 1))
    yield* last.get("key")
  })
})

describe.skipIf(isLeftOut)("a Redis that does not respond", () => {
  test.live(
    "keeps a thousand commands waiting, and further ones fail at once with a reason",
    function*() {
      const redis = yield* redisServer()
      const store = yield* RedisTokenStore.make({ url: Redacted.make(redis.url) })
      yield* store.put("key", "entry", "1 hour")
      yield* redis.pause
      const waiting = yield* Effect.forEach(Array.from({ length: 1000 }), () => Effect.fork(store.get("key")))
      // A turn of the event loop, so that all commands have started.
      yield* Effect.sleep(1)
      const further = yield* Effect.all(Effect.replicate(Effect.either(store.get("key")), 100))
      deepStrictEqual(
        new Set(further.map(Either.match({ onLeft: ({ reason }) => reason, onRight: () => "none" }))),
        new Set(["Error"])
      )
      yield* redis.resume
      const entries = yield* Effect.forEach(waiting, Fiber.join)
      deepStrictEqual(entries, Array.from({ length: 1000 }, () => Option.some("entry")))
      deepStrictEqual(yield* store.get("key"), Option.some("entry"))
    }
  )
})

describe("a server that does not respond to a new connection", () => {
  const silent = listen(createTcpServer((socket) => socket.resume()))
  const urls = ["redis://127.0.0.1", "redis+cluster://127.0.0.1", "redis+sentinel://127.0.0.1"]
  const urlAt = (url: string, port: number) =>
    Redacted.make(`${url}:${port}${url.startsWith("redis+sentinel") ? "/name" : ""}`)

  it.scoped.each(urls)(
    "does not keep a layer from being built, even if a test controls the clock: %s",
    (url) =>
      Effect.gen(function*() {
        const { port } = yield* silent
        yield* Layer.build(RedisTokenStore.layer({ url: urlAt(url, port) }))
      })
  )

  test("does not end a build in an uninterruptible region early", function*() {
    const { opened, port } = yield* silent
    const built = yield* Deferred.make<TokenStore.Service>()
    const building = yield* RedisTokenStore.make({ url: urlAt("redis://127.0.0.1", port) }).pipe(
      Effect.flatMap((store) => Deferred.succeed(built, store)),
      Effect.uninterruptible,
      Effect.fork
    )
    yield* until("it connects", Effect.sync(() => opened() === 1))
    yield* Fiber.interrupt(building)
    assert.isTrue(yield* Deferred.isDone(built))
  })
})

describe.runIf(canMakeCertificates)("several servers that no client can use", () => {
  // The port is that of a TLS server that Node does not trust. No server listens on port 1.
  it.scopedLive.each<[url: string, reason: string]>([
    ["rediss+cluster://127.0.0.1:PORT", "DEPTH_ZERO_SELF_SIGNED_CERT"],
    ["rediss+sentinel://127.0.0.1:PORT/name", "DEPTH_ZERO_SELF_SIGNED_CERT"],
    ["redis+cluster://127.0.0.1:1", "ECONNREFUSED"],
    ["redis+sentinel://127.0.0.1:1/name", "ECONNREFUSED"]
  ])(
    "the reason of each attempt is reported, while the command is tried again: %s, %s",
    ([url, reason]) =>
      Effect.gen(function*() {
        const { port } = yield* listen(createServer(yield* selfSigned()))
        const reasons: Array<string> = []
        yield* onVirtualTime((virtual) =>
          Effect.gen(function*() {
            const store = yield* RedisTokenStore.make({ url: Redacted.make(url.replace("PORT", String(port))) })
            yield* store.get("key").pipe(
              Effect.provideService(TokenStore.FailedAttempt, (reason) => void reasons.push(reason)),
              Effect.forkScoped
            )
            const isReported = Effect.sync(() => reasons.length >= 3)
            yield* until("three attempts have failed", Effect.zipRight(virtual.advance("10 millis"), isReported))
          })
        )
        deepStrictEqual(new Set(reasons), new Set([reason]))
      })
  )
})

describe.runIf(canMakeCertificates)("a connection over TLS", () => {
  it.scopedLive.each(["rediss", "rediss+cluster", "rediss+sentinel"])(
    "by %s names the server (SNI), and not an address",
    (scheme) =>
      Effect.gen(function*() {
        const names: Array<string> = []
        const server = createServer({
          ...yield* selfSigned(),
          SNICallback: (name, done) => {
            names.push(name)
            done(null)
          }
        })
        const { opened, port } = yield* listen(server)
        const open = (host: string) =>
          Effect.scoped(RedisTokenStore.make({ url: Redacted.make(`${scheme}://${host}:${port}${path}`) }))
        const path = scheme.endsWith("sentinel") ? "/tokens" : ""
        yield* open("127.0.0.1")
        assert.isAbove(opened(), 0)
        deepStrictEqual(names, [])
        yield* open("localhost")
        deepStrictEqual(new Set(names), new Set(["localhost"]))
      })
  )
})
