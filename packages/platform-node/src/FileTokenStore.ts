/**
 * A `TokenStore` in a folder, for the processes of one user on one machine, whether they run together or in turn.
 * `SharedTokenSource` seals the entries before the store sees them.
 *
 * @since 1.0.0
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
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { kindOf, type NotPrivate, reasonOf, requirePrivate } from "./internal/privateFolder.js"

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

/**
 * `homedir` throws for a user without an entry in the user database. Such a user cannot write to the root, so the store
 * fails.
 */
const homeFolder = () => Either.getOrElse(Either.try(homedir), () => "/")

/** Inside the given folder, which may hold other things too. */
const ownFolder = "store-api-v1"

/** The names that the store gives: two files per key, and files that are being written or removed. */
const isOurs = (name: string): boolean => /^([0-9a-f]{32}\.(entry|lease)|[0-9a-f-]{36}\.part)$/.test(name)

/**
 * The content of a file: an entry or the owner of a lease, valid from `from` until `until`, in milliseconds of the wall
 * clock.
 */
const content = Schema.parseJson(Schema.Struct({ value: Schema.String, from: Schema.Number, until: Schema.Number }))
const encode = Schema.encodeSync(content)
const decode = Schema.decodeOption(content)

/** A file that begins later than this many milliseconds from now is not valid: the wall clock was set back. */
const clockTolerance = 1000

const valueOf = (text: string, now: number): Option.Option<string> =>
  decode(text).pipe(
    Option.filter(({ from, until }) => from - clockTolerance <= now && now < until),
    Option.map(({ value }) => value)
  )

/** No process needs more milliseconds than this to write or remove a file. */
const leftoverMillis = 60_000

