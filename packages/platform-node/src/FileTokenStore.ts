/**
 * `TokenStore` in a folder: the processes of one user on one machine share a token, also one after the other. Entries are
 * sealed before they come here.
 *
 * @since 0.1.0
 */
import { createHash, randomUUID } from "node:crypto"
import { homedir } from "node:os"
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { type Lease, type Service, TokenStore, TokenStoreError } from "@store-api/core/TokenStore"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { type NotPrivate, notPrivate, reasonOf } from "./internal/privateFolder.js"
import * as slots from "./internal/slots.js"

/**
 * Where the store is.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /**
   * A folder of this user alone (mode 0700), on a file system of this machine. It is made when the first entry comes; one that
   * others may open or that belongs to somebody else is not used: each operation fails. The store works in `store-api-v1` in
   * it, and leaves alone what else is there. Default: `defaultFolder`.
   */
  readonly folder?: string | undefined
}

/**
 * The folder of this user: `store-api/tokens` in `XDG_STATE_HOME` or `~/.local/state`, on macOS in `~/Library/Caches`, on
 * Windows in `LOCALAPPDATA`.
 *
 * @example
 * ```ts
 * import { FileTokenStore } from "@store-api/platform-node"
 * import { Effect } from "effect"
 *
 * const told = Effect.flatMap(FileTokenStore.defaultFolder, (folder) => Effect.logInfo(`tokens are kept in ${folder}`))
 * ```
 *
 * @since 0.1.0
 * @category constants
 */
export const defaultFolder: Effect.Effect<string> = Effect.map(
  Effect.all([Path.Path, Effect.sync(() => process.platform)]),
  ([path, platform]) => {
    const absolute = (name: string) =>
      Option.filter(Option.fromNullable(process.env[name]), (folder) => path.isAbsolute(folder))
    const home = (...folders: ReadonlyArray<string>) => path.join(homedir(), ...folders)
    const base = platform === "win32"
      ? Option.getOrElse(absolute("LOCALAPPDATA"), () => home("AppData", "Local"))
      : platform === "darwin"
      ? home("Library", "Caches")
      : Option.getOrElse(absolute("XDG_STATE_HOME"), () => home(".local", "state"))
    return path.join(base, "store-api", "tokens")
  }
).pipe(Effect.provide(NodePath.layer))

/** In the folder that is given, which may hold other things too. */
const ownFolder = "store-api-v1"

/** After that, what no slot names belongs to nobody who still works on it. */
const leftoverMillis = 60_000

