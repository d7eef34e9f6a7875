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
import * as instant from "./internal/instant.js"
import { withMessage } from "./internal/withMessage.js"
import { type Lease, type Service, TokenStore, type TokenStoreError } from "./TokenStore.js"

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

type Problem = string | TokenStoreError

/** The operations of a store on one key, with `undefined` for none. */
const operationsOn = (store: Service, key: string) => {
  const stored = Effect.suspend(() => Effect.map(store.get(key), Option.getOrUndefined))
  return {
    get: Effect.map(stored, (found) => found?.entry),
    /** Returns what remains of the entry, in milliseconds. */
    remaining: Effect.flatMap(stored, (found) =>
      found === undefined
        ? report("get", found, "an entry")
        : Effect.succeed(Duration.toMillis(found.remaining))),
    put: (entry: string, life: Duration.DurationInput) => store.put(key, entry, life),
    remove: (entry: string) => store.remove(key, entry),
    lease: (duration: Duration.DurationInput) =>
      Effect.map(store.lease(key, duration), Option.getOrUndefined)
  }
}

type Operations = ReturnType<typeof operationsOn>

const rule = (
  rule: string,
  steps: (
    own: Operations,
    otherKey: (name: string) => Operations
  ) => Effect.Effect<unknown, Problem>
): Rule => ({
  rule,
  check: Effect.flatMap(TokenStore, (store) => {
    const key = `store-api-token-v1:contract-${globalThis.crypto.randomUUID()}`
    return steps(operationsOn(store, key), (name) => operationsOn(store, `${key}:${name}`))
  }).pipe(
    Effect.mapError((problem) =>
      new TokenStoreContractError({
        rule,
        problem: typeof problem === "string"
          ? problem
          : `${problem.operation} failed (${problem.reason})`
      })
    ),
    Effect.withClock(Clock.make()),
    Effect.asVoid
  )
})

const show = (value: unknown): string => {
  if (value === undefined) return "none"
  if (typeof value === "string" && value.length > 40) {
    return `a text of ${value.length} characters`
  }
  return typeof value === "object" ? "a lease" : JSON.stringify(value)
}

const fail = (problem: string): Effect.Effect<never, Problem> => Effect.fail(problem)

const report = (what: string, seen: unknown, expected: string) =>
  fail(`${what} returned ${show(seen)} instead of ${expected}`)

/** Fails unless the operation returns this value. */
const expect = <A>(what: string, operation: Effect.Effect<A, TokenStoreError>, expected: A) =>
  Effect.flatMap(
    operation,
    (seen) => seen === expected ? Effect.void : report(what, seen, show(expected))
  )

/** Fails unless the operation returns a lease, and returns it. */
const expectLease = (
  what: string,
  operation: Effect.Effect<Lease | undefined, TokenStoreError>
) =>
  Effect.flatMap(
    operation,
    (lease) => lease === undefined ? report(what, lease, "a lease") : Effect.succeed(lease)
  )

/** Tries again for three seconds if a rule is broken, and once more, because a process may have stopped meanwhile. */
const expectSoon = <A>(expectation: Effect.Effect<A, Problem>): Effect.Effect<A, Problem> =>
  expectation.pipe(
    Effect.retry({
      while: Predicate.isString,
      schedule: Schedule.spaced("10 millis").pipe(Schedule.upTo("3 seconds"))
    }),
    Effect.catchIf(Predicate.isString, () => expectation),
    Effect.mapError((problem) =>
      typeof problem === "string" ? `${problem}, even 3 seconds later` : problem
    )
  )

/** Fails unless an operation succeeds for one of 50 callers at once. */
const expectOne = <A>(what: string, operation: Effect.Effect<A, TokenStoreError>) =>
  Effect.flatMap(
    Effect.all(Effect.replicate(operation, 50), { concurrency: "unbounded" }),
    (results) => {
      const count = results.filter(Boolean).length
      return count === 1
        ? Effect.void
        : fail(`${what} succeeded for ${count} of 50 callers at once`)
    }
  )

