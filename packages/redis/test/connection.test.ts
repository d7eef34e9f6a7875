import { connect } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { RedisTokenStore } from "@store-api/redis"
import { type Duration, Effect, Either, Fiber, Option, Redacted } from "effect"
import { onVirtualTime, until } from "./support/fleet.js"
import { proxyTo } from "./support/proxy.js"
import { isLeftOut, redisServer } from "./support/redisServer.js"

const reached = Effect.flatMap(redisServer(), ({ port }) => proxyTo(port))

const storeAt = (port: number) => RedisTokenStore.make({ url: Redacted.make(`redis://127.0.0.1:${port}`) })

describe.skipIf(isLeftOut)("a connection that says nothing any more", () => {
  it.scopedLive(
    "is replaced when a command that was given up had waited for a quarter of a second, not before",
    () =>
      Effect.gen(function*() {
        const proxy = yield* reached
        yield* onVirtualTime((virtual) =>
          Effect.gen(function*() {
            const store = yield* storeAt(proxy.port)
            const givenUpAfter = (time: Duration.DurationInput) =>
              Effect.gen(function*() {
                const command = yield* Effect.fork(store.get("key"))
                yield* virtual.advance(time)
                assert.isTrue(Option.isNone(yield* Fiber.poll(command)), "no answer")
                yield* Fiber.interrupt(command)
              })
            yield* store.put("key", "entry", "1 hour")
            yield* proxy.lose
            for (let time = 0; time < 10; time++) {
              yield* givenUpAfter(0)
              yield* givenUpAfter("249 millis")
            }
            yield* givenUpAfter("250 millis")
            yield* until("it works", Effect.isSuccess(store.get("key")))
            deepStrictEqual(yield* store.get("key"), Option.some("entry"))
            assert.strictEqual(yield* proxy.opened, 2)
          })
        )
      })
  )

  it.scopedLive("is replaced once for all commands that were given up, even right after a response", () =>
    Effect.gen(function*() {
      const proxy = yield* reached
      yield* onVirtualTime((virtual) =>
        Effect.gen(function*() {
          const store = yield* storeAt(proxy.port)
          yield* store.put("key", "entry", "1 hour")
          yield* proxy.lose
          const commands = yield* Effect.forEach(Array(3).keys(), () => Effect.fork(store.get("key")))
          yield* virtual.advance("250 millis")
          yield* Fiber.interruptAll(commands)
          yield* until("it works", Effect.isSuccess(store.get("key")))
          assert.strictEqual(yield* proxy.opened, 2)
        })
      )
    }))

  it.scopedLive(
    "is kept when it answered something since: that command was slow, the connection is not dead",
    () =>
      Effect.gen(function*() {
        const redis = yield* redisServer()
        const proxy = yield* proxyTo(redis.port)
        yield* onVirtualTime((virtual) =>
          Effect.gen(function*() {
            const store = yield* storeAt(proxy.port)
            yield* proxy.hold
            const earlier = yield* Effect.fork(store.put("key", "entry", "1 hour"))
            yield* until("it is done", Effect.map(redis.command("GET", "key"), (entry) => entry === "entry"))
            yield* redis.pause
            yield* virtual.advance(1)
            const slow = yield* Effect.fork(store.get("key"))
            yield* virtual.advance("1 second")
            yield* proxy.letGo
            yield* Fiber.join(earlier)
            assert.isTrue(Option.isNone(yield* Fiber.poll(slow)), "no answer")
            yield* Fiber.interrupt(slow)
            yield* redis.resume
            deepStrictEqual(yield* store.get("key"), Option.some("entry"))
            assert.strictEqual(yield* proxy.opened, 1)
          })
        )
      })
  )

  it.scopedLive(
    "since its handshake is replaced by a command after ten seconds, not before",
    () =>
      Effect.gen(function*() {
        const proxy = yield* reached
        yield* proxy.hold
        yield* onVirtualTime((virtual) =>
          Effect.gen(function*() {
            // The ten seconds count from the making of the client, whatever the clock says then.
            yield* virtual.advance("1 hour")
            const making = yield* Effect.fork(storeAt(proxy.port))
            yield* until("it connects", Effect.map(proxy.opened, (count) => count === 1))
            yield* virtual.advance("1 second")
            const store = yield* Fiber.join(making)
            yield* virtual.advance("9 seconds")
            assert.strictEqual((yield* Effect.flip(store.get("key"))).reason, "no connection")
            // Accepted after whatever that has opened, which is as lost then as the first.
            yield* Effect.acquireRelease(
              Effect.sync(() => connect(proxy.port, "127.0.0.1")),
              (socket) => Effect.sync(() => socket.destroy())
            )
            yield* until("it is accepted", Effect.map(proxy.opened, (count) => count >= 2))
            yield* proxy.lose
            yield* proxy.letGo
            yield* virtual.advance("1 millis")
            yield* until("it works", Effect.isSuccess(store.get("key")))
            assert.strictEqual(yield* proxy.opened, 3)
          })
        )
      })
  )
})

