import { spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { basename, dirname, join } from "node:path"
import { Error as PlatformError } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { FileTokenStore } from "@store-api/platform-node"
import { Clock, ConfigProvider, Deferred, Effect, Fiber, Layer, Option, TestClock } from "effect"
import { test } from "../../core/test/support/test.js"
import { tokenStoreContract } from "../../core/test/support/tokenStoreContract.js"
import { perform } from "./support/storeWorker.js"
import {
  age,
  atEachStep,
  beforeEachStep,
  newFolder,
  own,
  pathsIn,
  started,
  stillWorks,
  storeOver,
  storeRaces
} from "./support/tokenFolder.js"
import { withVariables } from "./utils.js"

tokenStoreContract(
  "FileTokenStore",
  Layer.unwrapScoped(Effect.map(newFolder, (folder) => FileTokenStore.layer({ folder })))
)

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

describe("FileTokenStore", () => {
  test.live("creates folders and files that only this user can open, and whose names hold no part of the key", function*() {
    const { files, folder, store } = yield* started
    const keys = ["../../elsewhere", "a/b\\c", "", ".", "con", "café \u0000", "key"]
    for (const key of keys) {
      yield* store.put(key, `entry of ${key}`, "1 minute")
      yield* store.lease(key, "1 minute")
    }
    for (const key of keys) deepStrictEqual(yield* store.get(key), Option.some(`entry of ${key}`))
    deepStrictEqual(readdirSync(join(folder, "..")), ["tokens"])
    deepStrictEqual(readdirSync(folder), ["store-api-v1"])
    for (const kind of [".entry", ".lease"]) {
      assert.lengthOf(files().filter((name) => name.endsWith(kind)), keys.length)
    }
    for (const name of files()) assert.match(name, /^[0-9a-f]{32}\.(entry|lease)$/)
    if (process.platform === "win32") return
    for (const path of pathsIn(folder)) {
      assert.strictEqual(modeOf(path), statSync(path).isFile() ? "600" : "700", path)
    }
  })

  test.live("creates nothing until the first put or lease", function*() {
    const { folder, store } = yield* started
    deepStrictEqual(yield* store.get("key"), Option.none())
    assert.isFalse(yield* store.remove("key", "entry"))
    deepStrictEqual(readdirSync(join(folder, "..")), [])
  })

  test.live("keeps one file per entry or lease, and deletes it after the removal or release", function*() {
    const { files, store } = yield* started
    for (const entry of ["one", "two", "three"]) yield* store.put("key", entry, "1 minute")
    assert.lengthOf(files(), 1)
    const lease = Option.getOrThrow(yield* store.lease("key", "1 minute"))
    assert.isTrue(yield* lease.extend)
    assert.isTrue(Option.isNone(yield* store.lease("key", "1 minute")))
    assert.lengthOf(files(), 2)
    assert.isTrue(yield* store.remove("key", "three"))
    assert.lengthOf(files(), 1)
    yield* lease.release
    assert.lengthOf(files(), 0)
  })

  test.live("an interrupted put leaves the old entry or the new one, whole", function*() {
    const { files, folder, store } = yield* started
    yield* store.put("key", "old", "1 minute")
    const seen: Array<string> = []
    for (const step of ["makeDirectory", "writeFileString", "rename", "remove"]) {
      // The caller is interrupted during this step.
      const reached = yield* Deferred.make<void>()
      const slow = yield* storeOver(
        folder,
        beforeEachStep((name) =>
          name === step
            ? Effect.zipRight(Deferred.succeed(reached, undefined), Effect.sleep("20 millis"))
            : Effect.void
        )
      )
      const put = yield* Effect.fork(slow.put("key", `new: ${step}`, "1 minute"))
      yield* Deferred.await(reached)
      yield* Fiber.interrupt(put)
      seen.push(Option.getOrElse(yield* store.get("key"), () => "nothing"))
      assert.lengthOf(files(), 1, step)
    }
    deepStrictEqual(seen, ["old", "new: writeFileString", "new: rename", "new: remove"])
  })

  test.live("keeps an entry with an infinite lifetime", function*() {
    const { store } = yield* started
    yield* store.put("key", "entry", Infinity)
    deepStrictEqual(yield* store.get("key"), Option.some("entry"))
  })

  test("an entry and a lease are valid until their end by the wall clock, and not before their start", function*() {
    const { store } = yield* started
    yield* TestClock.setTime(1e12)
    yield* store.put("key", "entry", "10 seconds")
    const lease = Option.getOrThrow(yield* store.lease("key", "10 seconds"))
    yield* TestClock.setTime(1e12 + 9_999)
    deepStrictEqual(yield* store.get("key"), Option.some("entry"))
    assert.isTrue(Option.isNone(yield* store.lease("key", "10 seconds")))
    yield* TestClock.setTime(1e12 - 1_000) // a small adjustment of the clock
    deepStrictEqual(yield* store.get("key"), Option.some("entry"))
    yield* TestClock.setTime(1e12 - 1_001) // a larger one would lengthen the lifetime
    deepStrictEqual(yield* store.get("key"), Option.none())
    assert.isFalse(yield* lease.extend)
    assert.isTrue(Option.isSome(yield* store.lease("key", "10 seconds")))
  })

  test("an entry and a lease are not valid at their end", function*() {
    const { store } = yield* started
    yield* store.put("key", "entry", "10 seconds")
    const lease = Option.getOrThrow(yield* store.lease("key", "10 seconds"))
    yield* TestClock.adjust("10 seconds")
    deepStrictEqual(yield* store.get("key"), Option.none())
    assert.isFalse(yield* store.remove("key", "entry"))
    assert.isFalse(yield* lease.extend)
    assert.isTrue(Option.isSome(yield* store.lease("key", "10 seconds")))
  })
})

describe.concurrent("FileTokenStore with a file that was", () => {
  const damages: Record<string, (file: string) => void> = {
    "cut off": (file) => writeFileSync(file, readFileSync(file).subarray(0, 20)),
    "emptied": (file) => writeFileSync(file, ""),
    "overwritten": (file) => writeFileSync(file, Buffer.from([0xff, 0, 0xfe])),
    "overwritten by other JSON": (file) => writeFileSync(file, JSON.stringify({ value: 7, from: 0, until: 1e15 })),
    ...process.platform === "win32" ? {} : {
      "replaced by a pipe": (file: string) => {
        rmSync(file)
        assert.strictEqual(spawnSync("mkfifo", [file]).status, 0)
      }
    },
    "deleted": (file) => rmSync(file),
    "deleted with their folder": (file) => rmSync(dirname(file), { recursive: true, force: true })
  }
  for (const [name, damage] of Object.entries(damages)) {
    test.live(`${name} finds no entry, and keeps the next entry and the next lease`, function*() {
      const { fileOf, folder, store } = yield* started
      yield* store.put("key", "an entry that is not too short", "1 minute")
      const lost = Option.getOrThrow(yield* store.lease("key", "1 minute"))
      for (const file of [fileOf("entry"), fileOf("lease")]) {
        if (existsSync(file)) damage(file)
      }
      const damaged = pathsIn(folder)
      deepStrictEqual(yield* store.get("key"), Option.none())
      assert.isFalse(yield* store.remove("key", "an entry that is not too short"))
      assert.isFalse(yield* lost.extend)
      yield* lost.release
      deepStrictEqual(pathsIn(folder), damaged)
      yield* store.put("key", "another", "1 minute")
      deepStrictEqual(yield* store.get("key"), Option.some("another"))
      const lease = Option.getOrThrow(yield* store.lease("key", "1 minute"))
      assert.isTrue(yield* lease.extend)
      assert.isTrue(Option.isNone(yield* store.lease("key", "1 minute")))
    })
  }
})

const operations = (store: TokenStore.Service) => ({
  get: store.get("key"),
  put: store.put("key", "entry", "1 minute"),
  remove: store.remove("key", "entry"),
  lease: store.lease("key", "1 minute")
})

/** Each operation fails with this reason and its own name. */
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

/** Windows has no modes and no numeric user ids. */
const onPosix = test.live.runIf(process.platform !== "win32")

const all = ["get", "put", "remove", "lease"] as const

describe("FileTokenStore does not use a folder", () => {
  onPosix("that other users can open", function*() {
    const { folder, store } = yield* started
    yield* store.put("key", "entry", "1 minute")
    const lease = Option.getOrThrow(yield* store.lease("another key", "1 minute"))
    for (const path of [folder, own(folder)]) {
      for (const mode of [0o755, 0o770, 0o701]) {
        chmodSync(path, mode)
        const reason = `other users can open its folder: its mode is ${mode.toString(8)}, not 700`
        yield* allFail(store, reason, all)
        for (const operation of ["extend", "release"] as const) {
          deepStrictEqual(
            yield* Effect.flip<unknown, TokenStore.TokenStoreError, never>(lease[operation]),
            new TokenStore.TokenStoreError({ operation, reason })
          )
        }
      }
      chmodSync(path, 0o700)
    }
    deepStrictEqual(yield* store.get("key"), Option.some("entry"))
  })

  onPosix("that another process creates for all users at the same time", function*() {
    const { folder } = yield* started
    const store = yield* storeOver(folder, (fs) => ({
      ...fs,
      makeDirectory: (path, options) => fs.makeDirectory(path, { ...options, mode: 0o755 })
    }))
    yield* allFail(store, "other users can open its folder: its mode is 755, not 700", ["put"])
    deepStrictEqual(readdirSync(own(folder)), [])
  })

  onPosix("of another user", function*() {
    const { folder, store } = yield* started
    yield* store.put("key", "entry", "1 minute")
    const uid = Option.some((process.getuid?.() ?? 0) + 1)
    const another = yield* storeOver(folder, (fs) => ({
      ...fs,
      stat: (path) => Effect.map(fs.stat(path), (info) => ({ ...info, uid }))
    }))
    yield* allFail(another, "its folder belongs to another user", all)
    const open = yield* storeOver(folder, (fs) => ({
      ...fs,
      stat: (path) => Effect.map(fs.stat(path), (info) => ({ ...info, mode: 0o40007 }))
    }))
    yield* allFail(open, "other users can open its folder: its mode is 007, not 700", all)
  })

  onPosix("that other users can open, on a system without numeric user ids", function*() {
    const { folder, store } = yield* started
    yield* store.put("key", "entry", "1 minute")
    chmodSync(folder, 0o755)
    yield* allFail(store, "other users can open its folder: its mode is 755, not 700", ["get"])
    const { getuid } = process
    yield* Effect.acquireUseRelease(
      Effect.sync(() => Object.assign(process, { getuid: undefined })),
      () => Effect.map(store.get("key"), (entry) => deepStrictEqual(entry, Option.some("entry"))),
      () => Effect.sync(() => Object.assign(process, { getuid }))
    )
  })

  test.live("that is a file", function*() {
    const { folder, store } = yield* started
    writeFileSync(folder, "", { mode: 0o600 })
    yield* allFail(store, "ENOTDIR", ["get", "remove"])
  })
})

const fails = (code: unknown) => () =>
  Effect.fail(
    new PlatformError.SystemError({
      reason: "Unknown",
      module: "FileSystem",
      method: "writeFile",
      description: `${String(code)}: no, '/a/path'`,
      cause: Object.assign(new Error(`${String(code)}: no, '/a/path'`), { code })
    })
  )

describe("FileTokenStore that cannot write", () => {
  test.live("because the disk is full returns the stored entry, and leaves no temporary file", function*() {
    const { files, folder, store } = yield* started
    yield* store.put("key", "entry", "1 minute")
    const before = files()
    const full = yield* storeOver(folder, (fs) => ({ ...fs, writeFileString: fails("ENOSPC") }))
    yield* allFail(full, "ENOSPC", ["put"])
    deepStrictEqual(yield* full.get("key"), Option.some("entry"))
    deepStrictEqual(files(), before)
    // Some systems create the file before they report that the disk is full.
    const half = yield* storeOver(folder, (fs) => ({
      ...fs,
      writeFileString: (...parameters) => Effect.zipRight(fs.writeFileString(...parameters), fails("ENOSPC")())
    }))
    yield* allFail(half, "ENOSPC", ["put", "lease"])
    deepStrictEqual(files(), before)
    const fullFromTheStart = yield* storeOver(`${folder} 2`, (fs) => ({ ...fs, writeFileString: fails("ENOSPC") }))
    yield* allFail(fullFromTheStart, "ENOSPC", ["put", "lease"])
    deepStrictEqual(readdirSync(own(`${folder} 2`)), [])
  })

  test.live("because it is read-only returns the stored entry", function*() {
    const { folder, store } = yield* started
    yield* store.put("key", "entry", "1 minute")
    const no = fails("EROFS")
    const readOnly = yield* storeOver(folder, (fs) => ({
      ...fs,
      link: no,
      makeDirectory: no,
      remove: no,
      rename: no,
      writeFileString: no
    }))
    yield* allFail(readOnly, "EROFS", ["put", "remove", "lease"])
    yield* store.lease("leased", "1 minute")
    deepStrictEqual(yield* readOnly.lease("leased", "1 minute"), Option.none())
    deepStrictEqual(yield* readOnly.get("key"), Option.some("entry"))
    deepStrictEqual(yield* store.get("key"), Option.some("entry"))
  })
})

describe("FileTokenStore reports the reason of a failure", () => {
  const failures = {
    EIO: fails("EIO")(),
    Unknown: fails(7)(),
    TimedOut: Effect.fail(
      new PlatformError.SystemError({ reason: "TimedOut", module: "FileSystem", method: "readFile" })
    ),
    BadArgument: Effect.fail(new PlatformError.BadArgument({ module: "FileSystem", method: "readFile" }))
  }
  for (const [reason, failure] of Object.entries(failures)) {
    test.live(`without paths: ${reason}`, function*() {
      const { folder } = yield* started
      const store = yield* storeOver(folder, (fs) => ({ ...fs, readFileString: () => failure }))
      yield* allFail(store, reason, ["get", "remove", "lease"])
    })
  }
})

describe("the folder of FileTokenStore", () => {
  onPosix("is below XDG_STATE_HOME or the home folder by default", function*() {
    const mac = process.platform === "darwin"
    const inHome = join(homedir(), ...(mac ? ["Library", "Caches"] : [".local", "state"]), "store-api", "tokens")
    yield* withVariables({ XDG_STATE_HOME: "/an/invented/state" })(
      Effect.map(
        FileTokenStore.defaultFolder,
        (folder) => assert.strictEqual(folder, mac ? inHome : "/an/invented/state/store-api/tokens")
      )
    )
    // The XDG standard ignores a relative path.
    yield* withVariables({ XDG_STATE_HOME: "state" })(
      Effect.map(FileTokenStore.defaultFolder, (folder) => assert.strictEqual(folder, inHome))
    )
    assert.strictEqual(yield* FileTokenStore.defaultFolder, inHome)
  })

  /** Sets `process.platform`. The paths remain those of this system. */
  const on = (platform: string) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const { platform: before } = process
        Object.defineProperty(process, "platform", { value: platform })
        return before
      }),
      () => effect,
      (before) => Effect.sync(() => Object.defineProperty(process, "platform", { value: before }))
    )

  onPosix("has other defaults on macOS and on Windows", function*() {
    const home = (...folders: ReadonlyArray<string>) => join(homedir(), ...folders, "store-api", "tokens")
    const variables = withVariables({ XDG_STATE_HOME: "/an/invented/state", LOCALAPPDATA: "/an/invented/local" })
    const { defaultFolder } = FileTokenStore
    assert.strictEqual(yield* variables(on("darwin")(defaultFolder)), home("Library", "Caches"))
    assert.strictEqual(yield* variables(on("win32")(defaultFolder)), "/an/invented/local/store-api/tokens")
    assert.strictEqual(yield* on("win32")(defaultFolder), home("AppData", "Local"))
  })

  const putOver = <E>(layer: Layer.Layer<TokenStore.TokenStore, E>, config: ReadonlyArray<readonly [string, string]>) =>
    Effect.flatMap(TokenStore.TokenStore, (store) => store.put("key", "entry", "1 minute")).pipe(
      Effect.provide(layer),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map(config)))
    )

  test.live("can be configured", function*() {
    const folder = yield* newFolder
    yield* putOver(FileTokenStore.layerConfig(), [["STORE_API_TOKEN_FOLDER", folder]])
    assert.lengthOf(readdirSync(folder), 1)
    const state = yield* newFolder
    yield* withVariables({ XDG_STATE_HOME: state })(putOver(FileTokenStore.layerConfig(), []))
    if (process.platform === "linux") assert.lengthOf(readdirSync(join(state, "store-api", "tokens")), 1)
    const error = yield* Effect.flip(putOver(FileTokenStore.layerConfig(), [["STORE_API_TOKEN_FOLDER", ""]]))
    assert.include(JSON.stringify(error), "STORE_API_TOKEN_FOLDER")
    assert.match(JSON.stringify(error), /must not be empty|length of at least 1/)
  })
})

