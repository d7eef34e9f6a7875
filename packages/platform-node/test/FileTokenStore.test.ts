import { spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { Error as PlatformError, type FileSystem } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { rules } from "@store-api/core/TokenStoreContract"
import { FileTokenStore } from "@store-api/platform-node"
import { entryOf } from "@store-api/testing/entryOf"
import { withVariables } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import {
  Clock,
  ConfigProvider,
  Deferred,
  Effect,
  Fiber,
  type Layer,
  Option,
  TestClock
} from "effect"
import {
  age,
  atEachStep,
  beforeEachStep,
  newFolder,
  own,
  pathsIn,
  started,
  stillWorks,
  storeOver
} from "./support/tokenFolder.js"

for (const { check, rule } of rules) {
  test.live(rule, function*() {
    yield* Effect.provide(check, FileTokenStore.layer({ folder: yield* newFolder }))
  })
}

/** Windows has no modes and no numeric user ids. */
const isPosix = process.platform !== "win32"
const onPosix = test.live.runIf(isPosix)

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

/** A store whose steps of the file system come after these changes. */
const slowed = (
  folder: string,
  steps: Readonly<Record<string, Effect.Effect<unknown, unknown>>>
) => storeOver(folder, beforeEachStep((step) => Effect.orDie(steps[step] ?? Effect.void)))

/** Interrupts an operation during this step. */
const interruptedAt = (
  step: string,
  folder: string,
  operate: (store: TokenStore.Service) => Effect.Effect<unknown, unknown>,
  changes: Parameters<typeof slowed>[1] = {}
) =>
  Effect.gen(function*() {
    const reached = yield* Deferred.make<void>()
    const slow = Effect.zipRight(
      Deferred.succeed(reached, undefined),
      Effect.sleep("20 millis")
    )
    const operating = yield* Effect.fork(
      operate(yield* slowed(folder, { ...changes, [step]: slow }))
    )
    yield* Deferred.await(reached)
    yield* Fiber.interrupt(operating)
  })

const keys = ["../../elsewhere", "a/b\\c", "", ".", "con", "café \u0000", "key"]

/** A store with an entry and a lease for each of these keys. */
const withKeys = Effect.tap(
  started,
  ({ store }) =>
    Effect.forEach(keys, (key) =>
      Effect.zipRight(
        store.put(key, `entry of ${key}`, "1 minute"),
        store.lease(key, "1 minute")
      ))
)

test.live("FileTokenStore keeps an entry for each key, whatever its characters are", function*() {
  const { store } = yield* withKeys
  for (const key of keys) {
    deepStrictEqual(yield* entryOf(store, key), Option.some(`entry of ${key}`))
  }
})

test.live("the names of the files hold no part of the key", function*() {
  const { files, folder } = yield* withKeys
  deepStrictEqual(readdirSync(join(folder, "..")), ["tokens"])
  deepStrictEqual(readdirSync(folder), ["store-api-v1"])
  for (const kind of ["entry", "lease"]) {
    const ofKind = files().filter((name) => new RegExp(`^[0-9a-f]{32}\\.${kind}$`).test(name))
    assert.lengthOf(ofKind, keys.length)
  }
  assert.lengthOf(files(), 2 * keys.length)
})

onPosix("FileTokenStore creates folders and files that only this user can open", function*() {
  const { folder } = yield* withKeys
  const paths = pathsIn(folder)
  assert.isAbove(paths.length, 2 * keys.length)
  for (const path of paths) {
    assert.strictEqual(modeOf(path), statSync(path).isFile() ? "600" : "700", path)
  }
})

test.live("FileTokenStore creates nothing until the first put or lease", function*() {
  const { folder, store } = yield* started
  deepStrictEqual([yield* entryOf(store, "key"), yield* store.remove("key", "entry")], [
    Option.none(),
    false
  ])
  deepStrictEqual(readdirSync(join(folder, "..")), [])
})

test.live("a put replaces the file of the entry, which its removal deletes", function*() {
  const { files, store } = yield* started
  for (const entry of ["one", "two"]) yield* store.put("key", entry, "1 minute")
  assert.lengthOf(files(), 1)
  yield* store.remove("key", "two")
  assert.lengthOf(files(), 0)
})

test.live("the release of a lease deletes its file", function*() {
  const { files, store } = yield* started
  const lease = Option.getOrThrow(yield* store.lease("key", "1 minute"))
  assert.lengthOf(files(), 1)
  yield* lease.release
  assert.lengthOf(files(), 0)
})

test.live("an interrupted put leaves the old entry or the new one, whole", function*() {
  const { files, folder, store } = yield* started
  // An infinite lifetime is allowed too.
  yield* store.put("key", "old", Infinity)
  const seen: Array<string> = []
  for (const step of ["makeDirectory", "writeFileString", "rename", "remove"]) {
    yield* interruptedAt(step, folder, (slow) => slow.put("key", `new: ${step}`, "1 minute"))
    seen.push(Option.getOrElse(yield* entryOf(store, "key"), () => "nothing"))
    assert.lengthOf(files(), 1, step)
  }
  deepStrictEqual(seen, ["old", "new: writeFileString", "new: rename", "new: remove"])
})

test.each<readonly [by: number, isValid: boolean]>([
  [9999, true],
  [10_000, false],
  // A small adjustment of the clock. A larger one would lengthen the lifetime.
  [-1000, true],
  [-1001, false]
])(
  "when the wall clock has moved by %s ms, an entry and a lease for 10 s are valid: %s",
  function*([by, isValid]) {
    const { store } = yield* started
    yield* TestClock.setTime(1e12)
    yield* store.put("key", "entry", "10 seconds")
    const lease = Option.getOrThrow(yield* store.lease("key", "10 seconds"))
    yield* TestClock.setTime(1e12 + by)
    deepStrictEqual(
      yield* entryOf(store, "key"),
      isValid ? Option.some("entry") : Option.none()
    )
    deepStrictEqual([yield* store.remove("key", "entry"), yield* lease.extend], [
      isValid,
      isValid
    ])
    assert.strictEqual(Option.isNone(yield* store.lease("key", "10 seconds")), isValid)
  }
)

const minute = 60_000

/** Changes what each file says about the uptime of the machine when it was written, in milliseconds. */
const changeUptime = (folder: string, change: (uptime: number) => number | undefined) => {
  const paths = pathsIn(folder).filter((path) => statSync(path).isFile())
  for (const path of paths) {
    const content = JSON.parse(readFileSync(path, "utf8")) as { readonly uptime: number } // the store wrote it
    writeFileSync(path, JSON.stringify({ ...content, uptime: change(content.uptime) }))
  }
  assert.lengthOf(paths, 2)
}

/** A store with an entry and a lease for ten minutes. By the wall clock, no time has passed since. */
const written = Effect.tap(
  started,
  ({ store }) =>
    Effect.zipRight(store.put("key", "entry", 10 * minute), store.lease("key", 10 * minute))
)

const remainingIn = ({ get }: TokenStore.Service) =>
  Effect.map(
    get("key"),
    Option.match({ onNone: () => 0, onSome: ({ remaining }) => Number(remaining) })
  )

test("an entry remains for no longer after the wall clock was set back, because the uptime of the machine counts", function*() {
  const { folder, store } = yield* written
  assert.strictEqual(yield* remainingIn(store), 10 * minute)
  changeUptime(folder, (uptime) => uptime - 4 * minute)
  const remaining = yield* remainingIn(store)
  assert.isAtMost(remaining, 6 * minute + 1000)
  // A slow machine spends real time here.
  assert.isAtLeast(remaining, 5 * minute)
})

test("an entry and a lease end, because the uptime of the machine counts", function*() {
  const { folder, store } = yield* written
  changeUptime(folder, (uptime) => uptime - 10 * minute - 1000)
  deepStrictEqual(yield* store.get("key"), Option.none())
  assert.isTrue(Option.isSome(yield* store.lease("key", "1 minute")))
})

test.each<[what: string, change: (uptime: number) => number | undefined]>([
  ["the machine has restarted", (uptime) => uptime + 10 * minute],
  ["an older version wrote the file", () => undefined]
])("an entry and a lease remain by the wall clock if %s", function*([, change]) {
  const { folder, store } = yield* written
  changeUptime(folder, change)
  assert.strictEqual(yield* remainingIn(store), 10 * minute)
  assert.isTrue(Option.isNone(yield* store.lease("key", "1 minute")))
})

describe.concurrent("FileTokenStore with a file that was", () => {
  const damages: Record<string, (file: string) => void> = {
    "cut off": (file) => writeFileSync(file, readFileSync(file).subarray(0, 20)),
    "emptied": (file) => writeFileSync(file, ""),
    "overwritten": (file) => writeFileSync(file, Buffer.from([0xff, 0, 0xfe])),
    "overwritten by other JSON": (file) =>
      writeFileSync(file, JSON.stringify({ value: 7, from: 0, until: 1e15 })),
    ...process.platform === "win32" ? {} : {
      "replaced by a pipe": (file: string) => {
        rmSync(file)
        assert.strictEqual(spawnSync("mkfifo", [file]).status, 0)
      }
    },
    "deleted": (file) => rmSync(file),
    "deleted with their folder": (file) =>
      rmSync(dirname(file), { recursive: true, force: true })
  }
  /** A store whose entry and lease have such files. */
  const damagedBy = (damage: (file: string) => void) =>
    Effect.gen(function*() {
      const made = yield* started
      yield* made.store.put("key", value, "1 minute")
      const lost = Option.getOrThrow(yield* made.store.lease("key", "1 minute"))
      for (const file of [made.fileOf("entry"), made.fileOf("lease")]) {
        if (existsSync(file)) damage(file)
      }
      return { ...made, lost }
    })
  const value = "an entry that is not too short"

  for (const [name, damage] of Object.entries(damages)) {
    test.live(`${name} finds no entry`, function*() {
      const { store } = yield* damagedBy(damage)
      deepStrictEqual(yield* store.get("key"), Option.none())
    })

    test.live(`${name} ends the lease`, function*() {
      const { lost } = yield* damagedBy(damage)
      assert.isFalse(yield* lost.extend)
    })

    test.live(`${name} is left as it is by a removal or release`, function*() {
      const { folder, lost, store } = yield* damagedBy(damage)
      const damaged = pathsIn(folder)
      assert.isFalse(yield* store.remove("key", value))
      yield* lost.release
      deepStrictEqual(pathsIn(folder), damaged)
    })

    test.live(`${name} keeps the next entry`, function*() {
      const { store } = yield* damagedBy(damage)
      yield* store.put("key", "another", "1 minute")
      deepStrictEqual(yield* entryOf(store, "key"), Option.some("another"))
    })

    test.live(`${name} keeps the next lease`, function*() {
      const { store } = yield* damagedBy(damage)
      const lease = Option.getOrThrow(yield* store.lease("key", "1 minute"))
      assert.isTrue(yield* lease.extend)
      assert.isTrue(Option.isNone(yield* store.lease("key", "1 minute")))
    })
  }
})

/** Each operation fails with this reason and its own name. */
const allFail = (
  store: TokenStore.Service,
  reason: string,
  names: ReadonlyArray<TokenStore.TokenStoreError["operation"]>,
  lease?: TokenStore.Lease
) => {
  const operations = {
    get: store.get("key"),
    put: store.put("key", "entry", "1 minute"),
    remove: store.remove("key", "entry"),
    lease: store.lease("key", "1 minute"),
    extend: lease?.extend ?? Effect.void,
    release: lease?.release ?? Effect.void
  }
  return Effect.forEach(names, (operation) =>
    Effect.map(
      Effect.flip<unknown, TokenStore.TokenStoreError, never>(operations[operation]),
      (error) => deepStrictEqual(error, new TokenStore.TokenStoreError({ operation, reason }))
    ))
}

const all = ["get", "put", "remove", "lease"] as const

onPosix("FileTokenStore uses no folder that other users can open", function*() {
  const { folder, store } = yield* started
  yield* store.put("key", "entry", "1 minute")
  const lease = Option.getOrThrow(yield* store.lease("another key", "1 minute"))
  for (const path of [folder, own(folder)]) {
    for (const mode of [0o755, 0o770, 0o701]) {
      chmodSync(path, mode)
      const reason = `other users can open its folder: its mode is ${
        mode.toString(8)
      }, not 700`
      yield* allFail(store, reason, [...all, "extend", "release"], lease)
    }
    chmodSync(path, 0o700)
  }
  deepStrictEqual(yield* entryOf(store, "key"), Option.some("entry"))
})

onPosix("FileTokenStore checks no folder on a system without numeric user ids", function*() {
  const { folder, store } = yield* started
  yield* store.put("key", "entry", "1 minute")
  chmodSync(folder, 0o755)
  yield* allFail(store, "other users can open its folder: its mode is 755, not 700", ["get"])
  const { getuid } = process
  yield* Effect.acquireUseRelease(
    Effect.sync(() => Object.assign(process, { getuid: undefined })),
    () =>
      Effect.map(
        entryOf(store, "key"),
        (entry) => deepStrictEqual(entry, Option.some("entry"))
      ),
    () => Effect.sync(() => Object.assign(process, { getuid }))
  )
})

test.live("FileTokenStore does not use a folder that is a file", function*() {
  const { folder, store } = yield* started
  writeFileSync(folder, "", { mode: 0o600 })
  yield* allFail(store, "ENOTDIR", ["get", "remove"])
})

const failWith = (error: PlatformError.PlatformError) => () => Effect.fail(error)

const code = (code: unknown) =>
  failWith(
    new PlatformError.SystemError({
      reason: "Unknown",
      module: "FileSystem",
      method: "writeFile",
      description: `${String(code)}: no, '/a/path'`,
      cause: Object.assign(new Error(`${String(code)}: no, '/a/path'`), { code })
    })
  )

type Change = (fs: FileSystem.FileSystem) => Partial<FileSystem.FileSystem>

/** A write fails. Some systems create the file before they report that the disk is full. */
const full: Change = () => ({ writeFileString: code("ENOSPC") })
const halfFull: Change = (fs) => ({
  writeFileString: (...parameters) =>
    Effect.zipRight(fs.writeFileString(...parameters), code("ENOSPC")())
})

const readOnly: Change = () => {
  const no = code("EROFS")
  return { link: no, makeDirectory: no, remove: no, rename: no, writeFileString: no }
}

const withInfo = (change: Partial<FileSystem.File.Info>): Change => (fs) => ({
  stat: (path) => Effect.map(fs.stat(path), (info) => ({ ...info, ...change }))
})

const openToAll: Change = (fs) => ({
  makeDirectory: (path, options) => fs.makeDirectory(path, { ...options, mode: 0o755 })
})

const reads = ["get", "remove", "lease"] as const
const ofPlatform = { module: "FileSystem", method: "readFile" } as const
const withoutCause = new PlatformError.SystemError({ reason: "TimedOut", ...ofPlatform })

/** Reading a file fails. */
const unreadable = (readFileString: ReturnType<typeof failWith>): Change => () => ({
  readFileString
})

type Failure = readonly [
  when: string,
  change: Change,
  reason: string,
  failing: Parameters<typeof allFail>[2]
]

const onlyPosix: ReadonlyArray<Failure> = [
  [
    "another user owns the folder",
    withInfo({ uid: Option.some((process.getuid?.() ?? 0) + 1) }),
    "its folder belongs to another user",
    all
  ],
  [
    "others can open it",
    withInfo({ mode: 0o40007 }),
    "other users can open its folder: its mode is 007, not 700",
    all
  ]
]

test.live.each<Failure>([
  ["the disk is full", full, "ENOSPC", ["put", "lease"]],
  ["the disk becomes full", halfFull, "ENOSPC", ["put", "lease"]],
  ["the disk is read-only", readOnly, "EROFS", ["put", "remove", "lease"]],
  ["a file cannot be read", unreadable(code("EIO")), "EIO", reads],
  ["an error has no code", unreadable(code(7)), "Unknown", reads],
  ["an error has no cause", unreadable(failWith(withoutCause)), "TimedOut", reads],
  [
    "an argument is unusable",
    unreadable(failWith(new PlatformError.BadArgument(ofPlatform))),
    "BadArgument",
    reads
  ],
  ...isPosix ? onlyPosix : []
])(
  "FileTokenStore fails with the reason, without a path, and without a change when %s",
  function*([, change, reason, failing]) {
    const { files, folder, store } = yield* started
    yield* store.put("key", "entry", "1 minute")
    yield* store.lease("leased", "1 minute")
    const before = files()
    const broken = yield* storeOver(folder, (fs) => ({ ...fs, ...change(fs) }))
    yield* allFail(broken, reason, failing)
    if (!failing.includes("get")) {
      deepStrictEqual(yield* entryOf(broken, "key"), Option.some("entry"))
      deepStrictEqual(yield* broken.lease("leased", "1 minute"), Option.none())
    }
    deepStrictEqual(yield* entryOf(store, "key"), Option.some("entry"))
    deepStrictEqual(files(), before)
  }
)

/** The store cannot create its folder for this reason, and writes nothing. */
const expectNoFiles = (change: Change, reason: string) =>
  Effect.gen(function*() {
    const folder = yield* newFolder
    const store = yield* storeOver(folder, (fs) => ({ ...fs, ...change(fs) }))
    yield* allFail(store, reason, ["put", "lease"])
    deepStrictEqual(readdirSync(own(folder)), [])
  })

test.live("FileTokenStore writes nothing to a new folder on a full disk", function*() {
  yield* expectNoFiles(full, "ENOSPC")
})

onPosix(
  "FileTokenStore writes nothing to a folder that another process creates for all users",
  function*() {
    yield* expectNoFiles(
      openToAll,
      "other users can open its folder: its mode is 755, not 700"
    )
  }
)

const home = (...folders: ReadonlyArray<string>) => join(homedir(), ...folders)
const given = { XDG_STATE_HOME: "/an/invented/state", LOCALAPPDATA: "/an/invented/local" }

/** Sets `process.platform`. The paths remain those of this system. */
const on = (platform: string) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const { platform: before } = process
      Object.defineProperty(process, "platform", { value: platform })
      return before
    }),
    () => effect,
    (before) =>
      Effect.sync(() => Object.defineProperty(process, "platform", { value: before }))
  )

