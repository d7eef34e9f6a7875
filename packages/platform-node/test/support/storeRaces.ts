import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { FileTokenStore } from "@store-api/platform-node"
import { Effect, Option } from "effect"
import type { Order } from "./storeWorker.js"
import { newFolder } from "./tokenFolder.js"

export interface Worker {
  readonly ask: (order: Order) => Effect.Effect<unknown, unknown>
}

/** Uses a new store in the folder. */
export const withStore = <A, E>(folder: string, use: (store: TokenStore.Service) => Effect.Effect<A, E>) =>
  Effect.provide(Effect.flatMap(TokenStore.TokenStore, use), FileTokenStore.layer({ folder }))

/** Sends an order to all workers at once, and returns their results. */
export const askAll = (workers: ReadonlyArray<Worker>, order: Order) =>
  Effect.map(
    Effect.forEach(workers, ({ ask }) => Effect.orDie(ask(order)), { concurrency: "unbounded" }),
    (results) => results.map(Number)
  )

const limit = 60_000

export const sum = (results: ReadonlyArray<number>): number => results.reduce((sum, n) => sum + n, 0)

/** The entry of a worker that was killed is whole, and each operation works. */
export const stillWorks = (store: TokenStore.Service, isWhole: (entry: string) => boolean) =>
  Effect.gen(function*() {
    assert.isTrue(Option.exists(yield* store.get("key"), isWhole))
    yield* store.put("key", "mine", "1 hour")
    deepStrictEqual(yield* store.get("key"), Option.some("mine"))
    assert.isTrue(yield* store.remove("key", "mine"))
    const lease = Effect.filterOrFail(store.lease("key", "1 hour"), Option.isSome)
    yield* (yield* Effect.eventually(lease)).value.release
  })

/**
 * Tests of several workers on one store, which are fibers or processes. Each worker repeats its order `rounds` times.
 */
export const storeRaces = (all: Effect.Effect<ReadonlyArray<Worker>>, rounds: number) => {
  it.scopedLive("only one of several workers removes an entry", () =>
    Effect.gen(function*() {
      const [workers, folder] = [yield* all, yield* newFolder]
      const keys = Array.from({ length: rounds }, (_, n) => `key ${n}`)
      yield* withStore(folder, (store) => Effect.forEach(keys, (key) => store.put(key, "entry", "1 hour")))
      const removed = yield* askAll(workers, { folder, name: "remove", keys, entry: "entry" })
      assert.strictEqual(sum(removed), keys.length)
      deepStrictEqual(yield* askAll(workers, { folder, name: "remove", keys, entry: "entry" }), removed.map(() => 0))
    }), limit)

  it.scopedLive("while several workers put, each read returns a whole entry", () =>
    Effect.gen(function*() {
      const [workers, folder] = [yield* all, yield* newFolder]
      const broken = yield* askAll(workers, { folder, name: "putAndGet", key: "key", times: rounds })
      deepStrictEqual(broken, workers.map(() => 0))
    }), limit)

  it.scopedLive(
    "only one of several workers gets a lease, and they hold it one after the other",
    () =>
      Effect.gen(function*() {
        const [workers, folder] = [yield* all, yield* newFolder]
        const got = yield* askAll(workers, { folder, name: "lease", key: "once", millis: 60_000 })
        assert.strictEqual(sum(got), 1)
        const file = join(folder, "..", "at work")
        const together = yield* askAll(workers, { folder, name: "workAlone", key: "key", file, times: rounds / 4 })
        deepStrictEqual(together, workers.map(() => 0))
        assert.isFalse(existsSync(file))
      }),
    limit
  )
}
