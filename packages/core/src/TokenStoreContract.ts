/**
 * The rules that every `TokenStore` must follow, as checks for the tests of a store. They need no test framework.
 *
 * Import this module by its path, `@store-api/core/TokenStoreContract`. It is not part of `@store-api/core`, because
 * programs would load it there.
 *
 * @since 1.0.0
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "./internal/monotonicMillis.js"
import { withMessage } from "./internal/withMessage.js"
import { type Lease, type Service, type Stored, TokenStore, type TokenStoreError } from "./TokenStore.js"

/**
 * A rule, and the check of whether a store follows it.
 *
 * @see rules
 *
 * @since 1.0.0
 * @category models
 */
export interface Rule {
  /** What a store does, as the title of a test. */
  readonly rule: string
  /**
   * Fails if the store in the context does something else. Takes a few seconds at most, or longer if the store is slow,
   * in real time, even under a test clock. Uses its own keys, which begin with `store-api-token-v1:` and expire
   * within a minute.
   */
  readonly check: Effect.Effect<void, TokenStoreContractError, TokenStore>
}

/**
 * A store broke a rule, or one of its operations failed. A defect of a store stays a defect.
 *
 * @example
 * ```ts
 * import { TokenStoreContractError } from "@store-api/core/TokenStoreContract"
 *
 * const isOurs = (error: unknown) => error instanceof TokenStoreContractError
 * ```
 *
 * @since 1.0.0
 * @category errors
 */
export class TokenStoreContractError
  extends /* @__PURE__ */ withMessage(() =>
    Data.TaggedError("TokenStoreContractError")<{
      /** The rule, as in `rules`. */
      readonly rule: string
      /** What the store did instead. */
      readonly problem: string
    }>
  )
{
  /** The message, which names the rule. */
  describe(): string {
    return `The store breaks a rule of TokenStore, "${this.rule}": ${this.problem}.`
  }
}

/** The operations of a store, with `undefined` for none. */
interface Store extends Omit<Service, "get" | "lease"> {
  readonly get: (key: string) => Effect.Effect<string | undefined, TokenStoreError>
  /** When an entry ends, by what remains of it. */
  readonly end: (key: string) => Effect.Effect<End, Problem>
  readonly lease: (
    key: string,
    duration: Duration.DurationInput
  ) => Effect.Effect<Lease | undefined, TokenStoreError>
}

/** When an entry ends: in milliseconds of the monotonic clock, as exactly as the time of an operation allows. */
interface End {
  readonly earliest: number
  readonly latest: number
}

type Problem = string | TokenStoreError

const rule = (rule: string, steps: (store: Store, key: string) => Effect.Effect<void, Problem>): Rule => ({
  rule,
  check: Effect.flatMap(TokenStore, (store) =>
    steps(
      {
        ...store,
        get: (key) => Effect.map(store.get(key), (found) => Option.getOrUndefined(found)?.entry),
        end: (key) => endAfter(Effect.flatMap(store.get(key), readRemaining)),
        lease: (key, duration) => Effect.map(store.lease(key, duration), Option.getOrUndefined)
      },
      `store-api-token-v1:contract-${globalThis.crypto.randomUUID()}`
    )).pipe(
      Effect.mapError((problem) =>
        new TokenStoreContractError({
          rule,
          problem: typeof problem === "string" ? problem : `${problem.operation} failed (${problem.reason})`
        })
      ),
      Effect.withClock(Clock.make())
    )
})

/** The end of an entry, from an operation that puts or reads its remaining lifetime, in milliseconds. */
const endAfter = (operation: Effect.Effect<number, Problem>): Effect.Effect<End, Problem> =>
  Effect.gen(function*() {
    const start = yield* monotonicMillis
    const remaining = yield* operation
    return { earliest: start + remaining, latest: (yield* monotonicMillis) + remaining }
  })

