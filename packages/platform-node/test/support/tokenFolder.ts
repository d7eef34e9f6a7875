import { mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { FileTokenStore } from "@store-api/platform-node"
import { Effect } from "effect"

/** A folder that is not there yet, in one that goes with the scope. */
export const newFolder = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tokens-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "tokens")
)

/** The paths of all that is in a folder, itself included. */
export const pathsIn = (folder: string): ReadonlyArray<string> => [
  folder,
  ...readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name))
]

/** The store's own folder in the one that it is given. */
export const own = (folder: string) => join(folder, "store-api-v1")

/** A store with its folder, and the folder of its one key, `key`, once something was put there. */
export const started = Effect.gen(function*() {
  const folder = yield* newFolder
  const store = yield* storeOver(folder, (fs) => fs)
  return { folder, store, folderOfKey: () => join(own(folder), readdirSync(own(folder))[0] ?? "") }
})

export const fileIn = (folder: string, start: string) =>
  join(folder, readdirSync(folder).find((name) => name.startsWith(start)) ?? "nothing")

/** The store over a file system that is changed in some way. */
export const storeOver = (folder: string, change: (fs: FileSystem.FileSystem) => FileSystem.FileSystem) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    return yield* Effect.provideService(FileTokenStore.make({ folder }), FileSystem.FileSystem, change(fs))
  }).pipe(Effect.provide(NodeContext.layer))

/** As if nothing had changed there for two minutes. */
export const age = (...paths: ReadonlyArray<string>) => {
  const longAgo = Date.now() / 1000 - 120
  for (const path of paths) utimesSync(path, longAgo, longAgo)
}