describe("FileTokenStore, while another process changes the folder", () => {
  /** A store that runs an effect before each rename. */
  const beforeRename = (folder: string, effect: Effect.Effect<unknown, unknown>) =>
    storeOver(folder, beforeEachStep((step) => step === "rename" ? Effect.orDie(effect) : Effect.void))

  test.live("does not remove an entry that was replaced", function*() {
    const { files, folder, store } = yield* started
    yield* store.put("key", "old", "1 minute")
    const slow = yield* beforeRename(folder, store.put("key", "new", "1 minute"))
    assert.isFalse(yield* slow.remove("key", "old"))
    deepStrictEqual(yield* store.get("key"), Option.some("new"))
    assert.lengthOf(files(), 1)
  })

  test.live("does not lose an entry that was replaced when the remove is interrupted", function*() {
    const { files, folder, store } = yield* started
    yield* store.put("key", "old", "1 minute")
    const reached = yield* Deferred.make<void>()
    const steps: Readonly<Record<string, Effect.Effect<unknown, unknown>>> = {
      rename: store.put("key", "new", "1 minute"),
      link: Effect.zipRight(Deferred.succeed(reached, undefined), Effect.sleep("20 millis"))
    }
    const slow = yield* storeOver(folder, beforeEachStep((step) => Effect.orDie(steps[step] ?? Effect.void)))
    const removing = yield* Effect.fork(slow.remove("key", "old"))
    yield* Deferred.await(reached)
    yield* Fiber.interrupt(removing)
    deepStrictEqual(yield* store.get("key"), Option.some("new"))
    assert.lengthOf(files(), 1)
  })

  test.live("keeps the last entry when one was replaced twice", function*() {
    const { files, folder, store } = yield* started
    yield* store.put("key", "old", "1 minute")
    const steps: Readonly<Record<string, Effect.Effect<unknown, unknown>>> = {
      rename: store.put("key", "new", "1 minute"),
      link: store.put("key", "last", "1 minute")
    }
    const slow = yield* storeOver(folder, beforeEachStep((step) => Effect.orDie(steps[step] ?? Effect.void)))
    assert.isFalse(yield* slow.remove("key", "old"))
    deepStrictEqual(yield* store.get("key"), Option.some("last"))
    assert.lengthOf(files(), 1)
  })

  test.live("does not remove an entry that was removed", function*() {
    const { folder, store } = yield* started
    yield* store.put("key", "old", "1 minute")
    const slow = yield* beforeRename(folder, store.remove("key", "old"))
    assert.isFalse(yield* slow.remove("key", "old"))
  })

  test.live("does not take over an expired lease that was taken over", function*() {
    const { files, folder, store } = yield* started
    yield* store.lease("key", 0)
    const taken = yield* Deferred.make<TokenStore.Lease>()
    const takeOver = Effect.flatMap(
      Effect.map(store.lease("key", "1 minute"), Option.getOrThrow),
      (lease) => Deferred.succeed(taken, lease)
    )
    const slow = yield* beforeRename(folder, takeOver)
    deepStrictEqual(yield* slow.lease("key", "1 minute"), Option.none())
    assert.isTrue(yield* (yield* Deferred.await(taken)).extend)
    assert.lengthOf(files(), 1)
  })

  test.live("grants a free lease once, at whatever step another process takes it", function*() {
    let steps = 0
    for (let step = 1; step === 1 || steps >= step - 1; step++) {
      const { folder, store } = yield* started
      let got = 0
      const take = (store: TokenStore.Service) =>
        Effect.map(store.lease("key", "1 minute"), (lease) => {
          got += Option.isSome(lease) ? 1 : 0
        })
      steps = 0
      yield* take(
        yield* storeOver(folder, beforeEachStep(() => ++steps >= step ? Effect.orDie(take(store)) : Effect.void))
      )
      assert.strictEqual(got, 1)
    }
    assert.isAbove(steps, 5)
  })

  test.live("grants an expired lease to one of ten concurrent callers, rarely to two", function*() {
    const { store } = yield* started
    const rounds = 5
    let got = 0
    for (let round = 0; round < rounds; round++) {
      yield* store.lease(`key ${round}`, 0)
      const leases = yield* Effect.all(Effect.replicate(store.lease(`key ${round}`, "1 minute"), 10), {
        concurrency: "unbounded"
      })
      assert.isTrue(leases.some(Option.isSome))
      got += leases.filter(Option.isSome).length
    }
    assert.isAtMost(got, 2 * rounds)
  })

  storeRaces(Effect.succeed(Array.from({ length: 5 }, () => ({ ask: perform }))), 8)
})

