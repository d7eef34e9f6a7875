/**
 * A `TokenStore` in a folder, for the processes of one user on one machine, whether they run together or in turn.
 * `SharedTokenSource` seals the entries before the store sees them.
 *
 * @since 1.0.0
 */
import { randomUUID } from "node:crypto"
import { homedir } from "node:os"
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import type { ConfigurationError } from "@store-api/core/AccessTokenError"
import {
  type Lease,
  type Service,
  TokenStore,
  TokenStoreError
} from "@store-api/core/TokenStore"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as files from "./internal/expiringFiles.js"
import { check, checkRecord } from "./internal/options.js"
import { reasonOf, requirePrivate } from "./internal/privateFolder.js"

/**
 * The folder of the store.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /**
   * A folder that only this user can open (mode 0700), on a file system of this machine that has hard links. The first
   * write creates it. If other users can open or own it, each operation fails. The store works in the folder
   * `store-api-v1` in it and leaves everything else alone. Default: `defaultFolder`.
   */
  readonly folder?: string | undefined
}

/**
 * The folder of this user: `store-api/tokens` in `XDG_STATE_HOME` or `~/.local/state`, on macOS in `~/Library/Caches`,
 * on Windows in `LOCALAPPDATA`.
 *
 * @example
 * ```ts
 * import { FileTokenStore } from "@store-api/platform-node"
 * import { Effect } from "effect"
 *
 * const logged = Effect.flatMap(FileTokenStore.defaultFolder, (folder) => Effect.logInfo(`Token folder: ${folder}`))
 * ```
 *
 * @since 1.0.0
 * @category constants
 */
export const defaultFolder: Effect.Effect<string> = Effect.map(
  Effect.all([Path.Path, Effect.sync(() => process.platform)]),
  ([path, platform]) => {
    const absolute = (name: string) =>
      Option.filter(
        Option.fromNullable(process.env[name]),
        (folder) => path.isAbsolute(folder)
      )
    const home = (...folders: ReadonlyArray<string>) => path.join(homeFolder(), ...folders)
    const base = platform === "win32"
      ? Option.getOrElse(absolute("LOCALAPPDATA"), () => home("AppData", "Local"))
      : platform === "darwin"
      ? home("Library", "Caches")
      : Option.getOrElse(absolute("XDG_STATE_HOME"), () => home(".local", "state"))
    return path.join(base, "store-api", "tokens")
  }
).pipe(Effect.provide(NodePath.layer))

/**
 * `homedir` throws for a user without an entry in the user database. Such a user cannot write to the root, so the store
 * fails.
 */
const homeFolder = () => Either.getOrElse(Either.try(homedir), () => "/")

/**
 * Creates the store over the `FileSystem` in the context. Fails with `ConfigurationError` if the name of the folder is
 * empty or not a text.
 *
 * A file gets its name only when it is complete: a reader finds the old entry or the new one, and after a crash at most
 * one token is lost. A lease ends after its duration, even if its holder was killed. Each `put` also removes expired
 * files of all keys.
 *
 * Time is that of the wall clock. If it is set back, the uptime of the machine counts until the machine restarts.
 *
 * Two processes that take over an expired lease at the same moment may both get it, which costs one token request.
 * Nothing is flushed to the disk: a loss of power may damage an entry, which then counts as missing.
 *
 * @example
 * ```ts
 * import { NodeContext } from "@effect/platform-node"
 * import { FileTokenStore } from "@store-api/platform-node"
 * import { Effect } from "effect"
 *
 * const store = FileTokenStore.make({ folder: "/var/lib/shop/tokens" }).pipe(
 *   Effect.provide(NodeContext.layer)
 * )
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  options: Options = {}
): Effect.Effect<Service, ConfigurationError, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    yield* checkRecord("FileTokenStore", options)
    const outer = options.folder === undefined ? yield* defaultFolder : options.folder
    yield* check(
      "FileTokenStore.folder",
      Predicate.isString(outer) && outer !== "",
      "must be the path of a folder"
    )
    const own = path.join(outer, ownFolder)
    const folder: files.Folder = { fs, path: own, at: (name) => path.join(own, name) }
    const inspect = requirePrivateFolders(fs, [outer, own])
    const create = Effect.zipRight(
      fs.makeDirectory(own, { recursive: true, mode: 0o700 }),
      inspect
    )

    const operation = <A>(
      operation: TokenStoreError["operation"],
      effect: Effect.Effect<A, PlatformError | string>
    ): Effect.Effect<A, TokenStoreError> =>
      Effect.mapError(
        Effect.zipRight(inspect, effect),
        (error) =>
          new TokenStoreError({
            operation,
            reason: Predicate.isString(error) ? error : reasonOf(error)
          })
      )

    return TokenStore.of({
      get: (key) =>
        operation(
          "get",
          Effect.map(files.read(folder, entryOf(key)), (file) =>
            file?.value === undefined
              ? Option.none()
              : Option.some({ entry: file.value, remaining: file.remaining }))
        ),
      put: (key, value, life) =>
        operation(
          "put",
          Effect.zipRight(create, files.replace(folder, entryOf(key), { value, life }))
        ).pipe(
          Effect.zipLeft(Effect.ignore(files.removeExpired(folder)))
        ),
      remove: (key, entry) =>
        operation("remove", files.removeIf(folder, entryOf(key), (value) => value === entry)),
      lease: (key, life) =>
        Effect.map(
          operation(
            "lease",
            takeLease(folder, create, { name: files.nameOf(key, "lease"), life })
          ),
          Option.map(({ extend, release }): Lease => ({
            extend: operation("extend", extend),
            release: operation("release", release)
          }))
        )
    })
  })

/** Inside the given folder, which may hold other things too. */
const ownFolder = "store-api-v1"

