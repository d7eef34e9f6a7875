import { readdirSync, utimesSync } from "node:fs"
import { join } from "node:path"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { TokenStore } from "@store-api/core"
import { FileTokenStore } from "@store-api/platform-node"
import { entryOf } from "@store-api/testing/entryOf"
import { newFolder as temporaryFolder } from "@store-api/testing/loopback"
import { Effect, Option } from "effect"

/** The path of a folder that does not exist yet. Its parent is deleted when the scope closes. */
export const newFolder = Effect.map(
  temporaryFolder("tokens"),
  (folder) => join(folder, "tokens")
)

/** The paths of a folder and of all its content. */
export const pathsIn = (folder: string): ReadonlyArray<string> => [
  folder,
  ...readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) =>
    join(folder, name)
  )
]

/** The folder that the store creates in the given one. */
export const own = (folder: string) => join(folder, "store-api-v1")

/** A store with its folder, the names of its files, and the path of the file of its only key, `key`. */
export const started = Effect.gen(function*() {
  const folder = yield* newFolder
  const store = yield* storeOver(folder, (fs) => fs)
  const files = () => readdirSync(own(folder)).sort()
  const fileOf = (kind: "entry" | "lease") =>
    join(own(folder), files().find((name) => name.endsWith(`.${kind}`)) ?? "nothing")
  return { folder, store, files, fileOf }
})

/** A store with a modified file system. */
export const storeOver = (
  folder: string,
  change: (fs: FileSystem.FileSystem) => FileSystem.FileSystem
) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    return yield* Effect.provideService(
      FileTokenStore.make({ folder }),
      FileSystem.FileSystem,
      change(fs)
    )
  }).pipe(Effect.provide(NodeContext.layer))

/** Sets the modification time of files to this many seconds ago. */
export const age = (seconds: number, ...paths: ReadonlyArray<string>) => {
  const then = Date.now() / 1000 - seconds
  for (const path of paths) utimesSync(path, then, then)
}

const steps = [
  "link",
  "makeDirectory",
  "readDirectory",
  "readFileString",
  "remove",
  "rename",
  "stat",
  "writeFileString"
]

/** A file system that runs an effect before each of its steps. */
export const beforeEachStep =
  (before: (step: string) => Effect.Effect<unknown>) =>
  (fs: FileSystem.FileSystem): FileSystem.FileSystem =>
    new Proxy(fs, {
      get: (target, name, receiver) => {
        const method: unknown = Reflect.get(target, name, receiver)
        return typeof method === "function" && steps.includes(String(name))
          ? (...parameters: ReadonlyArray<unknown>) =>
            Effect.zipRight(
              Effect.suspend(() => before(String(name))),
              Reflect.apply(method, target, parameters) as Effect.Effect<unknown> // a method of `FileSystem`
            )
          : method
      }
    })

/**
 * Runs the test once for each step of the file system, with the effect before that step. Returns the number of steps.
 */
export const atEachStep = <A, E, R>(
  test: (
    at: (
      effect: Effect.Effect<unknown, unknown>
    ) => (fs: FileSystem.FileSystem) => FileSystem.FileSystem
  ) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function*() {
    for (let step = 1; true; step++) {
      let count = 0
      yield* test((effect) =>
        beforeEachStep(() => ++count === step ? Effect.orDie(effect) : Effect.void)
      )
      if (count < step) return count
    }
  })

/** The entry of a worker that was killed is whole, and each operation works. */
export const stillWorks = (store: TokenStore.Service, isWhole: (entry: string) => boolean) =>
  Effect.gen(function*() {
    assert.isTrue(Option.exists(yield* entryOf(store, "key"), isWhole))
    yield* store.put("key", "mine", "1 hour")
    deepStrictEqual([yield* entryOf(store, "key"), yield* store.remove("key", "mine")], [
      Option.some("mine"),
      true
    ])
    const lease = Effect.filterOrFail(store.lease("key", "1 hour"), Option.isSome)
    yield* (yield* Effect.eventually(lease)).value.release
  })
