import { randomUUID } from "node:crypto"
import { chmodSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { basename, join } from "node:path"
import { Error as PlatformError } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { FileTokenStore } from "@store-api/platform-node"
import { ConfigProvider, Deferred, Effect, Fiber, Layer, Option, type Scope, TestClock } from "effect"
import { tokenStoreContract } from "../../core/test/support/tokenStoreContract.js"
import { storeRaces } from "./support/storeRaces.js"
import { perform } from "./support/storeWorker.js"
import { fileIn, newFolder, own, pathsIn, started, storeOver } from "./support/tokenFolder.js"
import { withVariables } from "./utils.js"

tokenStoreContract(
  "FileTokenStore",
  Layer.unwrapScoped(Effect.map(newFolder, (folder) => FileTokenStore.layer({ folder })))
)

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

describe("FileTokenStore", () => {
  it.scopedLive("makes folders and files that only this user can open, named after nothing of the key", () =>
    Effect.gen(function*() {
      const { folder, store } = yield* started
      const keys = ["../../elsewhere", "a/b\\c", "", ".", "con", "café \u0000", "key"]
      for (const key of keys) {
        yield* store.put(key, `entry of ${key}`, "1 minute")
        yield* store.lease(key, "1 minute")
      }
      for (const key of keys) deepStrictEqual(yield* store.get(key), Option.some(`entry of ${key}`))
      deepStrictEqual(readdirSync(join(folder, "..")), ["tokens"])
      deepStrictEqual(readdirSync(folder), ["store-api-v1"])
      assert.lengthOf(readdirSync(own(folder)), keys.length)
      for (const path of pathsIn(folder)) {
        assert.match(basename(path), /^[a-z0-9.-]+$/)
        if (process.platform !== "win32") {
          assert.strictEqual(modeOf(path), statSync(path).isFile() ? "600" : "700", path)
        }
      }
    }))

  it.scopedLive("makes nothing while it is only asked", () =>
    Effect.gen(function*() {
      const { folder, store } = yield* started
      deepStrictEqual(yield* store.get("key"), Option.none())
      assert.isFalse(yield* store.remove("key", "entry"))
      deepStrictEqual(readdirSync(join(folder, "..")), [])
    }))

  it.scopedLive("keeps one file of an entry, and none of one that was removed", () =>
    Effect.gen(function*() {
      const { folderOfKey, store } = yield* started
      const files = () => readdirSync(folderOfKey()).filter((name) => name.startsWith("sealed"))
      for (const entry of ["one", "two", "three"]) yield* store.put("key", entry, "1 minute")
      assert.lengthOf(files(), 1)
      assert.isTrue(yield* store.remove("key", "three"))
      assert.lengthOf(files(), 0)
    }))

  it.scopedLive("a put that is given up on leaves the old entry or the new one, whole", () =>
    Effect.gen(function*() {
      const { folder, folderOfKey, store } = yield* started
      yield* store.put("key", "old", "1 minute")
      const seen = new Set<string>()
      for (const step of ["write", "rename", "remove"]) {
        // The caller goes in the middle of this step.
        const reached = yield* Deferred.make<void>()
        const at = (name: string) => <A, E>(effect: Effect.Effect<A, E>) =>
          name === step
            ? effect.pipe(
              Effect.zipLeft(Deferred.succeed(reached, undefined)),
              Effect.zipLeft(Effect.sleep("20 millis"))
            )
            : effect
        const slow = yield* storeOver(folder, (fs) => ({
          ...fs,
          writeFileString: (...parameters) => at("write")(fs.writeFileString(...parameters)),
          rename: (...parameters) => at("rename")(fs.rename(...parameters)),
          remove: (...parameters) => at("remove")(fs.remove(...parameters))
        }))
        const put = yield* Effect.fork(slow.put("key", "new", "1 minute"))
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(put)
        seen.add(Option.getOrElse(yield* store.get("key"), () => "nothing"))
        assert.lengthOf(readdirSync(folderOfKey()).filter((name) => name.startsWith("sealed")), 1, step)
      }
      deepStrictEqual([...seen], ["old", "new"])
    }))

  it.scoped("an entry and a lease count until their end by the wall clock, and not before their beginning", () =>
    Effect.gen(function*() {
      const { store } = yield* started
      yield* TestClock.setTime(1e12)
      yield* store.put("key", "entry", "10 seconds")
      const lease = Option.getOrThrow(yield* store.lease("key", "10 seconds"))
      yield* TestClock.setTime(1e12 + 9_999)
      deepStrictEqual(yield* store.get("key"), Option.some("entry"))
      assert.isTrue(Option.isNone(yield* store.lease("key", "10 seconds")))
      yield* TestClock.setTime(1e12 - 1_000) // a clock that is being set by a little
      deepStrictEqual(yield* store.get("key"), Option.some("entry"))
      yield* TestClock.setTime(1e12 - 1_001) // the clock went back: it would last for longer than it was given
      deepStrictEqual(yield* store.get("key"), Option.none())
      assert.isFalse(yield* lease.extend)
      assert.isTrue(Option.isSome(yield* store.lease("key", "10 seconds")))
    }))

  it.scoped("after its end", () =>
    Effect.gen(function*() {
      const { store } = yield* started
      yield* store.put("key", "entry", "10 seconds")
      const lease = Option.getOrThrow(yield* store.lease("key", "10 seconds"))
      yield* TestClock.adjust("10 seconds")
      deepStrictEqual(yield* store.get("key"), Option.none())
      assert.isFalse(yield* store.remove("key", "entry"))
      assert.isFalse(yield* lease.extend)
      assert.isTrue(Option.isSome(yield* store.lease("key", "10 seconds")))
    }))
})

describe.concurrent("FileTokenStore, when its files were damaged", () => {
  const damages: Record<string, (folderOfKey: string) => void> = {
    "cut off": (folder) =>
      writeFileSync(fileIn(folder, "sealed"), readFileSync(fileIn(folder, "sealed")).subarray(0, 20)),
    "emptied": (folder) => writeFileSync(fileIn(folder, "sealed"), ""),
    "overwritten": (folder) => writeFileSync(fileIn(folder, "sealed"), Buffer.from([0xff, 0, 0xfe])),
    "deleted": (folder) => rmSync(fileIn(folder, "sealed")),
    "without its state": (folder) => rmSync(fileIn(folder, "state")),
    "with two states": (folder) => {
      const none = "00000000-0000-4000-8000-000000000000.0.0"
      writeFileSync(join(folder, `state.${none}.${none}`), "")
    },
    "with a state that is none": (folder) => renameSync(fileIn(folder, "state"), join(folder, "state.1.2.3")),
    "emptied by a process that died while it removed the folder": (folder) =>
      readdirSync(folder).forEach((name) => rmSync(join(folder, name))),
    "closed by a process that died then": (folder) =>
      renameSync(fileIn(folder, "state"), join(folder, `closed.${randomUUID()}`)),
    "deleted with its folder": (folder) => rmSync(folder, { recursive: true })
  }
  for (const [name, damage] of Object.entries(damages)) {
    it.scopedLive(`${name}: a miss, and the next entry is kept`, () =>
      Effect.gen(function*() {
        const { folder, folderOfKey, store } = yield* started
        yield* store.put("key", "an entry that is not too short", "1 minute")
        damage(folderOfKey())
        const damaged = pathsIn(folder)
        deepStrictEqual(yield* store.get("key"), Option.none())
        // Who reads might look at what another is about to make: it is not the reader who takes it away.
        deepStrictEqual(pathsIn(folder), damaged)
        assert.isFalse(yield* store.remove("key", "an entry that is not too short"))
        yield* store.put("key", "another", "1 minute")
        deepStrictEqual(yield* store.get("key"), Option.some("another"))
        const lease = Option.getOrThrow(yield* store.lease("key", "1 minute"))
        assert.isTrue(yield* lease.extend)
      }))
  }
})

const operations = (store: TokenStore.Service) => ({
  get: store.get("key"),
  put: store.put("key", "entry", "1 minute"),
  remove: store.remove("key", "entry"),
  lease: store.lease("key", "1 minute")
})

/** Each operation fails with the same reason, and says which it was. */
const allFail = (
  store: TokenStore.Service,
  reason: string,
  names: ReadonlyArray<keyof ReturnType<typeof operations>>
) =>
  Effect.forEach(names, (name) =>
    Effect.map(
      Effect.flip<unknown, TokenStore.TokenStoreError, never>(operations(store)[name]),
      (error) => deepStrictEqual(error, new TokenStore.TokenStoreError({ operation: name, reason }))
    ))

/** Windows has neither modes nor owners by number. */
const onPosix = (name: string, test: () => Effect.Effect<unknown, unknown, Scope.Scope>) =>
  process.platform === "win32" ? it.skip(name) : it.scopedLive(name, test)

const all = ["get", "put", "remove", "lease"] as const

describe("FileTokenStore does not use a folder", () => {
  onPosix("that others may open", () =>
    Effect.gen(function*() {
      const { folder, store } = yield* started
      yield* store.put("key", "entry", "1 minute")
      for (const mode of [0o755, 0o770, 0o701]) {
        chmodSync(folder, mode)
        yield* allFail(store, `others may open its folder: its mode is ${mode.toString(8)}, not 700`, all)
      }
      chmodSync(folder, 0o700)
      deepStrictEqual(yield* store.get("key"), Option.some("entry"))
    }))

  onPosix("of another user", () =>
    Effect.gen(function*() {
      const { folder, store } = yield* started
      yield* store.put("key", "entry", "1 minute")
      const uid = Option.some((process.getuid?.() ?? 0) + 1)
      const another = yield* storeOver(folder, (fs) => ({
        ...fs,
        stat: (path) => Effect.map(fs.stat(path), (info) => ({ ...info, uid }))
      }))
      yield* allFail(another, "its folder belongs to another user", all)
    }))

  it.scopedLive("that is a file", () =>
    Effect.gen(function*() {
      const { folder, store } = yield* started
      writeFileSync(folder, "", { mode: 0o600 })
      yield* allFail(store, "ENOTDIR", ["get", "remove"])
    }))
})

const fails = (code: string) => () =>
  Effect.fail(
    new PlatformError.SystemError({
      reason: "Unknown",
      module: "FileSystem",
      method: "writeFile",
      description: `${code}: no, '/a/path'`,
      cause: Object.assign(new Error(`${code}: no, '/a/path'`), { code })
    })
  )

describe("FileTokenStore, when nothing can be written", () => {
  it.scopedLive("because the disk is full: what is there is still given, and no temporary file is left", () =>
    Effect.gen(function*() {
      const { folder, folderOfKey, store } = yield* started
      yield* store.put("key", "entry", "1 minute")
      const files = readdirSync(folderOfKey())
      const full = yield* storeOver(folder, (fs) => ({ ...fs, writeFileString: fails("ENOSPC") }))
      yield* allFail(full, "ENOSPC", ["put"])
      deepStrictEqual(yield* full.get("key"), Option.some("entry"))
      deepStrictEqual(readdirSync(folderOfKey()), files)
      const fullFromTheStart = yield* storeOver(`${folder} 2`, (fs) => ({ ...fs, writeFileString: fails("ENOSPC") }))
      yield* allFail(fullFromTheStart, "ENOSPC", ["put", "lease"])
      deepStrictEqual(readdirSync(own(`${folder} 2`)), [])
    }))

  it.scopedLive("because it is read-only: what is there is still given", () =>
    Effect.gen(function*() {
      const { folder, store } = yield* started
      yield* store.put("key", "entry", "1 minute")
      const no = fails("EROFS")
      const readOnly = yield* storeOver(folder, (fs) => ({
        ...fs,
        makeDirectory: no,
        remove: no,
        rename: no,
        writeFileString: no
      }))
      yield* allFail(readOnly, "EROFS", ["put", "remove", "lease"])
      deepStrictEqual(yield* readOnly.get("key"), Option.some("entry"))
      deepStrictEqual(yield* store.get("key"), Option.some("entry"))
    }))
})

describe("where it is kept", () => {
  onPosix("by default", () =>
    Effect.gen(function*() {
      const mac = process.platform === "darwin"
      const inHome = join(homedir(), ...(mac ? ["Library", "Caches"] : [".local", "state"]), "store-api", "tokens")
      yield* withVariables({ XDG_STATE_HOME: "/an/invented/state" })(
        Effect.map(
          FileTokenStore.defaultFolder,
          (folder) => assert.strictEqual(folder, mac ? inHome : "/an/invented/state/store-api/tokens")
        )
      )
      // The standard passes over a relative one.
      yield* withVariables({ XDG_STATE_HOME: "state" })(
        Effect.map(FileTokenStore.defaultFolder, (folder) => assert.strictEqual(folder, inHome))
      )
      assert.strictEqual(yield* FileTokenStore.defaultFolder, inHome)
    }))

  const putOver = <E>(layer: Layer.Layer<TokenStore.TokenStore, E>, config: ReadonlyArray<readonly [string, string]>) =>
    Effect.flatMap(TokenStore.TokenStore, (store) => store.put("key", "entry", "1 minute")).pipe(
      Effect.provide(layer),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map(config)))
    )

  it.scopedLive("by configuration", () =>
    Effect.gen(function*() {
      const folder = yield* newFolder
      yield* putOver(FileTokenStore.layerConfig(), [["STORE_API_TOKEN_FOLDER", folder]])
      assert.lengthOf(readdirSync(folder), 1)
      const state = yield* newFolder
      yield* withVariables({ XDG_STATE_HOME: state })(putOver(FileTokenStore.layerConfig(), []))
      if (process.platform === "linux") assert.lengthOf(readdirSync(join(state, "store-api", "tokens")), 1)
      const error = yield* Effect.flip(putOver(FileTokenStore.layerConfig(), [["STORE_API_TOKEN_FOLDER", ""]]))
      assert.include(JSON.stringify(error), "STORE_API_TOKEN_FOLDER")
    }))
})

describe("FileTokenStore between fibers", () => {
  storeRaces(Effect.succeed(Array.from({ length: 5 }, () => ({ ask: perform }))), 8)
})
