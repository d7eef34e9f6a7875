/**
 * A process that works on the token store in a folder (argument 1), as it is told over IPC: one order, one answer. It ends
 * with the channel. The orders are those of `support/storeProcesses.ts`.
 */
import { existsSync, rmSync, writeFileSync } from "node:fs"
import { TokenStore } from "@store-api/core/TokenStore"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Option from "effect/Option"

const [folder = ""] = process.argv.slice(2)
const runtime = ManagedRuntime.make(FileTokenStore.layer({ folder }))

/** Long, so that half of one could be seen; its two ends say whose and which it is. */
const entryOf = (n) => `${process.pid}:${n} ${"x".repeat(32 * 1024)} ${process.pid}:${n}`

const isWhole = (entry) => {
  const [start, filler, end] = entry.split(" ")
  return start === end && filler?.length === 32 * 1024
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
        return yield* Effect.forever(Effect.gen(function*() {
          yield* store.put(order.key, entryOf(0), "1 minute")
          const lease = yield* store.lease(order.key, 50)
          if (Option.isSome(lease)) yield* lease.value.release
        }))
      case "putAndGet": {
        // How many of the looks found what nobody put.
        let broken = 0
        for (let n = 0; n < order.times; n++) {
          yield* store.put(order.key, entryOf(n), "1 minute")
          const found = yield* store.get(order.key)
          if (!Option.exists(found, isWhole)) broken++
        }
        return broken
      }
      case "workAlone": {
        // How many times somebody else was at work too. The file is there while one works.
        let together = 0
        for (let done = 0; done < order.times;) {
          const lease = yield* store.lease(order.key, "1 minute")
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
