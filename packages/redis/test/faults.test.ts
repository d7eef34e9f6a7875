import { assert, describe, it, layer } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault } from "@store-api/emulator"
import { Effect, Fiber } from "effect"
import {
  all,
  connected,
  Fleet,
  layer as fleetLayer,
  type Members,
  members,
  renewal,
  type Settings,
  share,
  shop,
  slowest,
  tokensOf,
  until,
  warningsOf
} from "./support/fleet.js"
import { proxyTo } from "./support/proxy.js"
import { isLeftOut, type RedisServer, redisServer } from "./support/redisServer.js"

const size = 5

const limit = 120_000

/** Beyond what any of this takes, and before an operation of the store is given up, unless told to be sooner. In milliseconds. */
const soon = 30_000

/** A shop whose endpoint's answers come only when the test lets them go. */
const heldShop = Effect.gen(function*() {
  const made = yield* shop()
  const { hold, letGo, port } = yield* proxyTo(Number(new URL(made.settings.authUrl).port))
  return { ...made, hold, letGo, settings: { ...made.settings, authUrl: `http://127.0.0.1:${port}` } }
})

const open = (members: Members, redis: RedisServer, settings: Settings) =>
  all(members, "open", { ...settings, redisUrl: redis.url })

/** Over a Redis that works all buy one token together; without one, a token each. Nothing hangs. */
const renews = (members: Members, asked: Effect.Effect<number>, requests: number) =>
  Effect.map(renewal(members, asked), ({ took, ...renewed }) => {
    deepStrictEqual(renewed, { requests, tokens: requests })
    assert.isBelow(took, soon)
  })

const warned = (members: Members, times: number) =>
  Effect.map(
    warningsOf(members),
    (warnings) => deepStrictEqual(warnings.map(({ length }) => length), members.map(() => times))
  )

describe.skipIf(isLeftOut)("the process that asks for the token of all", () => {
  it.scopedLive("is killed: the others wait for its lease, then one of them asks", () =>
    Effect.gen(function*() {
      const [holder, ...others] = yield* members(size)
      assert(holder !== undefined)
      const [redis, { asked, fail, settings }] = yield* Effect.all([redisServer(), shop()])
      const leases = Effect.map(redis.command("KEYS", "*:lease"), (keys) => (keys as Array<string>).length)
      yield* share([holder, ...others], redis, { ...settings, lease: "5 seconds" })
      yield* fail(Fault.hang())
      const killed = yield* Effect.fork(Effect.exit(holder.ask("get")))
      yield* until("it asks", Effect.map(asked, (count) => count === 1))
      assert.strictEqual(yield* leases, 1)
      yield* holder.signal("SIGKILL")
      const answers = yield* all(others, "get")
      assert.strictEqual((yield* Fiber.join(killed))._tag, "Failure")
      assert.lengthOf(tokensOf(answers), 1)
      assert.strictEqual(yield* asked, 2)
      assert.isBelow(slowest(answers), soon)
      assert.strictEqual(yield* leases, 0)
      yield* warned(others, 0)
    }), limit)

  it.scopedLive(
    "is slow: it keeps the lease for as long as it lives, and the others wait",
    () =>
      Effect.gen(function*() {
        const fleet = yield* members(3)
        const [redis, { asked, hold, letGo, settings }] = yield* Effect.all([redisServer(), heldShop])
        const patient = { ...settings, attemptTimeout: "1 minute", deadline: "1 minute" }
        yield* share(fleet, redis, { ...patient, lease: "8 seconds" })
        yield* hold
        const getting = yield* Effect.fork(all(fleet, "get"))
        yield* until("one asks", Effect.map(asked, (count) => count === 1))
        // Longer than the lease.
        yield* Effect.sleep("10 seconds")
        yield* letGo
        assert.lengthOf(tokensOf(yield* Fiber.join(getting)), 1)
        assert.strictEqual(yield* asked, 1)
      }),
    limit
  )
})

