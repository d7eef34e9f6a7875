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

/** The store of this fiber, in the same folder. */
export const withStore = <A, E>(folder: string, use: (store: TokenStore.Service) => Effect.Effect<A, E>) =>
  Effect.provide(Effect.flatMap(TokenStore.TokenStore, use), FileTokenStore.layer({ folder }))

/** The results of the same order, given to all at once. */
export const askAll = (workers: ReadonlyArray<Worker>, order: Order) =>
  Effect.map(
    Effect.forEach(workers, ({ ask }) => Effect.orDie(ask(order)), { concurrency: "unbounded" }),
    (results) => results.map(Number)
  )

const limit = 60_000

export const sum = (results: ReadonlyArray<number>): number => results.reduce((sum, n) => sum + n, 0)

/** What a worker that died left is whole, and each operation works. */
export const goesOn = (store: TokenStore.Service, isWhole: (entry: string) => boolean) =>
  Effect.gen(function*() {
    assert.isTrue(Option.exists(yield* store.get("key"), isWhole))
    yield* store.put("key", "mine", "1 hour")
    deepStrictEqual(yield* store.get("key"), Option.some("mine"))
    assert.isTrue(yield* store.remove("key", "mine"))
    const lease = Effect.filterOrFail(store.lease("key", "1 hour"), Option.isSome)
    yield* (yield* Effect.eventually(lease)).value.release
  })

/** What holds whenever several workers use a store, whatever they are. `rounds` is how often each of them works. */
export const storeRaces = (all: Effect.Effect<ReadonlyArray<Worker>>, rounds: number) => {
  it.scopedLive("of many that remove an entry, one does", () =>
    Effect.gen(function*() {
      const [workers, folder] = [yield* all, yield* newFolder]
      const keys = Array.from({ length: rounds }, (_, n) => `key ${n}`)
      yield* withStore(folder, (store) => Effect.forEach(keys, (key) => store.put(key, "entry", "1 hour")))
      const removed = yield* askAll(workers, { folder, name: "remove", keys, entry: "entry" })
      assert.strictEqual(sum(removed), keys.length)
      deepStrictEqual(yield* askAll(workers, { folder, name: "remove", keys, entry: "entry" }), removed.map(() => 0))
    }), limit)

  it.scopedLive("while many put, each look finds a whole entry", () =>
    Effect.gen(function*() {
      const [workers, folder] = [yield* all, yield* newFolder]
      const broken = yield* askAll(workers, { folder, name: "putAndGet", key: "key", times: rounds })
      deepStrictEqual(broken, workers.map(() => 0))
    }), limit)

  it.scopedLive(
    "of many that want a lease at once, one gets it; they work one after the other",
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
