import { randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import type { FileSystem } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { TokenStore } from "@store-api/core"
import { Deferred, Effect, Fiber, Option } from "effect"
import { goesOn } from "./support/storeRaces.js"
import { age, fileIn, newFolder, own, pathsIn, started, storeOver } from "./support/tokenFolder.js"

/** Whatever is put sweeps all keys. */
const sweepBy = (store: TokenStore.Service) => store.put("another key", "entry", "1 minute")

describe("FileTokenStore sweeps away", () => {
  it.scopedLive("what crashed processes left, and entries that are over, but nothing young", () =>
    Effect.gen(function*() {
      const { folder, folderOfKey, store } = yield* started
      yield* store.put("key", "over", "1 millis")
      const over = fileIn(folderOfKey(), "sealed")
      const [old = "", young = ""] = [randomUUID(), randomUUID()].map((id) => join(folderOfKey(), `sealed.${id}`))
      const aside = join(own(folder), `aside.${randomUUID()}`)
      writeFileSync(old, "")
      writeFileSync(young, "")
      mkdirSync(aside)
      age(over, old, aside)
      yield* sweepBy(store)
      const left = pathsIn(folder)
      for (const path of [over, old, aside]) assert.notInclude(left, path)
      assert.include(left, young)
      deepStrictEqual(yield* store.get("another key"), Option.some("entry"))
    }))

  it.scopedLive("the folder of a key that nobody needs, and no other", () =>
    Effect.gen(function*() {
      const folder = yield* newFolder
      const store = yield* storeOver(folder, (fs) => fs)
      /** The folder of a key that such things were done with, not changed for long. */
      const folderAfter = (name: string, use: Effect.Effect<unknown, unknown>, isOld = true) =>
        Effect.gen(function*() {
          const before = existsSync(own(folder)) ? readdirSync(own(folder)) : []
          yield* use
          const [made = "", another] = readdirSync(own(folder)).filter((path) => !before.includes(path))
          assert.isUndefined(another, name)
          return { name, path: join(own(folder), made), isOld }
        })
      const folders = [
        yield* folderAfter("over", store.put("over", "entry", "1 millis")),
        yield* folderAfter(
          "removed",
          Effect.zipRight(store.put("out", "entry", "1 minute"), store.remove("out", "entry"))
        ),
        yield* folderAfter(
          "released",
          Effect.flatMap(Effect.flatten(store.lease("released", "1 minute")), ({ release }) => release)
        ),
        yield* folderAfter("lease over", store.lease("lost", "1 millis")),
        yield* folderAfter("alive", store.put("alive", "entry", "1 minute")),
        yield* folderAfter("leased", store.lease("leased", "1 minute")),
        yield* folderAfter("young", store.put("young", "entry", "1 millis"), false)
      ]
      age(...folders.filter(({ isOld }) => isOld).map(({ path }) => path))
      yield* sweepBy(store)
      deepStrictEqual(folders.filter(({ path }) => existsSync(path)).map(({ name }) => name), [
        "alive",
        "leased",
        "young"
      ])
      deepStrictEqual(readdirSync(own(folder)).length, 4)
      deepStrictEqual(yield* store.get("alive"), Option.some("entry"))
      assert.isTrue(Option.isNone(yield* store.lease("leased", "1 minute")))
      yield* store.put("over", "again", "1 minute")
      deepStrictEqual(yield* store.get("over"), Option.some("again"))
    }))

  it.scopedLive("folders that were damaged, or not removed to their end", () =>
    Effect.gen(function*() {
      const { folder, folderOfKey, store } = yield* started
      yield* store.put("key", "entry", "1 minute")
      const damaged = folderOfKey()
      const remains: ReadonlyArray<(path: string) => void> = [
        (path) => rmSync(fileIn(path, "state")),
        (path) => renameSync(fileIn(path, "state"), join(path, `closed.${randomUUID()}`)),
        (path) => readdirSync(path).forEach((name) => rmSync(join(path, name)))
      ]
      for (const remain of remains) {
        yield* store.put("key", "entry", "1 minute")
        remain(damaged)
        if (!readdirSync(damaged).some((name) => name.startsWith("closed"))) {
          // Perhaps only the listing of a folder in which something is being changed.
          yield* sweepBy(store)
          assert.isTrue(existsSync(damaged))
        }
        age(damaged)
        yield* sweepBy(store)
        assert.isFalse(existsSync(damaged))
      }
      deepStrictEqual(readdirSync(own(folder)).length, 1)
    }))

  it.scopedLive("nothing for who needs a folder that is unclear, while somebody is at work there", () =>
    Effect.gen(function*() {
      const { folder, folderOfKey, store } = yield* started
      yield* store.put("key", "entry", "1 minute")
      const damaged = folderOfKey()
      rmSync(fileIn(damaged, "state"))
      const [looksInAll, changes]: [number, Array<number>] = [12, []]
      let looks = 0
      const writer = yield* storeOver(folder, (fs) => ({
        ...fs,
        readDirectory: (path) => {
          if (path === damaged && ++looks <= looksInAll) utimesSync(path, looks, looks)
          return fs.readDirectory(path)
        },
        rename: (from, to) => {
          changes.push(looks)
          return fs.rename(from, to)
        }
      }))
      yield* writer.put("key", "mine", "1 minute")
      assert.isAbove(changes[0] ?? 0, looksInAll)
      deepStrictEqual(yield* store.get("key"), Option.some("mine"))
    }))

  it.scopedLive("the rest, when one folder or one file cannot be looked at", () =>
    Effect.gen(function*() {
      const { folder, folderOfKey, store } = yield* started
      yield* store.put("key", "over", "1 millis")
      const over = folderOfKey()
      const [unreadable = "", beside = ""] = ["0123456789abcdef0123456789abcdef", `aside.${randomUUID()}`].map((name) =>
        join(own(folder), name)
      )
      writeFileSync(unreadable, "a file, where a folder should be")
      writeFileSync(beside, "the same")
      age(over, unreadable, beside)
      // Which comes first is the file system's choice; here it is what cannot be read.
      const asked: Array<string> = []
      const sweeper = yield* storeOver(folder, (fs) => ({
        ...fs,
        readDirectory: (path) => {
          asked.push(path)
          return Effect.map(fs.readDirectory(path), (names) =>
            [...names].sort((one, other) =>
              Number(join(path, other) !== over) - Number(join(path, one) !== over)
            ))
        }
      }))
      yield* sweepBy(sweeper)
      assert.isFalse(existsSync(over))
      assert.isTrue(existsSync(unreadable) && existsSync(beside))
      assert.isBelow(asked.indexOf(unreadable), asked.indexOf(over))
      assert.isAtLeast(asked.indexOf(unreadable), 0)
    }))

  it.scopedLive("only what is its own, in its folder and in the one that it was given", () =>
    Effect.gen(function*() {
      const { folder, folderOfKey, store } = yield* started
      yield* store.put("key", "over", "1 millis")
      const ofKey = folderOfKey()
      const aside = join(own(folder), `aside.${randomUUID()}`)
      const ofOurs = `sealed.${randomUUID()}`
      mkdirSync(aside)
      writeFileSync(join(aside, ofOurs), "")
      const inGiven = ["aside.notes", `aside.${randomUUID()}`, "0123456789abcdef0123456789abcdef"]
      const foreign = [
        ...inGiven.map((name) => join(folder, name, "note")),
        join(own(folder), "aside.notes", "note"),
        join(aside, "note"),
        join(ofKey, "note")
      ]
      for (const file of foreign) {
        mkdirSync(join(file, ".."), { recursive: true })
        writeFileSync(file, "not the store's")
      }
      age(...pathsIn(folder))
      yield* sweepBy(store)
      deepStrictEqual(yield* store.get("another key"), Option.some("entry"))
      deepStrictEqual(foreign.filter((file) => !existsSync(file)), [])
      // It did look there.
      assert.isFalse(existsSync(join(aside, ofOurs)))
      // Nor does it go from a folder that is damaged; who needs that folder puts it aside.
      rmSync(fileIn(ofKey, "state"))
      age(ofKey)
      yield* sweepBy(store)
      deepStrictEqual(foreign.filter((file) => !existsSync(file)), [])
      yield* store.put("key", "entry", "1 minute")
      deepStrictEqual(yield* store.get("key"), Option.some("entry"))
      deepStrictEqual(pathsIn(folder).filter((path) => basename(path) === "note").length, foreign.length)
    }))
})

const steps = [
  "exists",
  "makeDirectory",
  "readDirectory",
  "readFileString",
  "remove",
  "rename",
  "stat",
  "writeFileString"
]

/** A file system in front of whose step of that number something else is done, once. */
const interrupted =
  (step: number, meanwhile: Effect.Effect<unknown, unknown>, count: { steps: number }) =>
  (fs: FileSystem.FileSystem): FileSystem.FileSystem => {
    const before = Effect.suspend(() => ++count.steps === step ? Effect.orDie(meanwhile) : Effect.void)
    return new Proxy(fs, {
      get: (target, name, receiver) => {
        const method: unknown = Reflect.get(target, name, receiver)
        return typeof method === "function" && steps.includes(String(name))
          ? (...parameters: ReadonlyArray<unknown>) =>
            Effect.zipRight(before, Reflect.apply(method, target, parameters) as Effect.Effect<unknown>)
          : method
      }
    })
  }

/** The folder of `key`, whose entry is over and whose lease is nobody's, in a folder of its own. */
const idle = Effect.gen(function*() {
  const { folder, folderOfKey, store } = yield* started
  yield* store.put("key", "old", "1 millis")
  const path = folderOfKey()
  while (Option.isSome(yield* store.get("key"))) yield* Effect.sleep(1)
  age(path)
  return { folder, path, store }
})

const ends = {
  put: (store: TokenStore.Service) => store.put("key", "mine", "1 minute"),
  lease: (store: TokenStore.Service) => Effect.flatten(store.lease("key", "1 minute"))
}

/** What was done is there: the entry, or the lease, which is nobody else's. */
const isThere = (store: TokenStore.Service, lease: TokenStore.Lease | undefined | void) =>
  Effect.gen(function*() {
    if (lease === undefined) {
      deepStrictEqual(yield* store.get("key"), Option.some("mine"))
      return
    }
    assert.isTrue(yield* lease.extend)
    assert.isTrue(Option.isNone(yield* store.lease("key", "1 minute")))
  })

describe("FileTokenStore, when a folder is swept away", () => {
  for (const name of ["put", "lease"] as const) {
    it.scopedLive(`before any step of a ${name}: nothing is lost`, () =>
      Effect.gen(function*() {
        let removed = 0
        const count = { steps: 0 }
        for (let step = 1; true; step++) {
          const { folder, path, store } = yield* idle
          const meanwhile = Effect.suspend(() => {
            if (existsSync(path)) age(path)
            const wasThere = existsSync(path)
            return Effect.map(sweepBy(store), () => {
              if (wasThere && !existsSync(path)) removed++
            })
          })
          count.steps = 0
          const slow = yield* storeOver(folder, interrupted(step, meanwhile, count))
          yield* isThere(store, yield* ends[name](slow))
          if (count.steps < step) break
        }
        // Both the steps that it must stand and those that keep the folder were among them.
        assert.isAbove(removed, 3)
        assert.isBelow(removed, count.steps)
      }).pipe(Effect.scoped))

    it.scopedLive(`while a ${name} comes before any step of that: nothing is lost`, () =>
      Effect.gen(function*() {
        let [kept, anew] = [0, 0]
        const count = { steps: 0 }
        for (let step = 1; true; step++) {
          const { folder, path, store } = yield* idle
          let lease: TokenStore.Lease | undefined | void
          const meanwhile = Effect.map(
            Effect.suspend(() => {
              if (existsSync(path) && readdirSync(path).some((name) => name.startsWith("state"))) kept++
              else anew++
              return ends[name](store)
            }),
            (done) => {
              lease = done
              // Whatever its age: what is in use is not swept away.
              age(path)
            }
          )
          count.steps = 0
          const slow = yield* storeOver(folder, interrupted(step, meanwhile, count))
          yield* sweepBy(slow)
          if (count.steps < step) break
          yield* isThere(store, lease)
        }
        assert.isAbove(kept, 3)
        assert.isAbove(anew, 3)
      }).pipe(Effect.scoped))
  }
})

describe("FileTokenStore, when a process dies", () => {
  const operations: Readonly<Record<string, (store: TokenStore.Service) => Effect.Effect<unknown, unknown>>> = {
    put: (store) => store.put("key", "new", "1 minute"),
    lease: (store) => store.lease("key", "1 millis"),
    remove: (store) => store.remove("key", "old")
  }
  for (const [name, operate] of Object.entries(operations)) {
    it.scopedLive(`before any step of a ${name}: the store goes on`, () =>
      Effect.gen(function*() {
        const count = { steps: 0 }
        for (let step = 1; true; step++) {
          const { folder, store } = yield* started
          yield* store.put("key", "old", "1 minute")
          const died = yield* Deferred.make<void>()
          const death = Effect.zipRight(Deferred.succeed(died, undefined), Effect.async<never>(() => undefined))
          count.steps = 0
          const dying = yield* storeOver(folder, interrupted(step, death, count))
          // It never ends, as nothing of a process that died does.
          const operating = yield* Effect.forkDaemon(operate(dying))
          yield* Effect.race(Deferred.await(died), Fiber.await(operating))
          if (count.steps < step) break
          if (name === "remove" && Option.isNone(yield* store.get("key"))) yield* store.put("key", "new", "1 minute")
          yield* goesOn(store, (entry) => entry === "old" || entry === "new")
        }
        assert.isAbove(count.steps, 3)
      }).pipe(Effect.scoped))
  }
})