const folders: ReadonlyArray<
  readonly [platform: string, variables: Readonly<Record<string, string>>, folder: string]
> = [
  ["linux", given, given.XDG_STATE_HOME],
  ["linux", {}, home(".local", "state")],
  // The XDG standard ignores a relative path.
  ["linux", { XDG_STATE_HOME: "state" }, home(".local", "state")],
  ["darwin", given, home("Library", "Caches")],
  ["win32", given, given.LOCALAPPDATA],
  ["win32", {}, home("AppData", "Local")]
]

for (const [platform, variables, folder] of isPosix ? folders : []) {
  test.live(`the default folder on ${platform} is in ${folder} with the variables ${JSON.stringify(variables)}`, function*() {
    const found = yield* FileTokenStore.defaultFolder.pipe(
      on(platform),
      withVariables(variables)
    )
    assert.strictEqual(found, join(folder, "store-api", "tokens"))
  })
}

const putOver = <E>(
  layer: Layer.Layer<TokenStore.TokenStore, E>,
  config: ReadonlyArray<readonly [string, string]>
) =>
  Effect.flatMap(TokenStore.TokenStore, (store) => store.put("key", "entry", "1 minute"))
    .pipe(
      Effect.provide(layer),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map(config)))
    )

test.live("STORE_API_TOKEN_FOLDER is the folder of FileTokenStore.layerConfig", function*() {
  const folder = yield* newFolder
  yield* putOver(FileTokenStore.layerConfig(), [["STORE_API_TOKEN_FOLDER", folder]])
  assert.lengthOf(readdirSync(folder), 1)
})

