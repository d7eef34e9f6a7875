/** What nobody needs any more: entries that are over, the folders of keys that are, what crashed processes left. */
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as slots from "./slots.js"

/**
 * After that long without a change, nobody is still at work on it. A process that stood still for longer between two steps of a
 * `put` makes its folder or its file anew; only if it stood between the last two does it name a file that is gone, a miss.
 */
const leftoverMillis = 60_000

/** Sweeps the folder in which the folders of the keys are. What cannot be looked at or removed keeps nothing else from it. */
export const make = (root: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const { clear, close, glance, mend, removeOurs } = yield* slots.make

    const isOld = (file: string) =>
      Effect.zipWith(fs.stat(file), Clock.currentTimeMillis, ({ mtime }, now) =>
        Option.exists(mtime, (at) =>
          at.getTime() < now - leftoverMillis))

    const ifOld = <E>(file: string, remove: Effect.Effect<void, E>) =>
      Effect.whenEffect(remove, isOld(file))

    const sweepKey = (folder: string) =>
      Effect.gen(function*() {
        const seen = yield* glance(folder)
        switch (seen._tag) {
          case "Missing":
            return
          case "Closed":
            return yield* clear(folder, seen.names)
          case "Unclear":
            // Not changed since long before the look: nothing moved under it, so it is damaged.
            return seen.names.every(slots.isOurs) ? yield* ifOld(folder, mend(folder, seen.names)) : undefined
          case "Open": {
            const { entry, lease } = seen.state
            const now = yield* Clock.currentTimeMillis
            const isOver = !slots.counts(entry, now) && !slots.counts(lease, now)
            // Where somebody put something else, that stays where it is, and so does the folder.
            if (isOver && seen.others.every(slots.isSealed)) {
              yield* ifOld(folder, close(folder, seen.state))
            }
            const named = slots.counts(entry, now) ? slots.sealed + entry.id : ""
            const leftovers = seen.others.filter((other) => slots.isSealed(other) && other !== named)
            yield* Effect.forEach(leftovers, (other) => {
              const file = path.join(folder, other)
              return Effect.ignore(ifOld(file, fs.remove(file, { force: true })))
            }, { discard: true })
          }
        }
      })

    const sweepOne = (name: string): Effect.Effect<unknown, PlatformError> => {
      const folder = path.join(root, name)
      if (slots.isAside(name)) return ifOld(folder, removeOurs(folder))
      return isFolderOfKey(name) ? sweepKey(folder) : Effect.void
    }

    return Effect.flatMap(
      Effect.orElseSucceed(fs.readDirectory(root), () => []),
      (names) => Effect.forEach(names, (name) => Effect.ignore(sweepOne(name)), { discard: true })
    )
  })

const isFolderOfKey = (name: string): boolean => /^[0-9a-f]{32}$/.test(name)
