import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { FileTokenStore } from "@store-api/platform-node"
import { Effect, Option } from "effect"
import { type Answer, askAll, build, startMany } from "./support/storeProcesses.js"
import { newFolder } from "./support/tokenFolder.js"
import { processTimeout } from "./utils.js"

const processes = 8

/** The store in this process, on the same folder. */
const withStore = <A, E>(folder: string, use: (store: TokenStore.Service) => Effect.Effect<A, E>) =>
  Effect.provide(Effect.flatMap(TokenStore.TokenStore, use), FileTokenStore.layer({ folder }))

beforeAll(build, 120_000)

describe("FileTokenStore between processes", () => {
  it.scopedLive("of many that remove an entry, one does", () =>
    Effect.gen(function*() {
      const folder = yield* newFolder
      const all = yield* startMany(folder, processes)
      const keys = Array.from({ length: 25 }, (_, n) => `key ${n}`)
      yield* withStore(folder, (store) => Effect.forEach(keys, (key) => store.put(key, "entry", "1 hour")))
      const removed = yield* askAll(all, { name: "remove", keys, entry: "entry" })
      assert.strictEqual(removed.map(Number).reduce((sum, n) => sum + n), keys.length)
      deepStrictEqual(yield* askAll(all, { name: "remove", keys, entry: "entry" }), removed.map(() => 0))
    }), processTimeout)

  it.scopedLive("while many put, each look finds a whole entry", () =>
    Effect.gen(function*() {
      const folder = yield* newFolder
      const all = yield* startMany(folder, processes)
      const broken = yield* askAll(all, { name: "putAndGet", key: "key", times: 40 })
      deepStrictEqual(broken, broken.map(() => 0))
    }), processTimeout)

  it.scopedLive(
    "of many that want a lease at once, one gets it; they work one after the other",
    () =>
      Effect.gen(function*() {
        const folder = yield* newFolder
        const all = yield* startMany(folder, processes)
        const got = yield* askAll(all, { name: "lease", key: "once", millis: 60_000 })
        assert.strictEqual(got.map(Number).reduce((sum, n) => sum + n), 1)
        const file = join(folder, "..", "at work")
        const together = yield* askAll(all, { name: "workAlone", key: "key", file, times: 10 })
        deepStrictEqual(together, together.map(() => 0))
        assert.isFalse(existsSync(file))
      }),
    processTimeout
  )

  it.scopedLive(
    "a lease whose holder was killed ends by itself, and not before; one gets it then",
    () =>
      Effect.gen(function*() {
        const folder = yield* newFolder
        const [holder, ...others] = yield* startMany(folder, 5)
        assert.isDefined(holder)
        const [brief, long] = [1500, 3_600_000]
        const sum = (answers: ReadonlyArray<Answer>) => answers.map(Number).reduce((sum, n) => sum + n, 0)
        assert.strictEqual(yield* holder.ask({ name: "lease", key: "long", millis: long }), 1)
        const taken = Date.now()
        assert.strictEqual(yield* holder.ask({ name: "lease", key: "brief", millis: brief }), 1)
        yield* holder.kill
        let got = 0
        while (got === 0) got = sum(yield* askAll(others, { name: "lease", key: "brief", millis: long }))
        assert.isAtLeast(Date.now() - taken, brief)
        assert.strictEqual(got, 1)
        // Of the same holder, as long dead: it is the end of its time that ends it, not that of the holder.
        assert.strictEqual(sum(yield* askAll(others, { name: "lease", key: "long", millis: long })), 0)
      }),
    processTimeout
  )

  it.scopedLive(
    "while others remove the folders of the keys, nobody loses an entry or a lease",
    () =>
      Effect.gen(function*() {
        const folder = yield* newFolder
        const [sweeper, another, ...users] = yield* startMany(folder, 5)
        yield* withStore(folder, (store) => store.put("key", "entry", "1 hour"))
        for (const process of [sweeper, another]) yield* process?.tell({ name: "sweepForEver" }) ?? Effect.void
        const lost = yield* Effect.forEach(
          users,
          ({ ask }, n) => ask({ name: "comeAndGo", key: `key of ${n}`, times: 12 }),
          { concurrency: "unbounded" }
        )
        deepStrictEqual(lost, users.map(() => 0))
        const file = join(folder, "..", "at work")
        const together = yield* askAll(users, { name: "workAlone", key: "of all", file, times: 10 })
        deepStrictEqual(together, users.map(() => 0))
        // As old as the others, and in use to the last.
        deepStrictEqual(yield* withStore(folder, (store) => store.get("key")), Option.some("entry"))
      }),
    processTimeout
  )

  it.scopedLive("whenever a process is killed, the store goes on", () =>
    Effect.gen(function*() {
      const folder = yield* newFolder
      // Not a time, which is long on one machine and short on another: so many entries were seen.
      for (const entries of [1, 4, 9, 20]) {
        const all = yield* startMany(folder, 3)
        yield* Effect.forEach(all, ({ tell }) => tell({ name: "putForEver", key: "key" }))
        const seen = new Set<string>()
        yield* withStore(folder, (store) =>
          Effect.whileLoop({
            while: () => seen.size < entries,
            body: () => store.get("key"),
            step: Option.map((entry) => seen.add(entry))
          }))
        yield* Effect.forEach(all, ({ kill }) => kill)
        yield* withStore(folder, (store) =>
          Effect.gen(function*() {
            const left = yield* store.get("key")
            assert.isTrue(Option.exists(left, (entry) => entry.split(" ")[1]?.length === 32 * 1024))
            yield* store.put("key", "mine", "1 hour")
            deepStrictEqual(yield* store.get("key"), Option.some("mine"))
            assert.isTrue(yield* store.remove("key", "mine"))
            const lease = Effect.filterOrFail(store.lease("key", "1 hour"), Option.isSome)
            yield* (yield* Effect.eventually(lease)).value.release
          }))
      }
    }), processTimeout)
})
