/** Files in one folder, each with a value that is valid for some time. */
import { createHash, randomUUID } from "node:crypto"
import { uptime as systemUptime } from "node:os"
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { kindOf } from "./privateFolder.js"

export interface Folder {
  readonly fs: FileSystem.FileSystem
  readonly path: string
  readonly at: (name: string) => string
}

/** A value, and how long it is valid from now. */
export interface Content {
  readonly value: string
  readonly life: Duration.DurationInput
}

export const nameOf = (key: string, kind: "entry" | "lease"): string =>
  `${createHash("sha256").update(key).digest("hex").slice(0, 32)}.${kind}`

/** The names of files with a value, and of those that are being written or removed. */
const isOurs = (name: string): boolean =>
  /^([0-9a-f]{32}\.(entry|lease)|[0-9a-f-]{36}\.part)$/.test(name)

/** Valid from `from` until `until`, in milliseconds of the wall clock. */
const Stored = Schema.parseJson(Schema.Struct({
  value: Schema.String,
  from: Schema.Number,
  until: Schema.Number,
  /** How long the machine had run at `from`. Older versions did not write it. */
  uptime: Schema.optionalWith(Schema.Number, { as: "Option" })
}))
const encode = Schema.encodeSync(Stored)
const decode = Schema.decodeOption(Stored)

/** Both clocks of the machine, in milliseconds. Nobody can set back its uptime, which is not known everywhere. */
const machineTime = Effect.map(Clock.currentTimeMillis, (now) => ({
  now,
  uptime: Option.map(Option.liftThrowable(systemUptime)(), (seconds) => seconds * 1000)
}))

/**
 * A file that begins later than this many milliseconds from now is not valid: the wall clock was set back. Some systems
 * count the uptime in whole seconds.
 */
const clockTolerance = 1000

/** No process needs more milliseconds than this to write or remove a file. */
const leftoverMillis = 60_000

/** What a file has now. */
export interface Found {
  /** `undefined` if it is not valid now, was cut off, or is not the store's. */
  readonly value: string | undefined
  /** The milliseconds for which it remains valid. */
  readonly remaining: number
}

const invalid: Found = { value: undefined, remaining: 0 }

/** Returns `undefined` if there is no such file. */
export const read = (
  folder: Folder,
  name: string
): Effect.Effect<Found | undefined, PlatformError> =>
  Effect.zipWith(
    unless("NotFound", readFile(folder, folder.at(name))),
    machineTime,
    (text, time) => {
      if (text === undefined) return undefined
      return Option.match(decode(text), {
        onNone: () => invalid,
        onSome: ({ from, until, uptime, value }) => {
          // After a restart of the machine, this is less than the time that has passed, and the wall clock counts.
          const running = Option.zipWith(time.uptime, uptime, (now, then) =>
            now - then - clockTolerance)
          const elapsed = Math.max(
            time.now - from,
            Option.getOrElse(running, () =>
              0),
            0
          )
          const remaining = until - from - elapsed
          return time.now < from - clockTolerance || remaining <= 0
            ? invalid
            : { value, remaining }
        }
      })
    }
  )

/**
 * A pipe counts as damaged: a read would never end, nor let the process exit. Another `stat` follows, because Node 20
 * finds no modules after that of a pipe.
 */
const readFile = ({ fs, path }: Folder, file: string) =>
  Effect.flatMap(
    Effect.option(fs.stat(file)),
    (info) =>
      Option.exists(info, ({ type }) => type === "FIFO")
        ? Effect.as(fs.stat(path), "")
        : fs.readFileString(file)
  )

type Matches = (value: string | undefined) => boolean

/** Whether there is a file, and its value matches. */
export const exists = (
  folder: Folder,
  name: string,
  matches: Matches
) => Effect.map(read(folder, name), (file) => file !== undefined && matches(file.value))

/** Creates or replaces a file. */
export const replace = (
  folder: Folder,
  name: string,
  content: Content
) => write(folder, content, (part) => folder.fs.rename(part, folder.at(name)))

/** Creates a file, which is complete from the start. Returns whether there was none. */
export const create = (
  folder: Folder,
  name: string,
  content: Content
) =>
  write(
    folder,
    content,
    (part) => succeeds("AlreadyExists", folder.fs.link(part, folder.at(name)))
  )

/** Writes a file under a temporary name. In one step, `place` gives it its own. */
const write = <A>(
  { at, fs }: Folder,
  { life, value }: Content,
  place: (part: string) => Effect.Effect<A, PlatformError>
) =>
  Effect.gen(function*() {
    const part = at(newPart())
    const { now: from, uptime } = yield* machineTime
    const until = Math.min(from + Duration.toMillis(life), Number.MAX_SAFE_INTEGER)
    return yield* Effect.zipRight(
      fs.writeFileString(part, encode({ value, from, until, uptime }), { mode: 0o600 }),
      place(part)
    ).pipe(Effect.ensuring(Effect.ignore(fs.remove(part))))
  }).pipe(Effect.uninterruptible)

const newPart = () => `${randomUUID()}.part`

/**
 * Removes a file if its value matches. Returns whether this process did it: only one of many can rename the same file.
 */
export const removeIf = (
  folder: Folder,
  name: string,
  matches: Matches
) =>
  Effect.gen(function*() {
    if (!(yield* exists(folder, name, matches))) return false
    const { at, fs } = folder
    const part = newPart()
    if (!(yield* succeeds("NotFound", fs.rename(at(name), at(part))))) return false
    // Another process may have replaced the file after the check. Then it is put back, unless there is a newer one.
    const isRemoved = yield* exists(folder, part, matches)
    if (!isRemoved) yield* Effect.ignore(fs.link(at(part), at(name)))
    yield* Effect.ignore(fs.remove(at(part)))
    return isRemoved
  }).pipe(Effect.uninterruptible)

/** Removes files that are not valid any more, and parts that crashed processes left. */
export const removeExpired = (folder: Folder) =>
  Effect.gen(function*() {
    const { at, fs, path } = folder
    const now = yield* Clock.currentTimeMillis
    const isOld = ({ mtime }: FileSystem.File.Info) =>
      Option.exists(mtime, (at) => at.getTime() < now - leftoverMillis)
    for (const name of (yield* fs.readDirectory(path)).filter(isOurs)) {
      const remove = removeIf(folder, name, (value) => value === undefined)
      yield* Effect.ignore(Effect.whenEffect(remove, Effect.map(fs.stat(at(name)), isOld)))
    }
  })

/** Returns `undefined` if the operation fails in this way. */
export const unless = <A>(
  kind: ReturnType<typeof kindOf>,
  effect: Effect.Effect<A, PlatformError>
): Effect.Effect<A | undefined, PlatformError> =>
  Effect.catchIf(effect, (error) => kindOf(error) === kind, () => Effect.succeed(undefined))

/** Returns `false` if the operation fails in this way. */
const succeeds = (
  kind: ReturnType<typeof kindOf>,
  effect: Effect.Effect<void, PlatformError>
) => Effect.map(unless(kind, Effect.as(effect, true)), (isDone) => isDone === true)
