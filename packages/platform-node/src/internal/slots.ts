/**
 * The state of a key that processes change together, kept in the name of one file. A change is a rename of that file: a name
 * is of one entry and one lease, so it does not come back, and of many who rename the same file the kernel lets one succeed.
 * So each change is a comparison and a swap in one, no lock is held at any moment, and a process that dies leaves the old name
 * or the new one.
 *
 * The file is in a folder of the key, with the entries. A folder that nobody needs is closed by such a swap too, and a closed
 * one is never opened again. What is in it then goes file by file, each by a name that does not come back, and the folder
 * itself only when it is empty: whoever is late with that, or stopped in the middle of it, does not touch the folder that
 * another process has made in its place meanwhile.
 */
import { randomUUID } from "node:crypto"
import { rmdir } from "node:fs"
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"

/** Whose or which it is, and from when to when that counts, in milliseconds of the wall clock. */
export interface Slot {
  readonly id: string
  readonly from: number
  readonly until: number
}

export interface State {
  readonly entry: Slot
  readonly lease: Slot
}

/** What a folder of a key is, as it was looked at, and the names that were there. */
export type Look =
  | { readonly _tag: "Missing" }
  | { readonly _tag: "Open"; readonly state: State; readonly others: ReadonlyArray<string> }
  | { readonly _tag: "Closed"; readonly names: ReadonlyArray<string> }
  /** A listing may miss a name that is being changed, or have it twice; or somebody took files out by hand. */
  | { readonly _tag: "Unclear"; readonly names: ReadonlyArray<string> }

/** Of no one, of nothing. */
export const empty = (): Slot => ({ id: randomUUID(), from: 0, until: 0 })

export const taken = (id: string, now: number, life: number): Slot => ({
  id,
  from: Math.floor(now),
  until: Math.min(Math.floor(now) + Math.max(1, Math.ceil(life)), Number.MAX_SAFE_INTEGER)
})

/** The wall clock is the only one that processes share, also over a restart. Where it went back, nothing counts. */
export const counts = ({ from, until }: Slot, now: number): boolean => now >= from - clockTolerance && now < until

const clockTolerance = 1000

/** Half a second in all: the coarsest clock that stamps changes of a folder of this machine has ticked many times in it. */
const looks = 8

export const make = Effect.map(Effect.all([FileSystem.FileSystem, Path.Path]), ([fs, path]) => {
  const glance = (folder: string): Effect.Effect<Look, PlatformError> =>
    Effect.map(unlessMissing(fs.readDirectory(folder)), Option.match({ onNone: () => missing, onSome: lookOf }))

  /** Looks until it is clear. What stays unclear is damaged, if nobody changed it in all that time. */
  const look = (folder: string): Effect.Effect<Look & { readonly damaged: boolean }, PlatformError> =>
    Effect.gen(function*() {
      let seen = yield* glance(folder)
      const changed = seen._tag === "Unclear" ? yield* changedAt(folder) : Option.none()
      for (let n = 2; n <= looks && seen._tag === "Unclear"; n++) {
        yield* Effect.sleep(2 ** n)
        seen = yield* glance(folder)
      }
      const damaged = seen._tag === "Unclear" && Option.isSome(changed)
        && Option.contains(yield* changedAt(folder), changed.value)
      return { ...seen, damaged }
    })

  /** By the clock of the folder itself. */
  const changedAt = (folder: string): Effect.Effect<Option.Option<number>, PlatformError> =>
    Effect.map(
      unlessMissing(fs.stat(folder)),
      (info) => Option.map(Option.flatMap(info, ({ mtime }) => mtime), (at) => at.getTime())
    )

  /** Whether the state was still that one, and now is the other. */
  const swap = (folder: string, state: State, next: State): Effect.Effect<boolean, PlatformError> =>
    renamed(folder, nameOf(state), nameOf(next))

  const renamed = (folder: string, name: string, next: string): Effect.Effect<boolean, PlatformError> =>
    Effect.map(unlessMissing(fs.rename(path.join(folder, name), path.join(folder, next))), Option.isSome)

  /** Ends the use of the folder, if its state is still that one. */
  const close = (folder: string, state: State): Effect.Effect<void, PlatformError> => closeBy(folder, nameOf(state))

  const closeBy = (folder: string, name: string): Effect.Effect<void, PlatformError> =>
    Effect.gen(function*() {
      if (!(yield* renamed(folder, name, `${closed}${randomUUID()}`))) return
      const seen = yield* glance(folder)
      if (seen._tag === "Closed") yield* clear(folder, seen.names)
    })

  /** What was in there is lost, which is a miss. The names are those that were seen: they are of no other folder. */
  const mend = (folder: string, names: ReadonlyArray<string>): Effect.Effect<void, PlatformError> =>
    Option.match(Arr.findFirst(names, isOurs), {
      onNone: () => clear(folder, names),
      onSome: (name) => closeBy(folder, name)
    })

  /** Takes out what was seen in a folder that is closed; what is not the store's stays, aside. Then the folder goes. */
  const clear = (folder: string, names: ReadonlyArray<string>): Effect.Effect<void, PlatformError> =>
    Effect.gen(function*() {
      const [foreign, ours] = Arr.partition(names, isOurs)
      if (foreign.length > 0) {
        const aside = asideOf(folder)
        yield* fs.makeDirectory(aside, { mode: 0o700 })
        yield* Effect.forEach(
          foreign,
          (name) => unlessMissing(fs.rename(path.join(folder, name), path.join(aside, name)))
        )
      }
      const [rest, marks] = Arr.partition(ours, isClosed)
      yield* removeAll(folder, rest)
      // Something came meanwhile, from somebody who had not seen that it is closed: it stays so, for the next who looks.
      if (Option.exists(yield* unlessMissing(fs.readDirectory(folder)), (left) => !left.every(isClosed))) return
      yield* removeAll(folder, marks)
      yield* removeEmpty(folder)
    })

  const removeAll = (folder: string, names: ReadonlyArray<string>) =>
    Effect.forEach(names, (name) => fs.remove(path.join(folder, name), { force: true }), { discard: true })

  /** Of a folder that was put aside: all of it; where something else is in there too, only what is the store's. */
  const removeOurs = (folder: string): Effect.Effect<void, PlatformError> =>
    Effect.flatMap(fs.readDirectory(folder), (names) =>
      Effect.zipRight(
        removeAll(folder, names.filter(isOurs)),
        removeEmpty(folder)
      ))

  const asideOf = (folder: string) => path.join(path.dirname(folder), `${aside}${randomUUID()}`)

  /** Made whole before it has its name; a folder that is there and not empty is not replaced. */
  const create = (folder: string): Effect.Effect<void, PlatformError> => {
    const made = asideOf(folder)
    const named = Effect.catchAll(
      fs.rename(made, folder),
      (error) =>
        Effect.if(Effect.orElseSucceed(fs.exists(folder), () => false), {
          onTrue: () => Effect.void,
          onFalse: () => Effect.fail(error)
        })
    )
    return fs.makeDirectory(made, { mode: 0o700 }).pipe(
      Effect.zipRight(write(path.join(made, nameOf({ entry: empty(), lease: empty() })), "")),
      Effect.zipRight(named),
      // Swept away by another, because it took so long: who wants the folder looks, and makes it again.
      unlessMissing,
      Effect.ensuring(Effect.ignore(fs.remove(made, { recursive: true, force: true })))
    )
  }

  const write = (file: string, text: string) => fs.writeFileString(file, text, { flag: "wx", mode: 0o600 })

  return { clear, close, create, glance, look, mend, removeOurs, swap, write }
})