/** Runs steps one after the other, until one fails. */
const inOrder = (
  ...steps: ReadonlyArray<Effect.Effect<unknown, Problem>>
): Effect.Effect<void, Problem> => Effect.all(steps, { discard: true })

const minute = "1 minute"

/** In milliseconds. Long enough to read an entry, and short enough to wait for its end. */
const shortLife = 150

/** More than two clocks may deviate within a few seconds, in milliseconds. */
const margin = 50

/**
 * Fails unless the second operation returns what remains of the result of the first one after a pause, all in
 * milliseconds.
 */
const expectCountdown = (
  first: Effect.Effect<number, Problem>,
  pause: number,
  second: Effect.Effect<number, Problem>
) =>
  Effect.gen(function*() {
    const start = yield* instant.now
    const passed = (yield* first) - (yield* Effect.delay(second, pause))
    const longest = (yield* instant.now).monotonic - start.monotonic
    const deviation = Math.max(pause - passed, passed - longest)
    if (deviation > margin) {
      yield* fail(`what remains of an entry is wrong by ${Math.round(deviation)} ms`)
    }
  })

/**
 * Fails unless a rule holds for so many milliseconds. Tries again with more, up to 4800, if the operations were too
 * slow to see it.
 */
const expectWithin = (
  attempt: (duration: number) => Effect.Effect<void, Problem>,
  duration = 600
): Effect.Effect<void, Problem> =>
  Effect.gen(function*() {
    const end = (yield* instant.now).monotonic + duration - margin
    const problem = yield* Effect.catchIf(
      attempt(duration),
      Predicate.isString,
      Effect.succeed
    )
    if ((yield* instant.now).monotonic >= end) {
      if (duration > 4000) return yield* fail("its operations take too long to check this")
      return yield* expectWithin(attempt, 2 * duration)
    }
    if (Predicate.isString(problem)) return yield* fail(problem)
  })

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
  rule("returns none for a key that was never set", ({ get, remove }) =>
    inOrder(
      expect("get", get, undefined),
      expect("remove", remove("entry"), false)
    )),

  rule("returns the last entry that was put", ({ get, put }, otherKey) =>
    inOrder(
      put("one", minute),
      expect("get", get, "one"),
      put("two", minute),
      expect("get after a second put", get, "two"),
      expect("get of another key", otherKey("other").get, undefined)
    )),

  rule(
    "returns entries unchanged",
    ({ get, put }) =>
      Effect.forEach(
        ["", " ", "ä €\u0000\r\n\"'", "{}", "0", "x".repeat(64 * 1024)],
        (entry) => inOrder(put(entry, minute), expect("get", get, entry))
      )
  ),

  rule(
    "keeps an entry for its lifetime",
    ({ get, put }) =>
      expectWithin((duration) =>
        inOrder(
          put("one", duration),
          Effect.sleep(duration / 1.5),
          expect("get after two thirds of the lifetime", get, "one")
        )
      )
  ),

  rule(
    "returns what remains of an entry, even if it was read before",
    ({ put, remaining }) =>
      expectCountdown(
        Effect.as(put("one", 60_000), 60_000),
        4 * margin,
        Effect.zipRight(remaining, remaining)
      )
  ),

  rule(
    "gives an entry that replaces another its own lifetime",
    ({ put, remaining }) =>
      Effect.forEach(
        [59_500, 29_500, 59_500],
        (lifetime) => expectCountdown(Effect.as(put("one", lifetime), lifetime), 0, remaining)
      )
  ),

  rule(
    "removes an entry at the end of its lifetime, and a new entry has its own lifetime",
    ({ get, put, remove }, otherKey) =>
      inOrder(
        put("one", shortLife),
        otherKey("control").put("one", minute),
        expectSoon(expect("get after the lifetime", get, undefined)),
        expect("get of an entry with a longer lifetime", otherKey("control").get, "one"),
        // A store that counts whole milliseconds may keep the entry during the last one, of which nothing remains.
        Effect.sleep("10 millis"),
        expect("remove after the lifetime", remove("one"), false),
        put("two", minute),
        expect("get of the new entry", get, "two")
      )
  ),

  rule(
    "removes an entry only if it was not replaced",
    ({ get, put, remove }, otherKey) =>
      inOrder(
        otherKey("other").put("one", minute),
        put("one", minute),
        expect("remove with another entry", remove("two"), false),
        expect("get after that", get, "one"),
        expect("remove", remove("one"), true),
        expect("get after remove", get, undefined),
        expect("a second remove", remove("one"), false),
        expect("get of another key", otherKey("other").get, "one")
      )
  ),

  rule(
    "removes an entry for only one of many concurrent callers",
    ({ put, remove }) =>
      inOrder(
        put("one", minute),
        expectOne("remove", remove("one"))
      )
  ),

  rule(
    "grants a lease to one caller, until it is released",
    ({ lease }, otherKey) =>
      Effect.gen(function*() {
        const first = yield* expectLease("lease", lease(minute))
        yield* expect("lease while another caller holds it", lease(minute), undefined)
        yield* expectLease("lease of another key", otherKey("other").lease(minute))
        yield* first.release
        yield* expect("extend after its release", first.extend, false)
        yield* expectLease("lease after its release", lease(minute))
      })
  ),

  rule(
    "grants a lease to only one of many concurrent callers",
    ({ lease }) => expectOne("lease", lease(minute))
  ),

  rule(
    "ends a lease after its duration; its holder cannot extend it or release the next",
    ({ lease }) =>
      Effect.gen(function*() {
        const lost = yield* expectLease("lease", lease(shortLife))
        const held = yield* expectSoon(
          expectLease("lease after the duration of another", lease(minute))
        )
        yield* expect("extend of the lost lease", lost.extend, false)
        yield* lost.release
        yield* expect("lease after the lost one was released", lease(minute), undefined)
        yield* expect("extend of the next lease", held.extend, true)
      })
  ),

  rule(
    "ends an entry and a lease with a negative duration at once",
    ({ get, lease, put }) =>
      Effect.gen(function*() {
        yield* put("one", minute)
        yield* put("two", -1000)
        yield* expectSoon(expect("get", get, undefined))
        const lost = yield* expectLease("lease", lease(-1000))
        yield* expectSoon(expectLease("lease after that", lease(minute)))
        yield* expect("extend of the first lease", lost.extend, false)
      })
  ),

  rule(
    "does not extend a lease that has ended, even if no other caller holds it",
    ({ lease }) =>
      Effect.gen(function*() {
        const lost = yield* expectLease("lease", lease(shortLife))
        // Each attempt comes when the extension before it would have ended.
        yield* expectSoon(
          expect(
            "extend after the duration",
            Effect.delay(lost.extend, shortLife + margin),
            false
          )
        )
        yield* expectLease("lease after that", lease(minute))
      })
  ),

  rule(
    "keeps an extended lease longer than its duration",
    (_, otherKey) =>
      expectWithin((within) =>
        Effect.gen(function*() {
          const { lease } = otherKey(`${within}`)
          const duration = within / 1.5
          const held = yield* expectLease("lease", lease(duration))
          yield* Effect.sleep(duration / 2)
          yield* held.extend
          // Without the extension, it would have ended.
          yield* Effect.sleep(0.75 * duration)
          yield* expect("lease after another was extended", lease(minute), undefined)
        })
      )
  ),

  rule(
    "keeps leases and entries of one key separate",
    ({ get, lease, put, remove }) =>
      Effect.gen(function*() {
        const first = yield* expectLease("lease", lease(minute))
        yield* expect("get of a key that has only a lease", get, undefined)
        yield* put("one", minute)
        yield* expect("lease while it is held, after put", lease(minute), undefined)
        yield* first.release
        yield* expect("get after the release", get, "one")
        yield* expectLease("lease after its release", lease(minute))
        yield* expect("remove", remove("one"), true)
        yield* expect("lease while it is held, after remove", lease(minute), undefined)
      })
  )
]