test.live.runIf(process.platform === "linux")(
  "FileTokenStore.layerConfig uses the default folder if no variable is set",
  function*() {
    const state = yield* newFolder
    yield* withVariables({ XDG_STATE_HOME: state })(putOver(FileTokenStore.layerConfig(), []))
    assert.lengthOf(readdirSync(join(state, "store-api", "tokens")), 1)
  }
)

test.live("an empty STORE_API_TOKEN_FOLDER is an error that names it", function*() {
  const error = yield* Effect.flip(
    putOver(FileTokenStore.layerConfig(), [["STORE_API_TOKEN_FOLDER", ""]])
  )
  assert.include(JSON.stringify(error), "STORE_API_TOKEN_FOLDER")
  assert.match(JSON.stringify(error), /must not be empty|length of at least 1/)
})

test.live.each<readonly [when: string, last: string, step: "rename" | "link" | undefined]>([
  ["replaced", "new", undefined],
  ["replaced twice", "last", "link"],
  ["removed", "nothing", undefined]
])(
  "a removal keeps the last entry if the entry was %s",
  function*([when, last, step]) {
    const { files, folder, store } = yield* started
    yield* store.put("key", "old", "1 minute")
    const slow = yield* slowed(folder, {
      rename: when === "removed"
        ? store.remove("key", "old")
        : store.put("key", "new", "1 minute"),
      ...(step !== undefined && { [step]: store.put("key", last, "1 minute") })
    })
    assert.isFalse(yield* slow.remove("key", "old"))
    deepStrictEqual(Option.getOrElse(yield* entryOf(store, "key"), () => "nothing"), last)
    assert.lengthOf(files(), when === "removed" ? 0 : 1)
  }
)

