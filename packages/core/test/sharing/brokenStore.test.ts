import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  type AccessToken,
  AccessTokenError,
  SharedTokenSource,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { test } from "@store-api/testing/test"
import { Effect, Logger, Metric, Option, TestClock } from "effect"
import * as FakeClient from "../support/fakeClient.js"
import { fleet, member, timed } from "../support/fleet.js"
import { outage } from "../support/scriptedSource.js"

type Operation = TokenStore.TokenStoreError["operation"]
type Fault = (operation: Operation) => Effect.Effect<never, TokenStore.TokenStoreError>

const error = (operation: Operation) =>
  new TokenStore.TokenStoreError({ operation, reason: "ECONNREFUSED" })

/** How an operation does not work, and the reason in the log line. */
const faults: Readonly<Record<string, readonly [fault: Fault, reason: string]>> = {
  fails: [error, "ECONNREFUSED"],
  hangs: [() => Effect.never, "no response in time"],
  "hangs and cannot be interrupted": [
    () => Effect.uninterruptible(Effect.never),
    "no response in time"
  ],
  "fails with a defect": [() => Effect.dieMessage("invented defect"), "a defect"],
  "interrupts itself": [() => Effect.interrupt, "an interruption"],
  "throws": [() => {
    throw new Error("invented defect")
  }, "a defect"]
}

const failedReads = Metric.tagged(SharedTokenSource.storeFailures, "operation", "get")

const operations = ["get", "put", "remove", "lease", "extend", "release"] as const

/** A store in which some operations do not work, as long as `faultOf` returns a fault for them. */
const broken = (
  store: TokenStore.Service,
  faultOf: (operation: Operation) => Fault | undefined
) => {
  const at = <A>(operation: Operation, works: Effect.Effect<A, TokenStore.TokenStoreError>) =>
    faultOf(operation)?.(operation) ?? works
  return TokenStore.TokenStore.of({
    get: (key) => at("get", store.get(key)),
    put: (key, entry, life) => at("put", store.put(key, entry, life)),
    remove: (key, entry) => at("remove", store.remove(key, entry)),
    lease: (key, duration) =>
      at(
        "lease",
        Effect.map(
          store.lease(key, duration),
          Option.map(({ extend, release }) => ({
            extend: Effect.suspend(() => at("extend", extend)),
            release: Effect.suspend(() => at("release", release))
          }))
        )
      )
  })
}