/** Each put removes expired files, of all keys. */
const putAnother = (store: TokenStore.Service) => store.put("another key", "entry", "1 minute")

describe("FileTokenStore removes", () => {
  test.live("expired files and those of crashed processes a minute later, and no valid file", function*() {
    const { files, folder, store } = yield* started
    const added = (change: Effect.Effect<unknown, unknown>, isOld: boolean) =>
      Effect.gen(function*() {
        const before = existsSync(own(folder)) ? files() : []
        yield* change
        const [file = "", ...others] = files().filter((name) => !before.includes(name))
        deepStrictEqual(others, [])
        if (isOld) age(join(own(folder), file))
        return file
      })
    const part = (text: string) => Effect.sync(() => writeFileSync(join(own(folder), `${randomUUID()}.part`), text))
    const kept = [
      yield* added(store.put("valid", "entry", "1 minute"), true),
      yield* added(store.lease("valid", "1 minute"), true),
      yield* added(store.put("young", "entry", 0), false),
      yield* added(store.lease("young", 0), false),
      yield* added(part(""), false)
    ]
    yield* added(store.put("expired", "entry", 0), true)
    yield* added(store.lease("expired", 0), true)
    yield* added(part(""), true)
    yield* added(part(JSON.stringify({ value: "entry", from: 0, until: 1 })), true)
    kept.push(yield* added(putAnother(store), false))
    deepStrictEqual(files(), kept.sort())
    deepStrictEqual(yield* store.get("valid"), Option.some("entry"))
    assert.isTrue(Option.isNone(yield* store.lease("valid", "1 minute")))
  })

  test.live("only its own files, and none of its former version", function*() {
    const { fileOf, folder, store } = yield* started
    yield* store.put("key", "expired", 0)
    const [key, uuid, none] = ["0123456789abcdef0123456789abcdef", randomUUID(), `${randomUUID()}.0.0`]
    const names = [
      "note",
      `${key}.entry.note`,
      `note.${key}.entry`,
      `${key}0.lease`,
      `${uuid}.partial`,
      `note ${uuid}.part`,
      `${key}/state.${none}.${none}`,
      `${key}/sealed.${uuid}`,
      `${basename(fileOf("entry"), ".entry")}/closed.${uuid}`,
      `aside.${uuid}/sealed.${uuid}`
    ].map((name) => join(own(folder), name))
    const foreign = [...names, ...[`${key}.entry`, `${uuid}.part`].map((name) => join(folder, name))]
    for (const file of foreign) {
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, "")
    }
    const expired = fileOf("entry")
    age(...pathsIn(folder))
    yield* putAnother(store)
    assert.isFalse(existsSync(expired))
    deepStrictEqual(foreign.filter((file) => !existsSync(file)), [])
    yield* store.put("key", "entry", "1 minute")
    deepStrictEqual(yield* store.get("key"), Option.some("entry"))
  })

  test.live("the other files if one cannot be read", function*() {
    const { fileOf, folder, store } = yield* started
    yield* store.put("key", "expired", 0)
    const expired = fileOf("entry")
    const unreadable = ["0", "f"].map((digit) => join(own(folder), `${digit.repeat(32)}.entry`))
    for (const path of unreadable) mkdirSync(path)
    age(...pathsIn(folder))
    yield* putAnother(store)
    deepStrictEqual(yield* store.get("another key"), Option.some("entry"))
    assert.isFalse(existsSync(expired))
    for (const path of unreadable) assert.isTrue(existsSync(path))
  })

  const uses = {
    put: (store: TokenStore.Service) => store.put("key", "mine", "1 minute"),
    lease: (store: TokenStore.Service) => Effect.map(store.lease("key", "1 minute"), Option.getOrThrow)
  }

  /** The entry or the lease exists, and no other process can get the lease. */
  const exists = (store: TokenStore.Service, lease: TokenStore.Lease | undefined | void) =>
    Effect.gen(function*() {
      if (lease === undefined) {
        deepStrictEqual(yield* store.get("key"), Option.some("mine"))
        return
      }
      assert.isTrue(yield* lease.extend)
      deepStrictEqual(yield* store.lease("key", "1 minute"), Option.none())
    })

  /** A store whose key has an expired entry and an expired lease. */
  const expired = Effect.gen(function*() {
    const { folder, store } = yield* started
    yield* store.put("key", "old", 0)
    yield* store.lease("key", 0)
    age(...pathsIn(folder))
    return { folder, store }
  })

  for (const [name, use] of Object.entries(uses)) {
    test.live(`no file of a ${name}, at whatever step the removal runs`, function*() {
      const steps = yield* atEachStep((at) =>
        Effect.gen(function*() {
          const { folder, store } = yield* expired
          const removal = Effect.suspend(() => {
            age(...pathsIn(folder).filter((path) => !path.endsWith(".part")))
            return putAnother(store)
          })
          yield* exists(store, yield* use(yield* storeOver(folder, at(removal))))
        })
      )
      assert.isAbove(steps, 5)
    })

    test.live(`no file of a ${name} that runs before any step of the removal`, function*() {
      const steps = yield* atEachStep((at) =>
        Effect.gen(function*() {
          const { folder, store } = yield* expired
          let used: { readonly lease: TokenStore.Lease | void } | undefined
          yield* putAnother(
            yield* storeOver(
              folder,
              at(Effect.map(use(store), (lease) => {
                used = { lease }
              }))
            )
          )
          if (used !== undefined) yield* exists(store, used.lease)
        })
      )
      assert.isAbove(steps, 10)
    })
  }
})