test.live("an interrupted removal does not lose an entry that was replaced", function*() {
  const { files, folder, store } = yield* started
  yield* store.put("key", "old", "1 minute")
  const rename = store.put("key", "new", "1 minute")
  yield* interruptedAt("link", folder, (slow) => slow.remove("key", "old"), { rename })
  deepStrictEqual(yield* entryOf(store, "key"), Option.some("new"))
  assert.lengthOf(files(), 1)
})

test.live("a process does not take over an expired lease that was taken over", function*() {
  const { files, folder, store } = yield* started
  yield* store.lease("key", 0)
  const taken = yield* Deferred.make<TokenStore.Lease>()
  const slow = yield* slowed(folder, {
    rename: Effect.flatMap(
      Effect.map(store.lease("key", "1 minute"), Option.getOrThrow),
      (lease) => Deferred.succeed(taken, lease)
    )
  })
  deepStrictEqual(yield* slow.lease("key", "1 minute"), Option.none())
  assert.isTrue(yield* (yield* Deferred.await(taken)).extend)
  assert.lengthOf(files(), 1)
})

test.live("FileTokenStore grants a free lease once, at whatever step another process takes it", function*() {
  const steps = yield* atEachStep((at) =>
    Effect.gen(function*() {
      const { folder, store } = yield* started
      const other = yield* Deferred.make<Option.Option<TokenStore.Lease>>()
      const taking = Effect.flatMap(store.lease("key", "1 minute"), (lease) =>
        Deferred.succeed(other, lease))
      const lease = yield* (yield* storeOver(folder, at(taking))).lease("key", "1 minute")
      // Without a step before which the other process took it, there is no other lease.
      yield* Deferred.succeed(other, Option.none())
      assert.notStrictEqual(
        Option.isSome(lease),
        Option.isSome(yield* Deferred.await(other))
      )
    })
  )
  assert.isAbove(steps, 5)
})

