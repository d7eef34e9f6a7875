import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect, Fiber, Option } from "effect"
import { bundle } from "./support/bundle.js"
import { start } from "./support/childProcess.js"
import { shared } from "./support/shared.js"
import { askAll, stillWorks, storeRaces, sum, withStore } from "./support/storeRaces.js"
import { isWhole } from "./support/storeWorker.js"
import { newFolder } from "./support/tokenFolder.js"

const limit = 60_000

describe("FileTokenStore between processes", () => {
  const program = shared(bundle(new URL("./child/storeWorker.ts", import.meta.url)))
  const startMany = (count: number) =>
    Effect.flatMap(program, (file) => Effect.all(Effect.replicate(start(file), count)))
  const workers = shared(startMany(5))

  storeRaces(workers, 40)

  it.scopedLive(
    "a lease whose holder was killed ends when it expires, and not before; then one or two processes get it",
    () =>
      Effect.gen(function*() {
        const folder = yield* newFolder
        const [holder, ...others] = yield* startMany(4)
        assert(holder !== undefined)
        const [brief, long] = [1500, 3_600_000]
        const taking = (key: string, millis: number) => ({ folder, name: "lease", key, millis }) as const
        assert.strictEqual(yield* holder.ask(taking("long", long)), 1)
        const taken = Date.now()
        assert.strictEqual(yield* holder.ask(taking("brief", brief)), 1)
        yield* holder.kill
        let got = 0
        while (got === 0) got = sum(yield* askAll(others, taking("brief", long)))
        assert.isAtLeast(Date.now() - taken, brief)
        assert.isAtMost(got, 2)
        // A lease ends when it expires, not when its holder is killed.
        assert.strictEqual(sum(yield* askAll(others, taking("long", long))), 0)
      }),
    limit
  )

  it.scopedLive(
    "no process loses an entry or a lease while other processes remove expired files",
    () =>
      Effect.gen(function*() {
        const folder = yield* newFolder
        const [remover, another, ...users] = yield* workers
        assert(remover !== undefined && another !== undefined)
        yield* withStore(folder, (store) => store.put("key", "entry", "1 hour"))
        const end = join(folder, "..", "end")
        const removing = yield* Effect.fork(askAll([remover, another], { folder, name: "removeExpired", until: end }))
        const lost = yield* Effect.forEach(
          users,
          ({ ask }, n) => ask({ folder, name: "comeAndGo", key: `key of ${n}`, times: 100 }),
          { concurrency: "unbounded" }
        )
        deepStrictEqual(lost, users.map(() => 0))
        const file = join(folder, "..", "at work")
        const order = { folder, name: "workAlone", key: "of all", file, times: 10 } as const
        deepStrictEqual(yield* askAll(users, order), users.map(() => 0))
        // This entry is as old as the others, and valid until the end.
        deepStrictEqual(yield* withStore(folder, (store) => store.get("key")), Option.some("entry"))
        writeFileSync(end, "")
        for (const times of yield* Fiber.join(removing)) assert.isAbove(times, 0)
      }),
    limit
  )

  it.scopedLive("the store still works after processes are killed at any time", () =>
    Effect.gen(function*() {
      const folder = yield* newFolder
      // Counts entries instead of time, because machines differ in speed.
      for (const entries of [1, 6, 20]) {
        const all = yield* startMany(2)
        yield* Effect.fork(Effect.sandbox(askAll(all, { folder, name: "putForEver", key: "key" })))
        const seen = new Set<string>()
        yield* withStore(folder, (store) =>
          Effect.whileLoop({
            while: () => seen.size < entries,
            body: () => store.get("key"),
            step: Option.map((entry) => seen.add(entry))
          }))
        yield* Effect.forEach(all, ({ kill }) => kill)
        yield* withStore(folder, (store) => stillWorks(store, isWhole))
      }
    }), limit)
})