/** The system's own step, which `FileSystem` lacks: its `remove` takes a folder with whatever came into it meanwhile. */
const removeEmpty = (folder: string): Effect.Effect<void> =>
  Effect.async((resume) => rmdir(folder, () => resume(Effect.void)))

const missing: Look = { _tag: "Missing" }

const lookOf = (names: ReadonlyArray<string>): Look => {
  if (names.some(isClosed)) return { _tag: "Closed", names }
  const [others, states] = Arr.partitionMap(
    names,
    (name) => Option.match(stateOf(name), { onNone: () => Either.left(name), onSome: Either.right })
  )
  const [state, another] = states
  return state === undefined || another !== undefined
    ? { _tag: "Unclear", names }
    : { _tag: "Open", state, others }
}

/** How the names of folders start that are being made, or hold what is not the store's. */
const aside = "aside."

/** How the names of files with entries start. */
export const sealed = "sealed."

/** How the name starts that was the state, in a folder that is no more in use. */
const closed = "closed."

const isUuid = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)

const startsWith = (start: string) => (name: string): boolean =>
  name.startsWith(start) && isUuid(name.slice(start.length))

export const isAside = startsWith(aside)

export const isSealed = startsWith(sealed)

const isClosed = startsWith(closed)

/** Whether the store gives such names in the folder of a key. */
export const isOurs = (name: string): boolean => isSealed(name) || isClosed(name) || Option.isSome(stateOf(name))

export const unlessMissing = <A>(
  effect: Effect.Effect<A, PlatformError>
): Effect.Effect<Option.Option<A>, PlatformError> =>
  Effect.map(effect, Option.some).pipe(
    Effect.catchTag("SystemError", (error) => error.reason === "NotFound" ? Effect.succeedNone : Effect.fail(error))
  )

const nameOf = ({ entry, lease }: State): string =>
  ["state", ...[entry, lease].flatMap(({ from, id, until }) => [id, from, until])].join(".")

const stateOf = (name: string): Option.Option<State> => {
  const [kind, ...parts] = name.split(".")
  if (kind !== "state" || parts.length !== 6) return Option.none()
  return Option.all({ entry: slotOf(parts.slice(0, 3)), lease: slotOf(parts.slice(3)) })
}

const slotOf = ([id = "", from = "", until = ""]: ReadonlyArray<string>): Option.Option<Slot> =>
  isUuid(id) && [from, until].every((digits) => /^\d{1,16}$/.test(digits))
    ? Option.some({ id, from: Number(from), until: Number(until) })
    : Option.none()