test.live("FileTokenStore grants an expired lease to one of ten concurrent callers, rarely to two", function*() {
  const { store } = yield* started
  const rounds = 5
  let got = 0
  for (let round = 0; round < rounds; round++) {
    yield* store.lease(`key ${round}`, 0)
    const leases = yield* Effect.all(
      Effect.replicate(store.lease(`key ${round}`, "1 minute"), 10),
      {
        concurrency: "unbounded"
      }
    )
    assert.isTrue(leases.some(Option.isSome))
    got += leases.filter(Option.isSome).length
  }
  assert.isAtMost(got, 2 * rounds)
})

/** Each put removes expired files, of all keys. */
const putAnother = (store: TokenStore.Service) => store.put("another key", "entry", "1 minute")

type Added = (store: TokenStore.Service, folder: string) => Effect.Effect<unknown, unknown>

const part = (text: string): Added => (_, folder) =>
  Effect.sync(() => {
    mkdirSync(own(folder), { recursive: true, mode: 0o700 })
    writeFileSync(join(own(folder), `${randomUUID()}.part`), text)
  })

const addedFiles: ReadonlyArray<
  readonly [what: string, add: Added, age: number, isKept: boolean]
> = [
  ["a valid entry", ({ put }) => put("key", "entry", "1 minute"), 120, true],
  ["a valid lease", ({ lease }) => lease("key", "1 minute"), 120, true],
  ["an entry that expired lately", ({ put }) => put("key", "entry", 0), 20, true],
  ["a lease that expired lately", ({ lease }) => lease("key", 0), 20, true],
  ["a file that is being written", part(""), 20, true],
  ["an entry that expired a minute ago", ({ put }) => put("key", "entry", 0), 120, false],
  ["a lease that expired a minute ago", ({ lease }) => lease("key", 0), 120, false],
  ["an empty file of a crashed process", part(""), 120, false],
  [
    "a file of a crashed process",
    part(JSON.stringify({ value: "entry", from: 0, until: 1 })),
    120,
    false
  ]
]

