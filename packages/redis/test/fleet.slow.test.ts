import { assert, describe, it } from "@effect/vitest"
import { Fault } from "@store-api/emulator"
import { Effect, Fiber } from "effect"
import { share, shop, tokens, until, warningsOf } from "./support/fleet.js"
import { fleetTests, realTime } from "./support/fleetTests.js"
import { fleetOfProcesses, open, processes } from "./support/processes.js"
import { isLeftOut, redisServer } from "./support/redisServer.js"

fleetTests({ name: "16 processes", size: 16, fleet: fleetOfProcesses(16), pace: realTime(1000), life: 8000 })

describe.skipIf(isLeftOut)("the process that asks for the token of all", () => {
  it.scopedLive(
    "is killed: the others wait for the end of its lease, then one of them asks",
    () =>
      Effect.gen(function*() {
        const [holder, ...others] = yield* processes(5)
        assert(holder !== undefined)
        const [redis, { asked, fail, settings }] = yield* Effect.all([redisServer(), shop()])
        const leases = Effect.map(redis.command("KEYS", "*:lease"), (keys) => (keys as Array<string>).length)
        const start = (all: typeof others) => (_: number, settings: Parameters<typeof open>[1]) =>
          Effect.forEach(all, (process) => open(process, settings), { concurrency: "unbounded" })
        const [doomed] = yield* share(start([holder]), 1, redis, { ...settings, lease: "5 seconds" })
        const members = yield* share(start(others), 4, redis, { ...settings, lease: "5 seconds" })
        assert(doomed !== undefined)
        yield* fail(Fault.hang())
        const killed = yield* Effect.fork(Effect.exit(doomed.get))
        yield* until("it asks", Effect.map(asked, (count) => count === 1))
        assert.strictEqual(yield* leases, 1)
        yield* holder.kill
        assert.strictEqual(yield* tokens(members), 1)
        assert.strictEqual((yield* Fiber.join(killed))._tag, "Failure")
        assert.strictEqual(yield* asked, 2)
        assert.strictEqual(yield* leases, 0)
        for (const warnings of yield* warningsOf(members)) assert.isEmpty(warnings)
      }),
    120_000
  )
})