/**
 * The store over the `FileSystem` in the context.
 *
 * Each step is one rename, which the kernel lets one of many processes do: there is no lock that a crashed process could
 * leave behind, a reader finds the old entry or the new one, and a lease ends by the wall clock, whatever became of its
 * holder. Nothing is flushed to the disk: after a loss of power an entry may be gone or damaged, which is a miss.
 *
 * @example
 * ```ts
 * import { NodeContext } from "@effect/platform-node"
 * import { FileTokenStore } from "@store-api/platform-node"
 * import { Effect } from "effect"
 *
 * const store = FileTokenStore.make({ folder: "/var/lib/shop/tokens" }).pipe(Effect.provide(NodeContext.layer))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Options = {}
): Effect.Effect<Service, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const { create, list, removeOurs, swap, write } = yield* slots.make
    const given = options.folder ?? (yield* defaultFolder)
    const root = path.join(given, ownFolder)
    const folderOf = (key: string) => path.join(root, createHash("sha256").update(key).digest("hex").slice(0, 32))
    const fileOf = (folder: string, id: string) => path.join(folder, slots.sealed + id)

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

    const find = (folder: string) =>
      Effect.if(isOurs, { onTrue: () => list(folder), onFalse: () => Effect.succeedNone })

    const findOrCreate = (folder: string): Effect.Effect<slots.Names, PlatformError | NotPrivate> =>
      Effect.gen(function*() {
        while (true) {
          const found = yield* find(folder)
          if (Option.isSome(found)) return found.value
          yield* fs.makeDirectory(root, { recursive: true, mode: 0o700 })
          yield* create(folder)
        }
      })

    /** The entry that counts, with its slot. */
    const read = (folder: string) =>
      Effect.gen(function*() {
        let last = ""
        while (true) {
          const slot = Option.map(yield* find(folder), ({ slots }) => slots.entry)
          const now = yield* Clock.currentTimeMillis
          if (Option.isNone(slot) || !slots.counts(slot.value, now)) return Option.none<Entry>()
          const text = yield* slots.unlessMissing(fs.readFileString(fileOf(folder, slot.value.id)))
          if (Option.isSome(text)) {
            return Option.map(decode(text.value), (entry) => ({ entry, slot: slot.value }))
          }
          // Replaced while it was looked up, or taken out by hand.
          if (slot.value.id === last) return Option.none()
          last = slot.value.id
        }
      })

    const drop = (file: string) => Effect.ignore(fs.remove(file, { force: true }))

    const put = (key: string, entry: string, life: Duration.DurationInput) =>
      Effect.gen(function*() {
        const folder = folderOf(key)
        const id = randomUUID()
        const next = slots.taken("entry", id, yield* Clock.currentTimeMillis, Duration.toMillis(life))
        yield* findOrCreate(folder)
        const file = fileOf(folder, id)
        yield* Effect.onError(write(file, encode(entry)), () => drop(file))
        // Once it is named it stays, also for a caller who has gone.
        yield* Effect.gen(function*() {
          while (true) {
            const last = (yield* findOrCreate(folder)).slots.entry
            if (yield* swap(folder, last, next)) return yield* drop(fileOf(folder, last.id))
          }
        }).pipe(Effect.onError(() => drop(file)), Effect.uninterruptible)
        yield* Effect.ignore(sweep)
      })

    const removeEntry = (key: string, entry: string) =>
      Effect.gen(function*() {
        const folder = folderOf(key)
        while (true) {
          const found = yield* read(folder)
          if (Option.isNone(found) || found.value.entry !== entry) return false
          if (yield* swap(folder, found.value.slot, slots.empty("entry"))) {
            yield* drop(fileOf(folder, found.value.slot.id))
            return true
          }
        }
      })

    const takeLease = (key: string, duration: Duration.DurationInput) =>
      Effect.gen(function*() {
        const folder = folderOf(key)
        const millis = Duration.toMillis(duration)
        const owner = randomUUID()
        while (true) {
          const { lease } = (yield* findOrCreate(folder)).slots
          const now = yield* Clock.currentTimeMillis
          if (slots.counts(lease, now)) return Option.none()
          if (yield* swap(folder, lease, slots.taken("lease", owner, now, millis))) {
            return Option.some(leaseOf(folder, owner, millis))
          }
        }
      })

    const leaseOf = (folder: string, owner: string, millis: number): Lease => {
      /** The slot, while it is this owner's. */
      const held = Effect.map(
        find(folder),
        (found) => Option.filter(Option.map(found, ({ slots }) => slots.lease), ({ id }) => id === owner)
      )
      return {
        extend: operation(
          "extend",
          Effect.gen(function*() {
            while (true) {
              const lease = yield* held
              const now = yield* Clock.currentTimeMillis
              if (Option.isNone(lease) || !slots.counts(lease.value, now)) return false
              if (yield* swap(folder, lease.value, slots.taken("lease", owner, now, millis))) return true
            }
          })
        ),
        release: operation(
          "release",
          Effect.gen(function*() {
            while (true) {
              const lease = yield* held
              if (Option.isNone(lease) || (yield* swap(folder, lease.value, slots.empty("lease")))) return
            }
          })
        )
      }
    }

    /** Files whose entry is over or was never named, and folders that were being made: a crashed process left them. */
    const sweep = Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const isOld = (file: string) =>
        Effect.map(fs.stat(file), ({ mtime }) => Option.exists(mtime, (at) => at.getTime() < now - leftoverMillis))
      const ifOld = (file: string, remove: Effect.Effect<void, PlatformError>) =>
        Effect.ignore(Effect.whenEffect(remove, isOld(file)))
      for (const name of yield* fs.readDirectory(root)) {
        const folder = path.join(root, name)
        if (slots.isAborted(name)) yield* ifOld(folder, removeOurs(folder))
        if (!isFolderOfKey(name)) continue
        for (const { others, slots: { entry } } of Option.toArray(yield* list(folder))) {
          const named = slots.counts(entry, now) ? slots.sealed + entry.id : ""
          const leftovers = others.filter((other) => slots.isSealed(other) && other !== named)
          yield* Effect.forEach(leftovers, (other) => {
            const file = path.join(folder, other)
            return ifOld(file, fs.remove(file, { force: true }))
          }, { discard: true })
        }
      }
    })

    return TokenStore.of({
      get: (key) => operation("get", Effect.map(read(folderOf(key)), Option.map(({ entry }) => entry))),
      put: (key, entry, life) => operation("put", put(key, entry, life)),
      remove: (key, entry) => operation("remove", removeEntry(key, entry)),
      lease: (key, duration) => operation("lease", takeLease(key, duration))
    })
  })