for (const [what, add, seconds, isKept] of addedFiles) {
  test.live(`a put ${isKept ? "keeps" : "removes"} ${what}`, function*() {
    const { files, folder, store } = yield* started
    yield* add(store, folder)
    const [file = "", ...others] = files()
    deepStrictEqual(others, [])
    age(seconds, join(own(folder), file))
    yield* putAnother(store)
    assert.strictEqual(files().includes(file), isKept)
    assert.lengthOf(files(), isKept ? 2 : 1)
  })
}

test.live("FileTokenStore removes only its own files", function*() {
  const { fileOf, folder, store } = yield* started
  yield* store.put("key", "expired", 0)
  const [key, uuid] = ["0123456789abcdef0123456789abcdef", randomUUID()]
  const names = [
    "note",
    `${key}.entry.note`,
    `note.${key}.entry`,
    `${key}0.lease`,
    `${uuid}.partial`
  ]
    .concat(`note ${uuid}.part`, `${key}/sealed.${uuid}`).map((name) =>
      join(own(folder), name)
    )
  const foreign = [
    ...names,
    ...[`${key}.entry`, `${uuid}.part`].map((name) => join(folder, name))
  ]
  for (const file of foreign) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, "")
  }
  const expired = fileOf("entry")
  age(120, ...pathsIn(folder))
  yield* putAnother(store)
  assert.isFalse(existsSync(expired))
  deepStrictEqual(foreign.filter((file) => !existsSync(file)), [])
  yield* store.put("key", "entry", "1 minute")
  deepStrictEqual(yield* entryOf(store, "key"), Option.some("entry"))
})

