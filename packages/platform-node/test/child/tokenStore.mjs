/**
 * A process that works on the token store in a folder (argument 1), as it is told over IPC: one order, one answer. It ends
 * with the channel. The orders are those of `support/storeProcesses.ts`.
 */
import { createHash } from "node:crypto"
import { existsSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { TokenStore } from "@store-api/core/TokenStore"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Option from "effect/Option"

const [folder = ""] = process.argv.slice(2)
const own = join(folder, "store-api-v1")
const runtime = ManagedRuntime.make(FileTokenStore.layer({ folder }))

/** Long, so that half of one could be seen; its two ends say whose and which it is. */
const entryOf = (n) => `${process.pid}:${n} ${"x".repeat(32 * 1024)} ${process.pid}:${n}`

const isWhole = (entry) => {
  const [start, filler, end] = entry.split(" ")
  return start === end && filler?.length === 32 * 1024
}

const age = (path) => {
  try {
    utimesSync(path, 0, 0)
  } catch {
    // Removed by another meanwhile.
  }
}

const perform = (order) =>
  Effect.gen(function*() {
    const store = yield* TokenStore
    switch (order.name) {
      case "ready":
        return 0
      case "remove": {
        // How many of the keys this process took the entry from.
        const removed = yield* Effect.forEach(order.keys, (key) => store.remove(key, order.entry))
        return removed.filter((was) => was).length
      }
      case "lease":
        return Option.isSome(yield* store.lease(order.key, order.millis)) ? 1 : 0
      case "putForEver":
        for (let n = 0; true; n++) {
          yield* store.put(order.key, entryOf(n), "1 hour")
          const lease = yield* store.lease(order.key, 50)
          if (Option.isSome(lease)) yield* lease.value.release
        }
      case "sweepForEver":
        while (true) {
          // As if nobody had used them for long: what is in use has to stay all the same.
          for (const name of readdirSync(own)) age(join(own, name))
          yield* store.put(`sweeper ${process.pid}`, "entry", "1 hour")
        }
      case "comeAndGo": {
        // How often something was lost. Nobody else has this key; it goes on until others removed its folder so many times.
        const folderOfKey = join(own, createHash("sha256").update(order.key).digest("hex").slice(0, 32))
        let lost = 0
        for (let removed = 0; removed < order.times;) {
          const entry = entryOf(removed)
          yield* store.put(order.key, entry, "1 hour")
          if (!Option.contains(yield* store.get(order.key), entry)) lost++
          const lease = yield* store.lease(order.key, "1 hour")
          if (!(yield* store.remove(order.key, entry))) lost++
          if (Option.isNone(lease)) lost++
          else {
            if (!(yield* lease.value.extend)) lost++
            yield* lease.value.release
          }
          // Over and over again at other moments of the others' work.
          yield* Effect.sleep(removed % 5)
          if (!existsSync(folderOfKey)) removed++
        }
        return lost
      }
      case "putAndGet": {
        // How many of the looks found what nobody put.
        let broken = 0
        for (let n = 0; n < order.times; n++) {
          yield* store.put(order.key, entryOf(n), "1 hour")
          const found = yield* store.get(order.key)
          if (!Option.exists(found, isWhole)) broken++
        }
        return broken
      }
      case "workAlone": {
        // How many times somebody else was at work too. The file is there while one works.
        let together = 0
        for (let done = 0; done < order.times;) {
          const lease = yield* store.lease(order.key, "1 hour")
          if (Option.isNone(lease)) continue
          if (existsSync(order.file)) together++
          writeFileSync(order.file, "")
          yield* Effect.sleep(2)
          if (!(yield* lease.value.extend)) together++
          rmSync(order.file, { force: true })
          yield* lease.value.release
          done++
        }
        return together
      }
    }
  })

process.on("message", (order) => {
  void runtime.runPromise(Effect.catchAll(perform(order), ({ message }) => Effect.succeed(message))).then((answer) =>
    process.send?.(answer)
  )
})
process.on("disconnect", () => process.exit())