/**
 * Creates the store over the `FileSystem` in the context.
 *
 * A file gets its name only when it is complete: a reader finds the old entry or the new one, and after a crash at most
 * one token is lost. A lease ends by the wall clock, even if its holder was killed. Each `put` also removes expired
 * files of all keys.
 *
 * Two processes that take over an expired lease at the same moment may both get it, which costs one token request.
 * Nothing is flushed to the disk: a loss of power may damage an entry, which then counts as missing.
 *
 * @example
 * ```ts
 * import { NodeContext } from "@effect/platform-node" // Effect 4: NodeServices
 * import { FileTokenStore } from "@store-api/platform-node"
 * import { Effect } from "effect"
 *
 * const store = FileTokenStore.make({ folder: "/var/lib/shop/tokens" }).pipe(
 *   Effect.provide(NodeContext.layer) // Effect 4: NodeServices.layer
 * )
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  options: Options = {}
): Effect.Effect<Service, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const given = options.folder ?? (yield* defaultFolder)
    const folder = path.join(given, ownFolder)
    const fileOf = (key: string, kind: "entry" | "lease") =>
      path.join(folder, `${createHash("sha256").update(key).digest("hex").slice(0, 32)}.${kind}`)
    const newPart = () => path.join(folder, `${randomUUID()}.part`)
    const discard = (part: string) => Effect.ignore(fs.remove(part))

    /** Fails if other users could read or change the files. Accepts a missing folder. */
    const inspect = Effect.forEach([given, folder], (folder) =>
      Effect.flatMap(
        unless("NotFound", fs.stat(folder)),
        Option.match({ onNone: () => Effect.void, onSome: requirePrivate })
      ))

    const createFolder = Effect.zipRight(fs.makeDirectory(folder, { recursive: true, mode: 0o700 }), inspect)

    /**
     * A pipe counts as damaged: a read would never end, nor let the process exit. Another `stat` follows, because Node
     * 20 finds no modules after that of a pipe.
     */
    const readFile = (file: string) =>
      Effect.flatMap(Effect.option(fs.stat(file)), (info) =>
        Option.exists(info, ({ type }) => type === "FIFO")
          ? Effect.as(fs.stat(folder), "")
          : fs.readFileString(file))

    /** None if there is no such file. Its value is none if it is not valid now, was cut off, or is not the store's. */
    const read = (file: string) =>
      Effect.zipWith(
        unless("NotFound", readFile(file)),
        Clock.currentTimeMillis,
        (text, now) => Option.map(text, (text) => valueOf(text, now))
      )

    const exists = (file: string, matches: Predicate.Predicate<Option.Option<string>>) =>
      Effect.map(read(file), Option.exists(matches))

    /** Writes a file under a temporary name. In one step, `place` gives it its own. */
    const write = <A>(
      value: string,
      life: Duration.DurationInput,
      place: (part: string) => Effect.Effect<A, PlatformError>
    ): Effect.Effect<A, PlatformError> =>
      Effect.gen(function*() {
        const part = newPart()
        const from = yield* Clock.currentTimeMillis
        const until = Math.min(from + Duration.toMillis(life), Number.MAX_SAFE_INTEGER)
        return yield* Effect.zipRight(
          fs.writeFileString(part, encode({ value, from, until }), { mode: 0o600 }),
          place(part)
        ).pipe(Effect.ensuring(discard(part)))
      }).pipe(Effect.uninterruptible)

    /**
     * Removes a file if its value matches. Returns whether this process did it: only one of many can rename the same
     * file.
     */
    const removeIf = (file: string, matches: Predicate.Predicate<Option.Option<string>>) =>
      Effect.gen(function*() {
        if (!(yield* exists(file, matches))) return false
        const part = newPart()
        if (Option.isNone(yield* unless("NotFound", fs.rename(file, part)))) return false
        // Another process may have replaced the file after the check. Then it is put back, unless there is a newer one.
        const isRemoved = yield* exists(part, matches)
        if (!isRemoved) yield* Effect.ignore(fs.link(part, file))
        yield* discard(part)
        return isRemoved
      }).pipe(Effect.uninterruptible)

    /** Removes files that are not valid any more, and parts that crashed processes left. */
    const removeExpired = Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const isOld = ({ mtime }: FileSystem.File.Info) =>
        Option.exists(mtime, (at) => at.getTime() < now - leftoverMillis)
      for (const name of (yield* fs.readDirectory(folder)).filter(isOurs)) {
        const file = path.join(folder, name)
        yield* Effect.ignore(Effect.whenEffect(removeIf(file, Option.isNone), Effect.map(fs.stat(file), isOld)))
      }
    })

    const lease = (key: string, duration: Duration.DurationInput) =>
      Effect.gen(function*() {
        const file = fileOf(key, "lease")
        const owner: string = randomUUID()
        if (yield* exists(file, Option.isSome)) return Option.none<Lease>()
        yield* createFolder
        yield* removeIf(file, Option.isNone)
        // A link is an exclusive creation: it fails if there is a file, and its file is complete from the start.
        const created = yield* write(owner, duration, (part) => unless("AlreadyExists", fs.link(part, file)))
        const isHeld = Option.contains(owner)
        const extend = Effect.gen(function*() {
          if (!(yield* exists(file, isHeld))) return false
          yield* write(owner, duration, (part) => fs.rename(part, file))
          return true
        })
        return Option.as(created, {
          extend: operation("extend", extend),
          release: operation("release", Effect.asVoid(removeIf(file, isHeld)))
        })
      })

    const operation = <A>(
      operation: TokenStoreError["operation"],
      effect: Effect.Effect<A, PlatformError | NotPrivate>
    ): Effect.Effect<A, TokenStoreError> =>
      Effect.mapError(
        Effect.zipRight(inspect, effect),
        (error) => new TokenStoreError({ operation, reason: reasonOf(error) })
      )

    return TokenStore.of({
      get: (key) => operation("get", Effect.map(read(fileOf(key, "entry")), Option.flatten)),
      put: (key, entry, life) =>
        operation(
          "put",
          createFolder.pipe(
            Effect.zipRight(write(entry, life, (part) => fs.rename(part, fileOf(key, "entry")))),
            Effect.zipLeft(Effect.ignore(removeExpired))
          )
        ),
      remove: (key, entry) => operation("remove", removeIf(fileOf(key, "entry"), Option.contains(entry))),
      lease: (key, duration) => operation("lease", lease(key, duration))
    })
  })

/**
 * Provides the store as a layer. Building it does not touch the disk.
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
export const layer = (options: Options = {}): Layer.Layer<TokenStore> =>
  Layer.provide(Layer.effect(TokenStore, make(options)), [NodeFileSystem.layer, NodePath.layer])

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
 *   folder: Config.nonEmptyString("SHOP_TOKENS") // Effect 4: Config.NonEmptyString
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
): Layer.Layer<TokenStore, ConfigError.ConfigError> => Layer.unwrapEffect(Effect.map(Config.unwrap(config), layer))

/** None if the operation fails in this way. */
const unless = <A>(
  kind: ReturnType<typeof kindOf>,
  effect: Effect.Effect<A, PlatformError>
): Effect.Effect<Option.Option<A>, PlatformError> =>
  Effect.map(effect, Option.some).pipe(
    Effect.catchIf((error) => kindOf(error) === kind, () => Effect.succeedNone)
  )
