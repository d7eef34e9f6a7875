/**
 * Values that processes change together, kept in the names of files. A slot is one file; its name says what is in it, and a
 * change is a rename of that name into another. A name is of one owner or one entry, so it does not come back, and of many who
 * rename the same file the kernel lets one succeed: so each change is a comparison and a swap in one, no lock is held at any
 * moment, and a process that dies leaves the old name or the new one.
 */
import { randomUUID } from "node:crypto"
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"

const kinds = ["entry", "lease"] as const

export type Kind = typeof kinds[number]

/** What a name says: whose or which it is, and from when to when that counts, in milliseconds of the wall clock. */
export interface Slot {
  readonly kind: Kind
  readonly id: string
  readonly from: number
  readonly until: number
}

/** The slots of a key, and the other names beside them. */
export interface Names {
  readonly slots: Readonly<Record<Kind, Slot>>
  readonly others: ReadonlyArray<string>
}

/** Of no one, of nothing. */
export const empty = (kind: Kind): Slot => ({ kind, id: randomUUID(), from: 0, until: 0 })

export const taken = (kind: Kind, id: string, now: number, life: number): Slot => ({
  kind,
  id,
  from: Math.floor(now),
  until: Math.min(Math.floor(now) + Math.max(1, Math.ceil(life)), Number.MAX_SAFE_INTEGER)
})

/** The wall clock is the only one that processes share, also over a restart. Where it went back, nothing counts. */
export const counts = ({ from, until }: Slot, now: number): boolean => now >= from - clockTolerance && now < until

const clockTolerance = 1000

/** Looks between which a name was moved, before the folder is taken for damaged. */
const looks = 8

export const make = Effect.map(Effect.all([FileSystem.FileSystem, Path.Path]), ([fs, path]) => {
  const pathOf = (folder: string, slot: Slot) => path.join(folder, nameOf(slot))

  /** The names in the folder of a key; none if it is not there. */
  const list = (folder: string): Effect.Effect<Option.Option<Names>, PlatformError> =>
    Effect.gen(function*() {
      for (let look = 1; look <= looks; look++) {
        const listed = yield* unlessMissing(fs.readDirectory(folder))
        if (Option.isNone(listed)) return Option.none()
        const names = namesOf(listed.value)
        if (Option.isSome(names)) return names
        // Seldom: a listing may miss a name that is being changed.
        yield* Effect.sleep(2 ** look)
      }
      // Somebody took files out of it by hand. What is in there is lost, which is a miss; what is not the store's stays, aside.
      yield* remove(folder)
      return Option.none()
    })

  /** Out of the way in one step, so that nobody finds a part of it. */
  const remove = (folder: string): Effect.Effect<void, PlatformError> => {
    const aside = path.join(path.dirname(folder), `${aborted}${randomUUID()}`)
    return Effect.asVoid(unlessMissing(
      Effect.zipRight(fs.rename(folder, aside), removeOurs(aside))
    ))
  }

  /** The folder with all that is in it; where something else is in there too, only what is the store's. */
  const removeOurs = (folder: string): Effect.Effect<void, PlatformError> =>
    Effect.flatMap(fs.readDirectory(folder), (names) => {
      const ours = names.filter(isOurs)
      return ours.length === names.length
        ? fs.remove(folder, { recursive: true })
        : Effect.forEach(ours, (name) => fs.remove(path.join(folder, name)), { discard: true })
    })

  /** Made whole before it has its name; a folder that is there and not empty is not replaced. */
  const create = (folder: string): Effect.Effect<void, PlatformError> => {
    const aside = path.join(path.dirname(folder), `${aborted}${randomUUID()}`)
    return fs.makeDirectory(aside, { mode: 0o700 }).pipe(
      Effect.zipRight(Effect.forEach(kinds, (kind) => write(pathOf(aside, empty(kind)), ""))),
      Effect.zipRight(
        Effect.catchAll(fs.rename(aside, folder), (error) =>
          Effect.if(
            Effect.orElseSucceed(fs.exists(folder), () => false),
            {
              onTrue: () => Effect.void,
              onFalse: () => Effect.fail(error)
            }
          ))
      ),
      Effect.ensuring(Effect.ignore(fs.remove(aside, { recursive: true, force: true })))
    )
  }

  /** Whether the slot was still that one, and now is the other. */
  const swap = (folder: string, slot: Slot, next: Slot): Effect.Effect<boolean, PlatformError> =>
    Effect.map(unlessMissing(fs.rename(pathOf(folder, slot), pathOf(folder, next))), Option.isSome)

  const write = (file: string, text: string) => fs.writeFileString(file, text, { flag: "wx", mode: 0o600 })

  return { create, list, removeOurs, swap, write }
})

/** How the names of folders start that are being made or removed. */
const aborted = "aside."

/** How the names of files with entries start. */
export const sealed = "sealed."

const isUuid = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)

/** Of a folder that was being made or removed. */
export const isAborted = (name: string): boolean => name.startsWith(aborted) && isUuid(name.slice(aborted.length))

export const isSealed = (name: string): boolean => name.startsWith(sealed) && isUuid(name.slice(sealed.length))

/** Whether the store gives such names in the folder of a key. */
const isOurs = (name: string): boolean => isSealed(name) || Option.isSome(slotOf(name))

export const unlessMissing = <A>(
  effect: Effect.Effect<A, PlatformError>
): Effect.Effect<Option.Option<A>, PlatformError> =>
  Effect.map(effect, Option.some).pipe(
    Effect.catchTag("SystemError", (error) => error.reason === "NotFound" ? Effect.succeedNone : Effect.fail(error))
  )

const nameOf = ({ from, id, kind, until }: Slot): string => `${kind}.${id}.${from}.${until}`

/** Both slots, if each is there once. */
const namesOf = (names: ReadonlyArray<string>): Option.Option<Names> => {
  const [others, slots] = Arr.partitionMap(
    names,
    (name) => Option.match(slotOf(name), { onNone: () => Either.left(name), onSome: Either.right })
  )
  const only = (kind: Kind): Option.Option<Slot> => {
    const [slot, another] = slots.filter((slot) => slot.kind === kind)
    return another === undefined ? Option.fromNullable(slot) : Option.none()
  }
  return Option.map(
    Option.all({ entry: only("entry"), lease: only("lease") }),
    (slots) => ({ slots, others })
  )
}

const slotOf = (name: string): Option.Option<Slot> => {
  const [, kind, id, from, until] = /^(entry|lease)[.]([0-9a-f-]{36})[.](\d{1,16})[.](\d{1,16})$/.exec(name) ?? []
  return kind === undefined || id === undefined
    ? Option.none()
    : Option.some({ kind: kind === "entry" ? "entry" : "lease", id, from: Number(from), until: Number(until) })
}