test.live("FileTokenStore removes the other files if one cannot be read", function*() {
  const { fileOf, folder, store } = yield* started
  yield* store.put("key", "expired", 0)
  const expired = fileOf("entry")
  const unreadable = ["0", "f"].map((digit) => join(own(folder), `${digit.repeat(32)}.entry`))
  for (const path of unreadable) mkdirSync(path)
  age(120, ...pathsIn(folder))
  yield* putAnother(store)
  deepStrictEqual(yield* entryOf(store, "another key"), Option.some("entry"))
  assert.isFalse(existsSync(expired))
  for (const path of unreadable) assert.isTrue(existsSync(path))
})

const uses = {
  put: (store: TokenStore.Service) => store.put("key", "mine", "1 minute"),
  lease: (store: TokenStore.Service) =>
    Effect.map(store.lease("key", "1 minute"), Option.getOrThrow)
}

/** The entry or the lease exists, and no other process can get the lease. */
const expectOwnership = (
  store: TokenStore.Service,
  lease: TokenStore.Lease | undefined | void
) =>
  Effect.gen(function*() {
    if (lease === undefined) {
      deepStrictEqual(yield* entryOf(store, "key"), Option.some("mine"))
      return
    }
    deepStrictEqual([yield* lease.extend, yield* store.lease("key", "1 minute")], [
      true,
      Option.none()
    ])
  })