const entryOf = (key: string) => files.nameOf(key, "entry")

/** Fails if other users could read or change the files. Accepts a missing folder. */
const requirePrivateFolders = (fs: FileSystem.FileSystem, folders: ReadonlyArray<string>) =>
  Effect.forEach(folders, (folder) =>
    Effect.flatMap(
      files.unless("NotFound", fs.stat(folder)),
      (info) => info === undefined ? Effect.void : requirePrivate(info)
    ))

/** Creates the file of a lease, unless another process has the lease. */
const takeLease = <E>(
  folder: files.Folder,
  createFolder: Effect.Effect<unknown, E>,
  { life, name }: { readonly name: string; readonly life: Duration.DurationInput }
) =>
  Effect.gen(function*() {
    const owner = randomUUID()
    const isOwn = (value: string | undefined) => value === owner
    if (yield* files.exists(folder, name, (value) => value !== undefined)) return Option.none()
    yield* createFolder
    yield* files.removeIf(folder, name, (value) => value === undefined)
    if (!(yield* files.create(folder, name, { value: owner, life }))) return Option.none()
    const extend = Effect.tap(
      files.exists(folder, name, isOwn),
      (isHeld) => isHeld ? files.replace(folder, name, { value: owner, life }) : Effect.void
    )
    return Option.some({ extend, release: Effect.asVoid(files.removeIf(folder, name, isOwn)) })
  })

/**
 * Provides the store as a layer. Building it does not touch the disk. Fails with `ConfigurationError` like `make`.
 *
 * @example
 * ```ts
 * import { FileTokenStore, NodeStoreAuth } from "@store-api/platform-node"
 * import { Layer } from "effect"
 *
 * const StoreAuthLive = NodeStoreAuth.layerSharedConfig().pipe(Layer.provide(FileTokenStore.layer()))
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<TokenStore, ConfigurationError> =>
  Layer.provide(Layer.effect(TokenStore, make(options)), [
    NodeFileSystem.layer,
    NodePath.layer
  ])

/**
 * Provides the store with a folder from the configuration. Default: the folder that `STORE_API_TOKEN_FOLDER` names, or
 * `defaultFolder` if it names none.
 *
 * @example
 * ```ts
 * import { FileTokenStore } from "@store-api/platform-node"
 * import { Config } from "effect"
 *
 * const StoreLive = FileTokenStore.layerConfig({
 *   folder: Config.nonEmptyString("SHOP_TOKENS")
 * })
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerConfig = (
  config: Config.Config.Wrap<Options> = {
    folder: Config.string("STORE_API_TOKEN_FOLDER").pipe(
      Config.validate({ message: "must not be empty", validation: (folder) => folder !== "" }),
      Config.withDefault(undefined)
    )
  }
): Layer.Layer<TokenStore, ConfigurationError | ConfigError.ConfigError> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(config), layer))