describe("SharedTokenSource, when the store does not work", () => {
  const cases = Object.entries(faults).flatMap(([name, [fault, reason]]) =>
    operations.map((operation) => [operation, name, fault, reason] as const)
  )

  test.each(cases)(
    "a token is requested in bounded time when %s %s",
    function*([operation, , fault, reason]) {
      const { requests, start, store } = yield* fleet({ takes: 4000 })
      const acquired: Array<AccessToken.AccessToken> = []
      const first = yield* start()
      yield* timed(
        Effect.tap(first.get(), (token) => Effect.sync(() => acquired.push(token)))
      )
      const annotated: Array<unknown> = []
      const logger = Logger.make(({ annotations }) =>
        annotated.push(Object.fromEntries(annotations))
      )
      const own = broken(store, (called) => called === operation ? fault : undefined)
      const { get } = yield* start({ store: own, storeTimeout: "700 millis" })
      const [outcome, took] = yield* timed(get(acquired[0])).pipe(
        Effect.provide(Logger.replace(Logger.defaultLogger, logger))
      )
      deepStrictEqual([outcome, yield* requests], ["token-2", 2])
      assert.isAtMost(took, 4700)
      deepStrictEqual(annotated, [{ operation, reason }], "one warning")
    }
  )

  /** The reasons in the warnings when `get` hangs in a store with this last failure. */
  const reasonsWith = (lastFailure: TokenStore.Service["lastFailure"]) =>
    Effect.gen(function*() {
      const { start, store } = yield* fleet()
      const hanging = broken(
        store,
        (operation) => operation === "get" ? () => Effect.never : undefined
      )
      const { get } = yield* start({ store: { ...hanging, lastFailure } })
      const reasons: Array<unknown> = []
      const logger = Logger.make(({ annotations }) => {
        reasons.push(Object.fromEntries(annotations)["reason"])
      })
      yield* Effect.provide(timed(get()), Logger.replace(Logger.defaultLogger, logger))
      return reasons
    })

  test("the warning has the last failure of a store that tries again until it is too late", function*() {
    deepStrictEqual(yield* reasonsWith(Effect.succeedSome("CERT_HAS_EXPIRED")), [
      "CERT_HAS_EXPIRED"
    ])
  })

  test.each<[what: string, lastFailure: TokenStore.Service["lastFailure"]]>([
    ["has no failed attempt", Effect.succeedNone],
    ["does not try again", undefined]
  ])("the warning reports no response from a store that %s", function*([, lastFailure]) {
    deepStrictEqual(yield* reasonsWith(lastFailure), ["no response in time"])
  })

  test("an entry without what remains of it counts as a failure", function*() {
    const { requests, start, store } = yield* fleet()
    yield* (yield* start()).get()
    // A store that is written in JavaScript.
    const get = (key: string) =>
      Effect.map(store.get(key), Option.map(({ entry }) => entry as never))
    const { count } = yield* Metric.value(failedReads)
    deepStrictEqual(
      (yield* timed((yield* start({ store: { ...store, get } })).get()))[0],
      "token-2"
    )
    deepStrictEqual([yield* requests, (yield* Metric.value(failedReads)).count - count], [
      2,
      1
    ])
  })

  test("an infinite storeTimeout is limited to 30 s", function*() {
    const { start, store } = yield* fleet()
    const hanging = broken(
      store,
      (operation) => operation === "get" ? () => Effect.never : undefined
    )
    deepStrictEqual(
      yield* timed((yield* start({ store: hanging, storeTimeout: Infinity })).get()),
      ["token-1", 30_000]
    )
  })

  describe("after a token has arrived", () => {
    /** How often each operation has failed, in all tests. */
    const failures = Effect.map(
      Effect.forEach(
        operations,
        (operation) =>
          Metric.value(Metric.tagged(SharedTokenSource.storeFailures, "operation", operation))
      ),
      (all) => all.map(({ count }) => count)
    )

    /** A process with a store in which these operations hang, whose endpoint responds after some milliseconds. */
    const hanging = (takes: number, hang: ReadonlyArray<Operation>) =>
      Effect.gen(function*() {
        const { start, store } = yield* fleet({ takes })
        // So a release that begins after it ends when the caller waits no longer.
        const slow = {
          ...store,
          put: (...entry: Parameters<typeof store.put>) =>
            Effect.delay(store.put(...entry), 10)
        }
        const own = broken(
          slow,
          (called) => hang.includes(called) ? () => Effect.never : undefined
        )
        const lines: Array<unknown> = []
        const logger = Logger.make(({ annotations, message }) => {
          lines.push([String(message), Object.fromEntries(annotations)["operation"]])
        })
        const { get } = yield* start({
          store: own,
          storeTimeout: "700 millis",
          lease: "3 seconds"
        })
        return {
          get: Effect.provide(get(), Logger.replace(Logger.defaultLogger, logger)),
          lines
        }
      })

    test.each<[takes: number, hang: ReadonlyArray<Operation>]>([
      [0, ["put"]],
      [0, ["release"]],
      [0, ["put", "release"]],
      // Afterwards it has to ask whether it still has the lease.
      [5000, ["extend", "put", "release"]]
    ])(
      "the caller waits for one storeTimeout in all after the token has arrived: after %s ms, in a store in which %s hang",
      function*([takes, hang]) {
        const { get } = yield* hanging(takes, hang)
        deepStrictEqual(yield* timed(get), ["token-1", takes + 700])
      }
    )

    test("each store operation that fails is counted", function*() {
      const { get } = yield* hanging(0, ["put", "release"])
      const before = yield* failures
      yield* timed(get)
      yield* TestClock.adjust("1 minute")
      deepStrictEqual(
        (yield* failures).map((count, index) => count - (before[index] ?? 0)),
        operations.map((operation) => operation === "put" || operation === "release" ? 1 : 0)
      )
    })

    test("only the first store operation that fails is logged", function*() {
      const { get, lines } = yield* hanging(0, ["put", "release"])
      yield* timed(get)
      yield* TestClock.adjust("1 minute")
      deepStrictEqual(lines, [[
        "The token store failed; tokens are acquired without it",
        "put"
      ]])
    })

    test("store failures that no caller waits for belong to the outage", function*() {
      const { get, lines } = yield* hanging(0, ["release"])
      for (let acquisition = 1; acquisition <= 3; acquisition++) {
        yield* timed(get)
        yield* TestClock.adjust("2 hours")
      }
      deepStrictEqual(lines, [[
        "The token store failed; tokens are acquired without it",
        "release"
      ]])
    })
  })

  describe("log lines", () => {
    /**
     * Acquires after each of these outages, of the operations that fail meanwhile. Each acquisition replaces the last
     * token after a minute. Before one with `elsewhere`, another process does so, for which the store works.
     */
    const linesAfter = (...outages: ReadonlyArray<ReadonlyArray<Operation | "elsewhere">>) =>
      Effect.gen(function*() {
        const lines: Array<string> = []
        const logger = Logger.make(({ annotations, logLevel, message }) => {
          lines.push(
            `${logLevel.label} ${String(message)} ${
              JSON.stringify(Object.fromEntries(annotations))
            }`
          )
        })
        const { start, store } = yield* fleet()
        let now: ReadonlyArray<string> = []
        const own = broken(store, (operation) => now.includes(operation) ? error : undefined)
        const [here, elsewhere] = [yield* start({ store: own }), yield* start()]
        let cached: AccessToken.AccessToken | undefined
        yield* Effect.gen(function*() {
          for (const outage of outages) {
            now = outage
            if (outage.includes("elsewhere")) {
              yield* TestClock.adjust("1 minute")
              yield* elsewhere.get(cached)
            }
            yield* TestClock.adjust("1 minute")
            cached = yield* here.get(cached)
          }
        }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
        return lines
      })

    const warning = (operation: Operation) =>
      "WARN The token store failed; tokens are acquired without it " +
      JSON.stringify({ reason: "ECONNREFUSED", operation })

    const recovery = "INFO The token store works again {}"

    const all = ["get", "put", "lease", "remove"] as const

    test("one warning is logged per outage of the store", function*() {
      const lines = yield* linesAfter(all, all, all, [], all, all, all, [])
      deepStrictEqual(lines, [warning("get"), recovery, warning("get"), recovery])
    })

    test("every failure of an outage is counted", function*() {
      const failures = Effect.map(Metric.value(failedReads), ({ count }) => count)
      const before = yield* failures
      yield* linesAfter(all, all, all)
      assert.strictEqual((yield* failures) - before, 3)
    })

    test("one warning is logged per outage in which only writes fail, as in a full store", function*() {
      const writes = ["put", "lease"] as const
      const lines = yield* linesAfter(writes, writes, [], writes, writes, [])
      deepStrictEqual(lines, [warning("lease"), recovery, warning("lease"), recovery])
    })

    test("a successful read ends an outage", function*() {
      deepStrictEqual(
        yield* linesAfter(["put"], ["elsewhere"], ["elsewhere"], ["get"]),
        [warning("put"), recovery, warning("get")]
      )
    })

    test("nothing is logged if the store works", function*() {
      deepStrictEqual(yield* linesAfter([], [], []), [])
    })
  })
})

describe("SharedTokenSource, when the credentials do not work", () => {
  test.each(
    [
      ["never arrive", Effect.never, 10_000, "The client credentials were not read in time"],
      [
        "never arrive and cannot be interrupted",
        Effect.uninterruptible(Effect.never),
        10_000,
        "The client credentials were not read in time"
      ],
      [
        "are read by an effect that interrupts itself",
        Effect.interrupt,
        0,
        "The purpose of the token source could not be read"
      ]
    ] as const
  )(
    "a token is requested within 10 s without sharing it when the credentials %s",
    function*([, credentials, wait, cause]) {
      const { puts, requests, start } = yield* fleet()
      const lines: Array<unknown> = []
      const [outcome, took] = yield* timed((yield* start({ credentials })).get()).pipe(
        Effect.provide(Logger.replace(
          Logger.defaultLogger,
          Logger.make(({ message }) => lines.push(message))
        ))
      )
      deepStrictEqual([outcome, took, yield* requests, yield* puts], ["token-1", wait, 1, []])
      deepStrictEqual(lines, [[`${cause}; this access token is not shared`]])
    }
  )

  test("an acquisition fails with Timeout at the deadline when the credentials of the endpoint never arrive either", function*() {
    const source = yield* FakeClient.source(FakeClient.make(FakeClient.token), {
      credentials: Effect.never
    })
    const { acquire } = yield* member(source, yield* TokenStore.makeMemory, {
      credentials: Effect.never
    })
    deepStrictEqual(yield* timed(acquire(TokenSource.missing)), ["Timeout", 40_000])
  })

  test("an acquisition fails with the error of the endpoint when the credentials cannot be read", function*() {
    const { start } = yield* fleet({ answer: () => Effect.fail(outage) })
    const unreadable = new AccessTokenError.CredentialsError({
      field: "clientSecret",
      reason: "cannot be read"
    })
    deepStrictEqual(
      yield* Effect.flip((yield* start({ credentials: Effect.fail(unreadable) })).get()),
      outage
    )
  })
})