/**
 * The store as a layer. Nothing is read or made until the first operation.
 *
 * @example
 * ```ts
 * import { ClientCredentials, SharedTokenSource, TokenEndpoint } from "@store-api/core"
 * import { FileTokenStore, NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
 * import { Layer } from "effect"
 *
 * const options = { authUrl: "https://auth.store.example", credentials: ClientCredentials.fromConfig() }
 *
 * const StoreAuthLive = NodeStoreAuth.layerFromSource({ apiUrl: "https://api.store.example" }).pipe(
 *   Layer.provide(SharedTokenSource.layer(options)),
 *   Layer.provide([TokenEndpoint.layer(options), FileTokenStore.layer()]),
 *   Layer.provide(NodeHttp.layer())
 * )
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<TokenStore> =>
  Layer.provide(Layer.effect(TokenStore, make(options)), [NodeFileSystem.layer, NodePath.layer])

/**
 * The same from the configuration. Default: the folder that `STORE_API_TOKEN_FOLDER` names, or `defaultFolder` without it.
 *
 * @example
 * ```ts
 * import { FileTokenStore } from "@store-api/platform-node"
 * import { Config } from "effect"
 *
 * const StoreLive = FileTokenStore.layerConfig({ folder: Config.nonEmptyString("SHOP_TOKENS") })
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  config: Config.Config.Wrap<Options> = {
    folder: Config.string("STORE_API_TOKEN_FOLDER").pipe(
      Config.validate({ message: "must not be empty", validation: (folder) => folder !== "" }),
      Config.withDefault(undefined)
    )
  }
): Layer.Layer<TokenStore, ConfigError.ConfigError> => Layer.unwrapEffect(Effect.map(Config.unwrap(config), layer))

const isFolderOfKey = (name: string): boolean => /^[0-9a-f]{32}$/.test(name)

/** As JSON, so that a file that was cut off is none. */
const json = Schema.parseJson(Schema.String)
const encode = Schema.encodeSync(json)
const decode = Schema.decodeOption(json)

/** What counts, and where it is named. */
interface Entry {
  readonly entry: string
  readonly slot: slots.Slot
}

const operation = <A>(
  operation: TokenStoreError["operation"],
  effect: Effect.Effect<A, PlatformError | NotPrivate>
): Effect.Effect<A, TokenStoreError> =>
  Effect.mapError(effect, (error) => new TokenStoreError({ operation, reason: reasonOf(error) }))
