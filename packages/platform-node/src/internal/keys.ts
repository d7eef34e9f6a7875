/** The folders of the keys: found, made when there is none, and never used where others could open them. */
import { createHash } from "node:crypto"
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type NotPrivate, notPrivate } from "./privateFolder.js"
import * as slots from "./slots.js"

/** Over the folder that was given, and the store's own in it. */
export const make = (given: string, root: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const { clear, create, look, mend } = yield* slots.make

    const folderOf = (key: string) => path.join(root, createHash("sha256").update(key).digest("hex").slice(0, 32))

    /** False while there is no such folder. */
    const isPrivate = (folder: string): Effect.Effect<boolean, PlatformError | NotPrivate> =>
      Effect.flatMap(
        slots.unlessMissing(fs.stat(folder)),
        Option.match({
          onNone: () => Effect.succeed(false),
          onSome: (info) => Option.match(notPrivate(info), { onNone: () => Effect.succeed(true), onSome: Effect.fail })
        })
      )

    const isOurs = Effect.zipWith(isPrivate(given), isPrivate(root), (given, root) => given && root)

    /** The state of a key; none is a miss. Whoever only looks changes nothing, also where something is wrong. */
    const find = (folder: string): Effect.Effect<Option.Option<slots.State>, PlatformError | NotPrivate> =>
      Effect.if(isOurs, {
        onTrue: () =>
          Effect.map(look(folder), (seen) => seen._tag === "Open" ? Option.some(seen.state) : Option.none()),
        onFalse: () => Effect.succeedNone
      })

    const findOrCreate = (folder: string): Effect.Effect<slots.State, PlatformError | NotPrivate> =>
      Effect.gen(function*() {
        while (true) {
          if (yield* isOurs) {
            const seen = yield* look(folder)
            if (seen._tag === "Open") return seen.state
            if (seen._tag === "Closed") yield* clear(folder, seen.names)
            if (seen._tag === "Unclear") {
              if (seen.damaged) yield* mend(folder, seen.names)
              continue
            }
          }
          yield* fs.makeDirectory(root, { recursive: true, mode: 0o700 })
          yield* create(folder)
        }
      })

    return { find, findOrCreate, folderOf }
  })
