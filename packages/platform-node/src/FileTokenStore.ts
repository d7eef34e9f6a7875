/**
 * `TokenStore` in a folder: the processes of one user on one machine share a token, also one after the other. Entries are
 * sealed before they come here.
 *
 * @since 0.1.0
 */
import { randomUUID } from "node:crypto"
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
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { make as makeKeys } from "./internal/keys.js"
import { type NotPrivate, reasonOf } from "./internal/privateFolder.js"
import * as slots from "./internal/slots.js"
import { make as makeSweep } from "./internal/sweep.js"

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
    const home = (...folders: ReadonlyArray<string>) => path.join(homeFolder(), ...folders)
    const base = platform === "win32"
      ? Option.getOrElse(absolute("LOCALAPPDATA"), () => home("AppData", "Local"))
      : platform === "darwin"
      ? home("Library", "Caches")
      : Option.getOrElse(absolute("XDG_STATE_HOME"), () => home(".local", "state"))
    return path.join(base, "store-api", "tokens")
  }
).pipe(Effect.provide(NodePath.layer))

/** A user whom the system does not know has none, and Node throws; as elsewhere it is the root then, which such a user cannot use. */
const homeFolder = () => Either.getOrElse(Either.try(homedir), () => "/")

/** In the folder that is given, which may hold other things too. */
const ownFolder = "store-api-v1"

/**
 * The store over the `FileSystem` in the context.
 *
 * Each step is one rename, which the kernel lets one of many processes do: there is no lock that a crashed process could
 * leave behind, a reader finds the old entry or the new one, and a lease ends by the wall clock, whatever became of its
 * holder. Nothing is flushed to the disk: after a loss of power an entry may be gone or damaged, which is a miss. Each `put`
 * takes away what is over, of all keys.
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
    const { swap, write } = yield* slots.make
    const given = options.folder ?? (yield* defaultFolder)
    const root = path.join(given, ownFolder)
    const { find, findOrCreate, folderOf } = yield* makeKeys(given, root)
    const sweep = yield* makeSweep(root)
    const fileOf = (folder: string, { id }: slots.Slot) => path.join(folder, slots.sealed + id)

    /** The entry that counts, with the state that names it. */
    const read = (folder: string) =>
      Effect.gen(function*() {
        let last = ""
        while (true) {
          const state = yield* find(folder)
          const now = yield* Clock.currentTimeMillis
          if (Option.isNone(state) || !slots.counts(state.value.entry, now)) return Option.none<Entry>()
          const text = yield* slots.unlessMissing(fs.readFileString(fileOf(folder, state.value.entry)))
          if (Option.isSome(text)) {
            return Option.map(decode(text.value), (entry) => ({ entry, state: state.value }))
          }
          // Replaced while it was looked up, or taken out by hand.
          if (state.value.entry.id === last) return Option.none()
          last = state.value.entry.id
        }
      })

    const drop = (file: string) => Effect.ignore(fs.remove(file, { force: true }))

    const put = (key: string, text: string, life: Duration.DurationInput) =>
      Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        const folder = folderOf(key)
        while (!(yield* putAs(folder, slots.taken(randomUUID(), now, Duration.toMillis(life)), text))) {
          // The folder went while the entry was written. The next has a name of its own.
        }
        yield* sweep
      })

    const putAs = (folder: string, entry: slots.Slot, text: string) =>
      Effect.gen(function*() {
        yield* findOrCreate(folder)
        const file = fileOf(folder, entry)
        const written = yield* Effect.onError(
          slots.unlessMissing(write(file, encode(text))),
          () => drop(file)
        )
        if (Option.isNone(written)) return false
        // Once it is named it stays, also for a caller who has gone.
        return yield* Effect.gen(function*() {
          while (true) {
            const last = yield* findOrCreate(folder)
            // Between the look and the swap: if both are of one folder, the file is in that one.
            if (!(yield* fs.exists(file))) return false
            if (yield* swap(folder, last, { ...last, entry })) {
              yield* drop(fileOf(folder, last.entry))
              return true
            }
          }
        }).pipe(Effect.onError(() => drop(file)), Effect.uninterruptible)
      })

    const removeEntry = (key: string, entry: string) =>
      Effect.gen(function*() {
        const folder = folderOf(key)
        while (true) {
          const found = yield* read(folder)
          if (Option.isNone(found) || found.value.entry !== entry) return false
          const { state } = found.value
          if (yield* swap(folder, state, { ...state, entry: slots.empty() })) {
            yield* drop(fileOf(folder, state.entry))
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
          const state = yield* findOrCreate(folder)
          const now = yield* Clock.currentTimeMillis
          if (slots.counts(state.lease, now)) return Option.none()
          if (yield* swap(folder, state, { ...state, lease: slots.taken(owner, now, millis) })) {
            return Option.some(leaseOf(folder, owner, millis))
          }
        }
      })

    const leaseOf = (folder: string, owner: string, millis: number): Lease => {
      /** The state, while the lease is this owner's. */
      const held = Effect.map(find(folder), Option.filter(({ lease }) => lease.id === owner))
      return {
        extend: operation(
          "extend",
          Effect.gen(function*() {
            while (true) {
              const state = yield* held
              const now = yield* Clock.currentTimeMillis
              if (Option.isNone(state) || !slots.counts(state.value.lease, now)) return false
              const lease = slots.taken(owner, now, millis)
              if (yield* swap(folder, state.value, { ...state.value, lease })) return true
            }
          })
        ),
        release: operation(
          "release",
          Effect.gen(function*() {
            while (true) {
              const state = yield* held
              if (Option.isNone(state)) return
              if (yield* swap(folder, state.value, { ...state.value, lease: slots.empty() })) return
            }
          })
        )
      }
    }

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

/** As JSON, so that a file that was cut off is none. */
const json = Schema.parseJson(Schema.String)
const encode = Schema.encodeSync(json)
const decode = Schema.decodeOption(json)

/** What counts, and where it is named. */
interface Entry {
  readonly entry: string
  readonly state: slots.State
}

const operation = <A>(
  operation: TokenStoreError["operation"],
  effect: Effect.Effect<A, PlatformError | NotPrivate>
): Effect.Effect<A, TokenStoreError> =>
  Effect.mapError(effect, (error) => new TokenStoreError({ operation, reason: reasonOf(error) }))
