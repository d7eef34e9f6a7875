import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { rules } from "@store-api/core/TokenStoreContract"
import { entryOf } from "@store-api/testing/entryOf"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Context, Duration, Effect, Option, TestClock } from "effect"
import { minute } from "../support/scriptedSource.js"

describe("TokenStore.layerMemory fulfils the contract", () => {
  // A check uses real time, even on the test clock.
  for (const { check, rule } of rules) {
    test(rule, function*() {
      yield* Effect.provide(check, TokenStore.layerMemory)
    })
  }
})

describe("TokenStore.layerMemory", () => {
  test("a store in memory keeps an entry for its time to live, to the millisecond", function*() {
    const store = yield* TokenStore.makeMemory
    yield* store.put("key", "entry", "10 seconds")
    yield* TestClock.adjust("9999 millis")
    deepStrictEqual(yield* entryOf(store, "key"), Option.some("entry"))
    yield* TestClock.adjust("1 millis")
    deepStrictEqual(yield* store.get("key"), Option.none())
  })

  test("a store in memory restarts a lease for its whole duration when it is extended", function*() {
    const store = yield* TokenStore.makeMemory
    const lease = Option.getOrThrow(yield* store.lease("key", "10 seconds"))
    yield* TestClock.adjust("9999 millis")
    assert.isTrue(yield* lease.extend)
    yield* TestClock.adjust("9999 millis")
    assert.isTrue(Option.isNone(yield* store.lease("key", "10 seconds")))
    yield* TestClock.adjust("1 millis")
    assert.isFalse(yield* lease.extend)
    yield* lease.release
    assert.isTrue(Option.isSome(yield* store.lease("key", "10 seconds")))
  })

  test.live("a store in memory counts what remains by the clock that has advanced further", function*() {
    const virtual = VirtualClock.make()
    yield* Effect.gen(function*() {
      const store = yield* TokenStore.makeMemory
      const minutesLeft = Effect.map(
        store.get("key"),
        Option.map(({ remaining }) => Duration.toMillis(remaining) / minute)
      )
      yield* store.put("key", "entry", "10 minutes")
      virtual.jump(4 * minute)
      deepStrictEqual(yield* minutesLeft, Option.some(6))
      virtual.jump(-8 * minute)
      yield* virtual.advance("3 minutes")
      deepStrictEqual(yield* minutesLeft, Option.some(7))
    }).pipe(Effect.withClock(virtual.clock))
  })

  it("the error names the service when no token store is provided", () => {
    assert.throws(
      () => Context.unsafeGet(Context.empty(), TokenStore.TokenStore),
      /: @store-api\/core\/TokenStore\b/
    )
  })

  test("TokenStoreError says which operation failed", function*() {
    const error = new TokenStore.TokenStoreError({ operation: "put", reason: "ECONNREFUSED" })
    assert.strictEqual(yield* Effect.catchTag(error, "TokenStoreError", Effect.succeed), error)
    assert.strictEqual(
      TokenStore.TokenStoreError.identifier,
      "@store-api/core/TokenStoreError"
    )
    const message =
      "The token store failed at put (ECONNREFUSED): check that it runs and is reachable."
    assert.strictEqual(error.message, message)
  })
})

type Change = (
  store: TokenStore.Service,
  leases: TokenStore.Service
) => Partial<TokenStore.Service>

/** Leases that are entries of another store, and have this bug. */
const leasesThat = (
  bug: "are taken by several" | "end early" | "ignore extend" | "free the next" | "revive"
): Change =>
(_, { get, put, remove }) => ({
  lease: (key, duration) =>
    Effect.gen(function*() {
      const own = yield* Effect.sync(() => crypto.randomUUID())
      if (Option.isSome(yield* get(key))) return Option.none()
      if (bug === "are taken by several") yield* Effect.yieldNow()
      yield* put(key, own, bug === "end early" ? Duration.toMillis(duration) / 3 : duration)
      const current = Effect.map(get(key), (found) => Option.getOrUndefined(found)?.entry)
      return Option.some<TokenStore.Lease>({
        extend: Effect.gen(function*() {
          const now = yield* current
          if (now !== own && bug !== "revive") return false
          if (bug !== "ignore extend") yield* put(key, own, duration)
          return true
        }),
        release: Effect.flatMap(current, (now = "") =>
          remove(key, bug === "free the next" ? now : own))
      })
    })
})