describe.skipIf(isLeftOut)("a store whose scope has ended", () => {
  it.scopedLive("has closed its connection, also when Redis does not respond", () =>
    Effect.gen(function*() {
      const proxy = yield* reached
      for (const fault of [Effect.void, proxy.hold]) {
        yield* Effect.scoped(Effect.gen(function*() {
          const store = yield* storeAt(proxy.port)
          yield* store.put("key", "entry", "1 hour")
          assert.strictEqual(yield* proxy.living, 1)
          yield* fault
        }))
        yield* until("it is closed", Effect.map(proxy.living, (count) => count === 0))
      }
    }))

  it.scopedLive("fails, and connects no more, however long ago that was", () =>
    Effect.gen(function*() {
      const proxy = yield* reached
      yield* onVirtualTime((virtual) =>
        Effect.gen(function*() {
          const store = yield* Effect.scoped(storeAt(proxy.port))
          yield* virtual.advance("1 minute")
          assert.isTrue(Either.isLeft(yield* Effect.either(store.get("key"))))
          // Accepted after whatever the store has opened.
          yield* Effect.acquireRelease(
            Effect.sync(() => connect(proxy.port, "127.0.0.1")),
            (socket) => Effect.sync(() => socket.destroy())
          )
          yield* until("it is accepted", Effect.map(proxy.opened, (count) => count >= 2))
          assert.strictEqual(yield* proxy.opened, 2)
        })
      )
    }))
})

describe.skipIf(isLeftOut)("a store that is not wanted any more while it connects", () => {
  it.scopedLive("leaves no connection, whenever it is interrupted", () =>
    Effect.gen(function*() {
      const proxy = yield* reached
      for (const pause of [0, 0, 1, 1, 2, 2, 3, 3, 5, 5, 8, 8, 13, 13]) {
        const making = yield* Effect.fork(Effect.scoped(storeAt(proxy.port)))
        yield* pause === 0 ? Effect.yieldNow() : Effect.sleep(pause)
        yield* Fiber.interrupt(making)
      }
      // Made later than all those, so that they were made when it works.
      const last = yield* storeAt(proxy.port)
      yield* last.get("key")
      assert.isAbove(yield* proxy.opened, 5, "some had got that far")
      yield* until("it is the only one", Effect.map(proxy.living, (count) => count === 1))
      yield* last.get("key")
    }))
})

describe.skipIf(isLeftOut)("a Redis that holds still", () => {
  it.scopedLive(
    "keeps a thousand commands waiting; those after them fail at once, for a reason",
    () =>
      Effect.gen(function*() {
        const redis = yield* redisServer()
        const store = yield* RedisTokenStore.make({ url: Redacted.make(redis.url) })
        yield* store.put("key", "entry", "1 hour")
        yield* redis.pause
        const waiting = yield* Effect.forEach(Array.from({ length: 1000 }), () => Effect.fork(store.get("key")))
        // A turn of the event loop, so that all were begun.
        yield* Effect.sleep(1)
        const further = yield* Effect.all(Effect.replicate(Effect.either(store.get("key")), 100))
        deepStrictEqual(
          new Set(further.map(Either.match({ onLeft: ({ reason }) => reason, onRight: () => "none" }))),
          new Set(["Error"])
        )
        yield* redis.resume
        const answers = yield* Fiber.join(Fiber.all(waiting))
        deepStrictEqual(answers, Array.from({ length: 1000 }, () => Option.some("entry")))
        deepStrictEqual(yield* store.get("key"), Option.some("entry"))
      })
  )
})
