import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { FileTokenStore } from "@store-api/platform-node"
import { Effect, Option } from "effect"
import { askAll, build, startMany } from "./support/storeProcesses.js"
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
      yield* withStore(folder, (store) => Effect.forEach(keys, (key) => store.put(key, "entry", "1 minute")))
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
        const millis = 1500
        const taken = Date.now()
        assert.strictEqual(yield* holder.ask({ name: "lease", key: "key", millis }), 1)
        yield* holder.kill
        let rounds = 0
        let got: ReadonlyArray<number> = []
        do {
          rounds++
          got = (yield* askAll(others, { name: "lease", key: "key", millis: 60_000 })).map(Number)
        } while (got.every((n) => n === 0))
        assert.isAtLeast(Date.now() - taken, millis)
        assert.isAbove(rounds, 1)
        assert.strictEqual(got.reduce((sum, n) => sum + n), 1)
      }),
    processTimeout
  )

  it.scopedLive("whenever a process is killed, the store goes on", () =>
    Effect.gen(function*() {
      const folder = yield* newFolder
      for (const pause of [0, 3, 7, 20]) {
        const all = yield* startMany(folder, 3)
        yield* Effect.forEach(all, ({ tell }) => tell({ name: "putForEver", key: "key" }))
        yield* Effect.sleep(100 + pause)
        yield* Effect.forEach(all, ({ kill }) => kill)
        yield* withStore(folder, (store) =>
          Effect.gen(function*() {
            const left = yield* store.get("key")
            assert.isTrue(Option.exists(left, (entry) => entry.split(" ")[1]?.length === 32 * 1024))
            yield* store.put("key", "mine", "1 minute")
            deepStrictEqual(yield* store.get("key"), Option.some("mine"))
            assert.isTrue(yield* store.remove("key", "mine"))
            const lease = Effect.filterOrFail(store.lease("key", "1 minute"), Option.isSome)
            yield* (yield* Effect.eventually(lease)).value.release
          }))
      }
    }), processTimeout)
})