describe.skipIf(isLeftOut)("a Redis that goes away", () => {
  layer(fleetLayer(size), { timeout: limit, excludeTestServices: true })((it) => {
    it.scoped(
      "is not there at first: a token each, one warning each; together as soon as it is there",
      () =>
        Effect.gen(function*() {
          const members = yield* Fleet
          const [redis, { asked, settings }] = yield* Effect.all([redisServer(), shop()])
          yield* redis.stop
          assert.isBelow(slowest(yield* open(members, redis, settings)), soon)
          yield* renews(members, asked, size)
          yield* renews(members, asked, size)
          yield* warned(members, 1)
          yield* redis.start
          yield* connected(members)
          yield* renews(members, asked, 1)
          yield* warned(members, 1)
        }),
      limit
    )

    it.scoped(
      "stops while they wait for one another's token, comes back, stops again: one warning an outage",
      () =>
        Effect.gen(function*() {
          const members = yield* Fleet
          const [redis, { asked, hold, letGo, settings }] = yield* Effect.all([redisServer(), heldShop])
          yield* share(members, redis, settings)
          yield* renews(members, asked, 1)
          yield* hold
          const renewing = yield* Effect.fork(renews(members, asked, size))
          yield* until("one asks", Effect.map(asked, (count) => count === 2))
          yield* redis.stop
          yield* until("the others ask too", Effect.map(asked, (count) => count === 1 + size))
          yield* letGo
          yield* Fiber.join(renewing)
          yield* warned(members, 1)

          yield* redis.start
          yield* connected(members)
          yield* renews(members, asked, 1)
          yield* renews(members, asked, 1)
          yield* warned(members, 1)

          yield* redis.stop
          yield* renews(members, asked, size)
          yield* renews(members, asked, size)
          yield* warned(members, 2)
        }),
      limit
    )

    it.scoped(
      "holds still: each operation is given up in time, and later all is as before",
      () =>
        Effect.gen(function*() {
          const members = yield* Fleet
          const [redis, { asked, settings }] = yield* Effect.all([redisServer(), shop()])
          yield* share(members, redis, { ...settings, storeTimeout: "2 seconds" })
          yield* renews(members, asked, 1)
          yield* redis.pause
          yield* renews(members, asked, size)
          yield* renews(members, asked, size)
          yield* warned(members, 1)
          yield* redis.resume
          yield* connected(members)
          yield* renews(members, asked, 1)
          yield* warned(members, 1)
        }),
      limit
    )

    it.scoped("holds still when they start: they start without it", () =>
      Effect.gen(function*() {
        const members = yield* Fleet
        const [redis, { asked, settings }] = yield* Effect.all([redisServer(), shop()])
        yield* redis.pause
        assert.isBelow(slowest(yield* open(members, redis, settings)), soon)
        yield* renews(members, asked, size)
        yield* warned(members, 1)
        yield* redis.resume
        yield* connected(members)
        yield* renews(members, asked, 1)
      }), limit)

    it.scoped("ends their connections: they are served, and connect again", () =>
      Effect.gen(function*() {
        const members = yield* Fleet
        const [redis, { asked, settings }] = yield* Effect.all([redisServer(), shop()])
        yield* share(members, redis, settings)
        assert.strictEqual(yield* redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"), size)
        assert.isBelow((yield* renewal(members, asked)).took, soon)
        yield* connected(members)
        // Who was served alone may be content with the token of another, as long as there is one.
        yield* redis.command("FLUSHALL")
        yield* renews(members, asked, 1)
        for (const { length } of yield* warningsOf(members)) assert.isAtMost(length, 1)
      }), limit)

    it.scoped(
      "is away while the endpoint is: a typed error without a token, and none with one",
      () =>
        Effect.gen(function*() {
          const [withToken, ...without] = yield* Fleet
          assert(withToken !== undefined)
          const [redis, { asked, clearFaults, fail, settings }] = yield* Effect.all([redisServer(), shop()])
          yield* share(yield* Fleet, redis, { ...settings, deadline: "2 seconds" })
          yield* withToken.ask("get")
          yield* redis.command("FLUSHALL")
          yield* redis.stop
          yield* fail(Fault.status(503, { times: Infinity }))
          const failures = yield* Effect.forEach(without, ({ ask }) => Effect.flip(ask("get")), { concurrency: size })
          deepStrictEqual(failures.map(({ tag }) => tag), without.map(() => "TokenRefusedError"))
          assert.isBelow(Math.max(...failures.map(({ took }) => took)), soon)
          assert.strictEqual((yield* withToken.ask("call")).value, 200)
          yield* clearFaults
          yield* renews(yield* Fleet, asked, size)
        }),
      limit
    )
  })
})