const readRemaining = (found: Option.Option<Stored>) =>
  Option.match(found, {
    onNone: () => unexpected("get", undefined, "an entry"),
    onSome: ({ remaining }) => Effect.succeed(Duration.toMillis(remaining))
  })

const shown = (value: unknown): string => {
  if (value === undefined) return "none"
  if (typeof value === "string" && value.length > 40) return `a text of ${value.length} characters`
  return typeof value === "object" ? "a lease" : JSON.stringify(value)
}

const unexpected = (what: string, seen: unknown, expected: string) =>
  Effect.fail<Problem>(`${what} returned ${shown(seen)} instead of ${expected}`)

/** Fails unless the operation returns this value. */
const expect = <A>(what: string, operation: Effect.Effect<A, TokenStoreError>, expected: A) =>
  Effect.flatMap(operation, (seen) => seen === expected ? Effect.void : unexpected(what, seen, shown(expected)))

/** Fails unless the operation returns a lease, and returns it. */
const granted = (what: string, operation: Effect.Effect<Lease | undefined, TokenStoreError>) =>
  Effect.flatMap(operation, (lease) => lease === undefined ? unexpected(what, lease, "a lease") : Effect.succeed(lease))

/** Tries again for three seconds if a rule is broken, and once more, because a process may have stopped meanwhile. */
const eventually = <A>(expectation: Effect.Effect<A, Problem>): Effect.Effect<A, Problem> =>
  expectation.pipe(
    Effect.retry({
      while: Predicate.isString,
      schedule: Schedule.spaced("10 millis").pipe(Schedule.upTo("3 seconds"))
    }),
    Effect.catchIf(Predicate.isString, () => expectation),
    Effect.mapError((problem) => typeof problem === "string" ? `${problem}, even 3 seconds later` : problem)
  )

/** Fails unless an operation succeeds for one of 50 callers at once. */
const onlyOne = <A>(what: string, operation: Effect.Effect<A, TokenStoreError>) =>
  Effect.flatMap(Effect.all(Effect.replicate(operation, 50), { concurrency: "unbounded" }), (results) => {
    const count = results.filter(Boolean).length
    return count === 1 ? Effect.void : Effect.fail<Problem>(`${what} succeeded for ${count} of 50 callers at once`)
  })

const minute = "1 minute"

/** In milliseconds. Long enough to read an entry, and short enough to wait for its end. */
const brief = 150

/** More than two clocks may deviate within a few seconds, in milliseconds. */
const margin = 50

const tooSlow = "its operations take too long to check this"

/** Fails unless an entry that is read ends as expected. */
const expectEnd = (expected: End, seen: End) => {
  const deviation = Math.max(seen.earliest - expected.latest, expected.earliest - seen.latest)
  return deviation <= margin
    ? Effect.void
    : Effect.fail<Problem>(`what remains of an entry is wrong by ${Math.round(deviation)} ms`)
}

/** Puts an entry for some milliseconds. Fails unless they all remain. */
const expectWhole = ({ end, put }: Store, key: string, entry: string, lifetime: number) =>
  Effect.gen(function*() {
    const expected = yield* endAfter(Effect.as(put(key, entry, lifetime), lifetime))
    yield* expectEnd(expected, yield* end(key))
  })

/** Puts an entry, and reads it twice after these pauses. Fails if its end changes. */
const expectSameEnd = ({ end, put }: Store, key: string, first: number, second: number) =>
  Effect.gen(function*() {
    yield* put(key, "one", minute)
    yield* Effect.sleep(first)
    const expected = yield* end(key)
    yield* Effect.sleep(second)
    yield* expectEnd(expected, yield* end(key))
  })

/** A result counts only if it arrives before the end of an entry or a lease. */
const isBefore = (end: number) =>
  Effect.filterOrFail(monotonicMillis, (now) => now < end - margin, (): Problem => tooSlow)

/**
 * Tries again with a longer duration if the operations were too slow for this one, in milliseconds. Half of the
 * longest, 4800, is less than the three seconds of `eventually`.
 */