/** A store whose key has an expired entry and an expired lease. */
const expired = Effect.gen(function*() {
  const { folder, store } = yield* started
  yield* store.put("key", "old", 0)
  yield* store.lease("key", 0)
  age(120, ...pathsIn(folder))
  return { folder, store }
})

for (const [name, use] of Object.entries(uses)) {
  test.live(`the removal of expired files removes no file of a ${name}, at whatever step of it`, function*() {
    const steps = yield* atEachStep((at) =>
      Effect.gen(function*() {
        const { folder, store } = yield* expired
        const removal = Effect.suspend(() => {
          age(120, ...pathsIn(folder).filter((path) => !path.endsWith(".part")))
          return putAnother(store)
        })
        yield* expectOwnership(store, yield* use(yield* storeOver(folder, at(removal))))
      })
    )
    assert.isAbove(steps, 5)
  })

  test.live(`the removal of expired files keeps a ${name} that runs before any of its steps`, function*() {
    const steps = yield* atEachStep((at) =>
      Effect.gen(function*() {
        const { folder, store } = yield* expired
        const used: Array<TokenStore.Lease | void> = []
        const using = Effect.map(use(store), (lease) => used.push(lease))
        yield* putAnother(yield* storeOver(folder, at(using)))
        for (const lease of used) yield* expectOwnership(store, lease)
      })
    )
    assert.isAbove(steps, 10)
  })
}

const inTwoMinutes = Object.assign(Clock.make(), {
  currentTimeMillis: Effect.sync(() => Date.now() + 120_000)
})
const operations: Readonly<
  Record<string, (store: TokenStore.Service) => Effect.Effect<unknown, unknown>>
> = {
  put: (store) => store.put("key", "new", "1 minute"),
  lease: (store) =>
    Effect.map(store.lease("key", "50 millis"), Option.getOrThrow).pipe(
      Effect.tap(({ extend }) => extend),
      Effect.flatMap(({ release }) => release)
    ),
  remove: (store) => store.remove("key", "old")
}
for (const [name, operate] of Object.entries(operations)) {
  test.live(`the store still works after a process is killed before any step of a ${name}`, function*() {
    const steps = yield* atEachStep((at) =>
      Effect.gen(function*() {
        const { files, folder, store } = yield* started
        yield* store.put("key", "old", "1 minute")
        yield* store.lease("key", 0)
        age(120, ...pathsIn(folder))
        const killed = yield* Deferred.make<void>()
        const kill = Effect.zipRight(
          Deferred.succeed(killed, undefined),
          Effect.async<never>(() => undefined)
        )
        // It never ends, like an effect of a killed process.
        const operating = yield* Effect.forkDaemon(
          operate(yield* storeOver(folder, at(kill)))
        )
        yield* Effect.race(Deferred.await(killed), Fiber.await(operating))
        if (name === "remove" && Option.isNone(yield* store.get("key"))) {
          yield* store.put("key", "new", "1 minute")
        }
        yield* stillWorks(store, (entry) => entry === "old" || entry === "new")
        // Two minutes later its files are removed.
        yield* Effect.withClock(putAnother(store), inTwoMinutes)
        assert.lengthOf(files(), 1)
      })
    )
    assert.isAbove(steps, 5)
  })
}
