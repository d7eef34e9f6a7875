import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type AccessToken, AccessTokenError, SharedTokenSource, TokenStore } from "@store-api/core"
import { Effect, Exit, Logger, Metric, Option, Ref, TestClock } from "effect"
import * as FakeClient from "../support/fakeClient.js"
import { credentialsOf, drive, endpoint, member, watched } from "../support/fleet.js"
import { outage, valueOf } from "../support/scriptedSource.js"
import { test } from "../support/test.js"

const unreadable = new AccessTokenError.CredentialsError({ field: "clientSecret", reason: "cannot be read" })

describe("SharedTokenSource, when the store does not work", () => {
  type Operation = TokenStore.TokenStoreError["operation"]
  const error = (operation: Operation) => new TokenStore.TokenStoreError({ operation, reason: "ECONNREFUSED" })
  type Fault = (operation: Operation) => Effect.Effect<never, TokenStore.TokenStoreError>
  const faults = {
    fails: (operation) => error(operation),
    hangs: () => Effect.never,
    "hangs and cannot be interrupted": () => Effect.uninterruptible(Effect.never),
    "tries again until it is too late": () =>
      Effect.flatMap(TokenStore.FailedAttempt, (report) => {
        report("ECONNREFUSED")
        report("CERT_HAS_EXPIRED")
        return Effect.never
      }),
    "fails with a defect": () => Effect.dieMessage("invented defect"),
    "interrupts itself": () => Effect.interrupt,
    "throws": () => {
      throw new Error("invented defect")
    }
  } satisfies Record<string, Fault>

  const broken = (store: TokenStore.Service, operation: Operation, fault: Fault) =>
    TokenStore.TokenStore.of(
      operation === "extend" || operation === "release"
        ? {
          ...store,
          lease: (key, duration) =>
            Effect.map(
              store.lease(key, duration),
              Option.map((lease) => ({ ...lease, [operation]: Effect.suspend(() => fault(operation)) }))
            )
        }
        : { ...store, [operation]: () => fault(operation) }
    )

  for (const [name, fault] of Object.entries(faults)) {
    it.effect.each(["get", "put", "lease"] as const)(
      `requests a token in bounded time when %s ${name}`,
      (operation) =>
        Effect.gen(function*() {
          const { requests, source } = yield* endpoint()
          const store = broken(yield* TokenStore.makeMemory, operation, fault)
          const { acquire } = yield* member(source, store, { storeTimeout: "700 millis" })
          const { exit, took } = yield* drive(yield* Effect.fork(acquire(Option.none())))
          deepStrictEqual(Exit.map(exit, valueOf), Exit.succeed("token-1"))
          assert.strictEqual(yield* requests, 1)
          assert.isAtMost(took, 700)
        })
    )

    test(`requests a token in bounded time when remove ${name}`, function*() {
      const { requests, source } = yield* endpoint()
      const memory = yield* TokenStore.makeMemory
      const cached = yield* (yield* member(source, memory)).acquire(Option.none())
      const { acquire } = yield* member(source, broken(memory, "remove", fault))
      const { exit, took } = yield* drive(yield* Effect.fork(acquire(Option.some(cached))))
      deepStrictEqual(Exit.map(exit, valueOf), Exit.succeed("token-2"))
      assert.strictEqual(yield* requests, 2)
      assert.isAtMost(took, 1000)
    })
  }

  it.effect.each(
    [
      ["extend", "hangs"],
      ["extend", "hangs and cannot be interrupted"],
      ["release", "hangs"],
      ["release", "hangs and cannot be interrupted"]
    ] as const
  )(
    "returns the token in bounded time when %s of a lease %s",
    ([operation, fault]) =>
      Effect.gen(function*() {
        const { requests, source } = yield* endpoint({ takes: 4000 })
        const store = broken(yield* TokenStore.makeMemory, operation, faults[fault])
        const { acquire } = yield* member(source, store, { storeTimeout: "700 millis" })
        const { exit, took } = yield* drive(yield* Effect.fork(acquire(Option.none())))
        deepStrictEqual(Exit.map(exit, valueOf), Exit.succeed("token-1"))
        assert.strictEqual(yield* requests, 1)
        assert.isAtMost(took, 4700)
      })
  )

  it.effect.each(
    (["get", "put", "remove", "lease", "extend", "release"] as const).flatMap((operation) => [
      { operation, fault: "hangs", reason: "no response in time" } as const,
      { operation, fault: "fails with a defect", reason: "a defect" } as const,
      { operation, fault: "interrupts itself", reason: "an interruption" } as const,
      { operation, fault: "tries again until it is too late", reason: "CERT_HAS_EXPIRED" } as const
    ])
  )(
    "logs a warning with the reason $reason when $operation $fault",
    ({ fault, operation, reason }) =>
      Effect.gen(function*() {
        const { source } = yield* endpoint({ takes: 4000 })
        const memory = yield* TokenStore.makeMemory
        const { exit } = yield* drive(yield* Effect.fork((yield* member(source, memory)).acquire(Option.none())))
        const { acquire } = yield* member(source, broken(memory, operation, faults[fault]))
        const annotated: Array<unknown> = []
        yield* acquire(Exit.match(exit, { onFailure: Option.none, onSuccess: Option.some })).pipe(
          Effect.provide(Logger.replace(
            Logger.defaultLogger,
            Logger.make(({ annotations }) => annotated.push(Object.fromEntries(annotations)))
          )),
          Effect.fork,
          Effect.flatMap(drive)
        )
        deepStrictEqual(annotated, [{ operation, reason }])
      })
  )

  describe("log lines", () => {
    /**
     * Runs `body` and returns the log lines. `acquire` replaces the last token after a minute. `setBroken` sets the
     * operations of the store that fail. `acquireElsewhere` acquires in another process, for which the store works.
     */
    const logLines = (
      body: (
        acquire: Effect.Effect<unknown, unknown>,
        setBroken: (...operations: ReadonlyArray<Operation>) => Effect.Effect<void>,
        acquireElsewhere: Effect.Effect<unknown, unknown>
      ) => Effect.Effect<void, unknown>
    ) =>
      Effect.gen(function*() {
        const lines: Array<string> = []
        const logger = Logger.make(({ annotations, logLevel, message }) => {
          lines.push(`${logLevel.label} ${String(message)} ${JSON.stringify(Object.fromEntries(annotations))}`)
        })
        const { source } = yield* endpoint()
        const memory = yield* TokenStore.makeMemory
        const failing = yield* Ref.make<ReadonlyArray<Operation>>([])
        const unless = <A>(operation: Operation, works: Effect.Effect<A, TokenStore.TokenStoreError>) =>
          Effect.flatMap(Ref.get(failing), (all) => all.includes(operation) ? error(operation) : works)
        const store = TokenStore.TokenStore.of({
          get: (key) => unless("get", memory.get(key)),
          put: (key, entry, life) => unless("put", memory.put(key, entry, life)),
          remove: (key, entry) => unless("remove", memory.remove(key, entry)),
          lease: (key, duration) => unless("lease", memory.lease(key, duration))
        })
        const cached = yield* Ref.make(Option.none<AccessToken.AccessToken>())
        const { acquire } = yield* member(source, store)
        const other = yield* member(source, memory)
        const acquireNext = Effect.gen(function*() {
          yield* TestClock.adjust("1 minute")
          yield* Ref.set(cached, Option.some(yield* acquire(yield* Ref.get(cached))))
        })
        const acquireElsewhere = Effect.gen(function*() {
          yield* TestClock.adjust("1 minute")
          yield* other.acquire(yield* Ref.get(cached))
        })
        yield* body(acquireNext, (...operations) => Ref.set(failing, operations), acquireElsewhere).pipe(
          Effect.provide(Logger.replace(Logger.defaultLogger, logger))
        )
        return lines
      })

    const warning = (operation: Operation) =>
      "WARN The token store failed; tokens are acquired without it " +
      JSON.stringify({ reason: "ECONNREFUSED", operation })

    const recovery = "INFO The token store works again {}"

    const counted = Effect.map(
      Metric.value(Metric.tagged(SharedTokenSource.storeFailures, "operation", "get")),
      ({ count }) => count
    )

    test("warns once per outage, and counts every failure", function*() {
      const before = yield* counted
      const lines = yield* logLines((acquire, setBroken) =>
        Effect.gen(function*() {
          for (let outage = 0; outage < 2; outage++) {
            yield* setBroken("get", "put", "lease", "remove")
            for (let time = 0; time < 3; time++) yield* acquire
            yield* setBroken()
            yield* acquire
          }
        })
      )
      deepStrictEqual(lines, [warning("get"), recovery, warning("get"), recovery])
      assert.strictEqual((yield* counted) - before, 6)
    })

    test("warns once per outage when only writes fail, as in a full store", function*() {
      const lines = yield* logLines((acquire, setBroken) =>
        Effect.gen(function*() {
          for (let outage = 0; outage < 2; outage++) {
            yield* setBroken("put", "lease")
            for (let time = 0; time < 3; time++) yield* acquire
            yield* setBroken()
            yield* acquire
          }
        })
      )
      deepStrictEqual(lines, [warning("lease"), recovery, warning("lease"), recovery])
    })

    test("warns again when a successful read has ended the outage", function*() {
      const lines = yield* logLines((acquire, setBroken, acquireElsewhere) =>
        Effect.gen(function*() {
          yield* setBroken("put")
          yield* acquire
          yield* setBroken()
          for (let time = 0; time < 2; time++) {
            yield* acquireElsewhere
            yield* acquire
          }
          yield* setBroken("get")
          yield* acquire
        })
      )
      deepStrictEqual(lines, [warning("put"), recovery, warning("get")])
    })

    test("has none while the store works", function*() {
      deepStrictEqual(yield* logLines((acquire) => Effect.repeatN(acquire, 4)), [])
    })
  })

  it.effect.each(
    [
      ["never arrive", Effect.never],
      ["never arrive and cannot be interrupted", Effect.uninterruptible(Effect.never)]
    ] as const
  )(
    "requests a token after 10 s, with a warning and without sharing it, when the credentials %s",
    ([, never]) =>
      Effect.gen(function*() {
        const { requests, source } = yield* endpoint()
        const { puts, store } = yield* watched
        const lines: Array<unknown> = []
        const { acquire } = yield* member(source, store, { credentials: never })
        const { exit, took } = yield* acquire(Option.none()).pipe(
          Effect.provide(Logger.replace(Logger.defaultLogger, Logger.make(({ message }) => lines.push(message)))),
          Effect.fork,
          Effect.flatMap(drive)
        )
        deepStrictEqual(Exit.map(exit, valueOf), Exit.succeed("token-1"))
        deepStrictEqual([took, yield* requests, yield* puts], [10_000, 1, []])
        deepStrictEqual(lines, [["The client credentials were not read in time; this access token is not shared"]])
      })
  )

  test("limits an infinite storeTimeout to 30 s", function*() {
    const { source } = yield* endpoint()
    const store = broken(yield* TokenStore.makeMemory, "get", () => Effect.never)
    const { acquire } = yield* member(source, store, { storeTimeout: Infinity })
    const { exit, took } = yield* drive(yield* Effect.fork(acquire(Option.none())))
    deepStrictEqual([Exit.map(exit, valueOf), took], [Exit.succeed("token-1"), 30_000])
  })

  test("fails with Timeout at the deadline when the credentials of the endpoint never arrive either", function*() {
    const source = yield* FakeClient.source(FakeClient.make(FakeClient.token), { credentials: Effect.never })
    const { acquire } = yield* member(source, yield* TokenStore.makeMemory, { credentials: Effect.never })
    const { exit, took } = yield* drive(yield* Effect.fork(acquire(Option.none())))
    const error = yield* Effect.flip(exit)
    deepStrictEqual(["reason" in error && error.reason, took], ["Timeout", 40_000])
  })

  test("requests a token without sharing it when the credentials are read by an effect that interrupts itself", function*() {
    const { source } = yield* endpoint()
    const { puts, store } = yield* watched
    const { acquire } = yield* member(source, store, { credentials: Effect.interrupt })
    assert.strictEqual(valueOf(yield* acquire(Option.none())), "token-1")
    deepStrictEqual(yield* puts, [])
  })

  test("returns the error of the endpoint, not its own, when the credentials cannot be read", function*() {
    const { source } = yield* endpoint({ answer: () => Effect.fail(outage) })
    const { acquire } = yield* member(source, yield* TokenStore.makeMemory, {
      credentials: Effect.flatMap(credentialsOf("id", "secret"), () => Effect.fail(unreadable))
    })
    deepStrictEqual(yield* Effect.flip(acquire(Option.none())), outage)
  })
})