const inTime = (
  attempt: (duration: number) => Effect.Effect<void, Problem>,
  duration = 600
): Effect.Effect<void, Problem> =>
  Effect.catchIf(
    attempt(duration),
    (problem) => problem === tooSlow && duration < 4000,
    () => inTime(attempt, 2 * duration)
  )

/**
 * What every store must do. A store that breaks a rule may cause more token requests than needed, or show one process
 * the entry of another.
 *
 * @example
 * ```ts
 * import { TokenStore } from "@store-api/core"
 * import { rules } from "@store-api/core/TokenStoreContract"
 * import { Effect } from "effect"
 * import { test } from "node:test"
 *
 * const MyStoreLive = TokenStore.layerMemory
 *
 * for (const { check, rule } of rules) {
 *   test(rule, () => Effect.runPromise(Effect.provide(check, MyStoreLive)))
 * }
 * ```
 *
 * @since 1.0.0
 * @category constants
 */
export const rules: ReadonlyArray<Rule> = [
  rule("returns none for a key that was never set", ({ get, remove }, key) =>
    Effect.zipRight(
      expect("get", get(key), undefined),
      expect("remove", remove(key, "entry"), false)
    )),

  rule("returns the last entry that was put", ({ get, put }, key) =>
    Effect.gen(function*() {
      yield* put(key, "one", minute)
      yield* expect("get", get(key), "one")
      yield* put(key, "two", minute)
      yield* expect("get after a second put", get(key), "two")
      yield* expect("get of another key", get(`${key}:other`), undefined)
    })),

  rule(
    "returns entries unchanged",
    ({ get, put }, key) =>
      Effect.forEach(
        ["", " ", "ä €\u0000\r\n\"'", "{}", "0", "x".repeat(64 * 1024)],
        (entry) => Effect.zipRight(put(key, entry, minute), expect("get", get(key), entry))
      )
  ),

  rule("keeps an entry for its lifetime", ({ get, put }, key) =>
    inTime((lifetime) =>
      Effect.gen(function*() {
        const end = (yield* monotonicMillis) + lifetime
        yield* put(key, "one", lifetime)
        yield* Effect.sleep(lifetime / 1.5)
        const seen = yield* get(key)
        yield* isBefore(end)
        yield* expect("get after two thirds of the lifetime", Effect.succeed(seen), "one")
      })
    )),

  rule(
    "returns the whole lifetime of an entry when it was just put",
    (store, key) => expectWhole(store, key, "one", 60_000)
  ),

  rule(
    "returns less of the lifetime as time passes",
    (store, key) => expectSameEnd(store, key, 0, 4 * margin)
  ),

  rule(
    "does not extend the lifetime of an entry when it is read",
    (store, key) => expectSameEnd(store, key, 4 * margin, 0)
  ),

  rule("gives an entry that replaces another its own lifetime", (store, key) =>
    Effect.gen(function*() {
      yield* store.put(key, "one", minute)
      yield* expectWhole(store, key, "two", 30_000)
      yield* expectWhole(store, key, "three", 60_000)
    })),

  rule(
    "removes an entry at the end of its lifetime, and a new entry has its own lifetime",
    ({ get, put, remove }, key) =>
      Effect.gen(function*() {
        yield* put(key, "one", brief)
        yield* put(`${key}:control`, "one", minute)
        yield* eventually(expect("get after the lifetime", get(key), undefined))
        yield* expect("get of an entry with a longer lifetime", get(`${key}:control`), "one")
        yield* expect("remove after the lifetime", remove(key, "one"), false)
        yield* put(key, "two", minute)
        yield* expect("get of the new entry", get(key), "two")
      })
  ),

  rule("removes an entry only if it was not replaced", ({ get, put, remove }, key) =>
    Effect.gen(function*() {
      yield* put(`${key}:other`, "one", minute)
      yield* put(key, "one", minute)
      yield* expect("remove with another entry", remove(key, "another"), false)
      yield* expect("get after that", get(key), "one")
      yield* expect("remove", remove(key, "one"), true)
      yield* expect("get after remove", get(key), undefined)
      yield* expect("a second remove", remove(key, "one"), false)
      yield* expect("get of another key", get(`${key}:other`), "one")
    })),

  rule("removes an entry for only one of many concurrent callers", ({ put, remove }, key) =>
    Effect.zipRight(
      put(key, "one", minute),
      onlyOne("remove", remove(key, "one"))
    )),

  rule("grants a lease to one caller, until it is released", ({ lease }, key) =>
    Effect.gen(function*() {
      const first = yield* granted("lease", lease(key, minute))
      yield* expect("lease while another caller holds it", lease(key, minute), undefined)
      yield* granted("lease of another key", lease(`${key}:other`, minute))
      yield* first.release
      yield* granted("lease after its release", lease(key, minute))
    })),

  rule(
    "grants a lease to only one of many concurrent callers",
    ({ lease }, key) => onlyOne("lease", lease(key, minute))
  ),

  rule(
    "ends a lease after its duration; its holder cannot extend it or release the next",
    ({ lease }, key) =>
      Effect.gen(function*() {
        const lost = yield* granted("lease", lease(key, brief))
        const held = yield* eventually(granted("lease after the duration of another", lease(key, minute)))
        yield* expect("extend of the lost lease", lost.extend, false)
        yield* lost.release
        yield* expect("lease after the lost one was released", lease(key, minute), undefined)
        yield* expect("extend of the next lease", held.extend, true)
      })
  ),

  rule(
    "ends an entry and a lease with a negative duration at once",
    ({ get, lease, put }, key) =>
      Effect.gen(function*() {
        yield* put(key, "one", minute)
        yield* put(key, "two", -1000)
        yield* eventually(expect("get", get(key), undefined))
        const lost = yield* granted("lease", lease(key, -1000))
        yield* eventually(granted("lease after that", lease(key, minute)))
        yield* expect("extend of the first lease", lost.extend, false)
      })
  ),

  rule(
    "does not extend a lease that has ended, even if no other caller holds it",
    ({ lease }, key) =>
      Effect.gen(function*() {
        const lost = yield* granted("lease", lease(key, brief))
        // Each attempt comes when the extension before it would have ended.
        yield* eventually(expect("extend after the duration", Effect.delay(lost.extend, brief + margin), false))
        yield* granted("lease after that", lease(key, minute))
      })
  ),

  rule(
    "keeps an extended lease longer than another of the same age",
    ({ lease }, key) =>
      inTime((duration) =>
        Effect.gen(function*() {
          const [extended, control] = [`${key}:${duration}`, `${key}:${duration}:control`]
          const end = (yield* monotonicMillis) + duration
          const held = yield* granted("lease", lease(extended, duration))
          yield* granted("lease", lease(control, duration))
          yield* Effect.sleep(duration / 2)
          const extendedEnd = (yield* monotonicMillis) + duration
          const isExtended = yield* held.extend
          yield* isBefore(end)
          yield* expect("extend after half of the duration", Effect.succeed(isExtended), true)
          yield* eventually(granted("lease after the duration of another", lease(control, minute)))
          const taken = yield* lease(extended, minute)
          yield* isBefore(extendedEnd)
          yield* expect("lease after another was extended", Effect.succeed(taken), undefined)
        })
      )
  ),

  rule("keeps leases and entries of one key separate", ({ get, lease, put, remove }, key) =>
    Effect.gen(function*() {
      const first = yield* granted("lease", lease(key, minute))
      yield* expect("get of a key that has only a lease", get(key), undefined)
      yield* put(key, "one", minute)
      yield* expect("lease while it is held, after put", lease(key, minute), undefined)
      yield* first.release
      yield* expect("get after the release", get(key), "one")
      yield* granted("lease after its release", lease(key, minute))
      yield* expect("remove", remove(key, "one"), true)
      yield* expect("lease while it is held, after remove", lease(key, minute), undefined)
    }))
]