describe("FileTokenStore still works after a process is killed", () => {
  const inTwoMinutes = Object.assign(Clock.make(), { currentTimeMillis: Effect.sync(() => Date.now() + 120_000) })
  const operations: Readonly<Record<string, (store: TokenStore.Service) => Effect.Effect<unknown, unknown>>> = {
    put: (store) => store.put("key", "new", "1 minute"),
    lease: (store) =>
      Effect.map(store.lease("key", "50 millis"), Option.getOrThrow).pipe(
        Effect.tap(({ extend }) => extend),
        Effect.flatMap(({ release }) => release)
      ),
    remove: (store) => store.remove("key", "old")
  }
  for (const [name, operate] of Object.entries(operations)) {
    test.live(`before any step of a ${name}`, function*() {
      const steps = yield* atEachStep((at) =>
        Effect.gen(function*() {
          const { files, folder, store } = yield* started
          yield* store.put("key", "old", "1 minute")
          yield* store.lease("key", 0)
          age(...pathsIn(folder))
          const killed = yield* Deferred.make<void>()
          const kill = Effect.zipRight(Deferred.succeed(killed, undefined), Effect.async<never>(() => undefined))
          // It never ends, like an effect of a killed process.
          const operating = yield* Effect.forkDaemon(operate(yield* storeOver(folder, at(kill))))
          yield* Effect.race(Deferred.await(killed), Fiber.await(operating))
          if (name === "remove" && Option.isNone(yield* store.get("key"))) yield* store.put("key", "new", "1 minute")
          yield* stillWorks(store, (entry) => entry === "old" || entry === "new")
          // Two minutes later its files are removed.
          yield* Effect.withClock(putAnother(store), inTwoMinutes)
          assert.lengthOf(files(), 1)
        })
      )
      assert.isAbove(steps, 5)
    })
  }
})