/** Puts entries with another text or lifetime, in milliseconds. */
const puts =
  (change: (entry: string, life: number) => readonly [entry: string, life: number]): Change =>
  ({ put }) => ({
    put: (key, entry, life) => put(key, ...change(entry, Duration.toMillis(life)))
  })

/** Returns another remaining lifetime, in milliseconds. */
const changeRemaining = (change: (millis: number) => number): Change => ({ get }) => ({
  get: (key) =>
    Effect.map(
      get(key),
      Option.map(({ entry, remaining }) => ({
        entry,
        remaining: change(Duration.toMillis(remaining))
      }))
    )
})

/** Takes leases of another key or duration, in milliseconds. */
const leases =
  (change: (key: string, life: number) => readonly [key: string, life: number]): Change =>
  ({ lease }) => ({
    lease: (key, life) => lease(...change(key, Duration.toMillis(life)))
  })

const endless = puts((entry, life) => [entry, life > 0 ? life : 3_600_000])
const unreachable = Effect.fail(
  new TokenStore.TokenStoreError({ operation: "get", reason: "ECONNREFUSED" })
)

const bugs: ReadonlyArray<
  readonly [bug: string, change: Change, rule: string, problem: string]
> = [
  [
    "entries end early",
    puts((entry, life) => [entry, life / 2]),
    "keeps an entry for its",
    "instead of \"one\""
  ],
  [
    "entries end late",
    puts((entry, life) => [entry, life * 600]),
    "removes an entry at the end",
    "even 3 seconds"
  ],
  [
    "lifetimes are rounded up to seconds",
    puts((entry, life) => [entry, Math.ceil(life / 1000) * 1000]),
    "gives an entry that replaces another its own lifetime",
    "wrong by"
  ],
  [
    "what remains is in seconds",
    changeRemaining((millis) => millis / 1000),
    "returns what remains",
    "wrong by"
  ],
  [
    "what remains stays the same",
    changeRemaining(() => 60_000),
    "returns what remains",
    "wrong by"
  ],
  [
    "a read extends an entry",
    ({ get, put }) => ({
      get: (key) =>
        Effect.tap(
          get(key),
          (found) =>
            Option.isSome(found) ? put(key, found.value.entry, "1 minute") : Effect.void
        )
    }),
    "returns what remains",
    "wrong by"
  ],
  [
    "an entry keeps the lifetime of the one that it replaces",
    ({ get, put }) => ({
      put: (key, entry, life) =>
        Effect.flatMap(
          get(key),
          (found) => put(key, entry, Option.getOrUndefined(found)?.remaining ?? life)
        )
    }),
    "gives an entry that replaces another its own lifetime",
    "wrong by"
  ],
  [
    "a negative lifetime has no end",
    endless,
    "with a negative duration at once",
    "instead of none"
  ],
  [
    "put replaces nothing",
    ({ get, put }) => ({
      put: (key, entry, life) =>
        Effect.flatMap(
          get(key),
          Option.match({ onNone: () => put(key, entry, life), onSome: () => Effect.void })
        )
    }),
    "returns the last entry that was put",
    "get after a second put returned \"one\" instead of \"two\""
  ],
  [
    "spaces are trimmed",
    puts((entry, life) => [entry.trim(), life]),
    "unchanged",
    "returned \"\" instead of \" \""
  ],
  [
    "entries lose a NUL",
    puts((entry, life) => [entry.replaceAll("\0", ""), life]),
    "unchanged",
    "\"ä €\\u0000"
  ],
  [
    "keys are cut",
    ({ get, put }) => ({
      get: (key) => get(key.slice(0, 60)),
      put: (key, entry, life) => put(key.slice(0, 60), entry, life)
    }),
    "returns the last entry that was put",
    "get of another key"
  ],
  [
    "remove does not compare",
    ({ get, remove }) => ({
      remove: (key) =>
        Effect.flatMap(
          get(key),
          (entry) =>
            remove(
              key,
              Option.match(entry, { onNone: () => "", onSome: ({ entry }) => entry })
            )
        )
    }),
    "removes an entry only if it was not replaced",
    "remove with another entry returned true instead of false"
  ],
  [
    "remove compares the length",
    ({ get, remove }) => ({
      remove: (key, entry) =>
        Effect.flatMap(get(key), (found) => {
          const stored = Option.getOrUndefined(found)?.entry
          return remove(key, stored?.length === entry.length ? stored : entry)
        })
    }),
    "removes an entry only if it was not replaced",
    "remove with another entry returned true instead of false"
  ],
  [
    "remove is not atomic",
    ({ get, remove }) => ({
      remove: (key, entry) =>
        Effect.gen(function*() {
          const is = Option.exists(yield* get(key), (found) => found.entry === entry)
          yield* Effect.yieldNow()
          yield* remove(key, entry)
          return is
        })
    }),
    "removes an entry for only one of many concurrent callers",
    "50 of 50"
  ],
  [
    "leases are lost",
    leases((_, life) => [crypto.randomUUID(), life]),
    "until it is released",
    "a lease instead of none"
  ],
  [
    "leases are granted twice",
    leasesThat("are taken by several"),
    "grants a lease to only one of many",
    "50 of 50"
  ],
  [
    "leases end early",
    leasesThat("end early"),
    "keeps an extended lease longer",
    "a lease instead of none"
  ],
  [
    "leases end late",
    leases((key, life) => [key, life * 600]),
    "ends a lease after its",
    "even 3 seconds later"
  ],
  [
    "extend changes nothing",
    leasesThat("ignore extend"),
    "keeps an extended lease longer",
    "instead of none"
  ],
  [
    "extend revives a lease",
    leasesThat("revive"),
    "does not extend a lease that has ended",
    "even 3 seconds later"
  ],
  [
    "extend takes a released lease back",
    leasesThat("revive"),
    "until it is released",
    "extend after its release returned true instead of false"
  ],
  [
    "extend takes a lease back",
    leasesThat("revive"),
    "cannot extend it or release the next",
    "extend of the lost"
  ],
  [
    "release frees the next lease",
    leasesThat("free the next"),
    "cannot extend it or release the next",
    "lost"
  ],
  [
    "leases are entries",
    (store) => leasesThat("revive")(store, store),
    "keeps leases and entries of one key separate",
    "get of a key that has only a lease"
  ],
  [
    "get fails",
    () => ({ get: () => unreachable }),
    "for a key that was never set",
    "get failed (ECONNREFUSED)"
  ]
]

describe.concurrent("a store that breaks the contract", () => {
  test.live.each(bugs)(
    "the contract finds a store in which %s",
    function*([, change, rule, problem]) {
      const [store, leases] = yield* Effect.all([TokenStore.makeMemory, TokenStore.makeMemory])
      const broken = TokenStore.TokenStore.of({ ...store, ...change(store, leases) })
      const messages = yield* Effect.forEach(rules, ({ check }) =>
        Effect.match(check, {
          onFailure: (error) => Object.assign({ message: "" }, error.toJSON()).message,
          onSuccess: () => ""
        }), { concurrency: "unbounded" }).pipe(
          Effect.provideService(TokenStore.TokenStore, broken)
        )
      const [message = ""] = messages.filter((message) =>
        message.includes(`breaks a rule of TokenStore, "`) && message.includes(rule)
      )
      assert.include(message, problem, messages.join("\n"))
    }
  )
})
