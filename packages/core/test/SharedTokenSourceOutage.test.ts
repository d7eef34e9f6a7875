import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { AccessToken } from "@store-api/core"
import { AccessTokenError, SharedTokenSource, TokenStore } from "@store-api/core"
import { Effect, Exit, Logger, Metric, Option, Ref, TestClock } from "effect"
import * as FakeClient from "./support/fakeClient.js"
import { credentialsOf, drive, endpoint, member, outage, valueOf, watched } from "./support/fleet.js"

const unreadable = new AccessTokenError.CredentialsError({ field: "clientSecret", reason: "cannot be read" })

describe("SharedTokenSource, over a store that does not work", () => {
  type Operation = TokenStore.TokenStoreError["operation"]
  const error = (operation: Operation) => new TokenStore.TokenStoreError({ operation, reason: "ECONNREFUSED" })
  type Fault = (operation: Operation) => Effect.Effect<never, TokenStore.TokenStoreError>
  const faults = {
    fails: (operation) => error(operation),
    hangs: () => Effect.never,
    "hangs and cannot be interrupted": () => Effect.uninterruptible(Effect.never),
    dies: () => Effect.dieMessage("invented defect"),
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
      `and ${name} at %s is a miss: the endpoint answers, in bounded time`,
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

    it.effect(`and ${name} as a token is to be taken out: the endpoint answers, in bounded time`, () =>
      Effect.gen(function*() {
        const { requests, source } = yield* endpoint()
        const memory = yield* TokenStore.makeMemory
        const held = yield* (yield* member(source, memory)).acquire(Option.none())
        const { acquire } = yield* member(source, broken(memory, "remove", fault))
        const { exit, took } = yield* drive(yield* Effect.fork(acquire(Option.some(held))))
        deepStrictEqual(Exit.map(exit, valueOf), Exit.succeed("token-2"))
        assert.strictEqual(yield* requests, 2)
        assert.isAtMost(took, 1000)
      }))
  }

  it.effect.each(
    [
      ["extend", "hangs"],
      ["extend", "hangs and cannot be interrupted"],
      ["release", "hangs"],
      ["release", "hangs and cannot be interrupted"]
    ] as const
  )(
    "at %s of a lease that %s does not hold the answer back for long",
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
      { operation, fault: "hangs", reason: "no answer in time" } as const,
      { operation, fault: "dies", reason: "a defect" } as const
    ])
  )(
    "and $fault at $operation is warned of with the reason: $reason",
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

  describe("is warned of", () => {
    /**
     * The lines of log while `acquire` runs again and again, over a store whose broken operations a test sets; each replaces
     * the last token. `elsewhere` does so too, in another process, for which the store works.
     */
    const warned = (
      body: (
        acquire: Effect.Effect<unknown, unknown>,
        breaks: (...operations: ReadonlyArray<Operation>) => Effect.Effect<void>,
        elsewhere: Effect.Effect<unknown, unknown>
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
        const held = yield* Ref.make(Option.none<AccessToken.AccessToken>())
        const { acquire } = yield* member(source, store)
        const other = yield* member(source, memory)
        const another = Effect.gen(function*() {
          yield* TestClock.adjust("1 minute")
          yield* Ref.set(held, Option.some(yield* acquire(yield* Ref.get(held))))
        })
        const elsewhere = Effect.gen(function*() {
          yield* TestClock.adjust("1 minute")
          yield* other.acquire(yield* Ref.get(held))
        })
        yield* body(another, (...operations) => Ref.set(failing, operations), elsewhere).pipe(
          Effect.provide(Logger.replace(Logger.defaultLogger, logger))
        )
        return lines
      })

    const warning = (operation: Operation) =>
      "WARN The token store does not work; tokens are asked for without it " +
      JSON.stringify({ reason: "ECONNREFUSED", operation })

    const works = "INFO The token store works again {}"

    const counted = Effect.map(
      Metric.value(Metric.tagged(SharedTokenSource.storeFailures, "operation", "get")),
      ({ count }) => count
    )

    it.effect("once an outage, and counted each time", () =>
      Effect.gen(function*() {
        const before = yield* counted
        const lines = yield* warned((acquire, breaks) =>
          Effect.gen(function*() {
            for (let outage = 0; outage < 2; outage++) {
              yield* breaks("get", "put", "lease", "remove")
              for (let time = 0; time < 3; time++) yield* acquire
              yield* breaks()
              yield* acquire
            }
          })
        )
        deepStrictEqual(lines, [warning("get"), works, warning("get"), works])
        assert.strictEqual((yield* counted) - before, 6)
      }))

    it.effect("once also when it can still be read, as one that is full", () =>
      Effect.gen(function*() {
        const lines = yield* warned((acquire, breaks) =>
          Effect.gen(function*() {
            for (let outage = 0; outage < 2; outage++) {
              yield* breaks("put", "lease")
              for (let time = 0; time < 3; time++) yield* acquire
              yield* breaks()
              yield* acquire
            }
          })
        )
        deepStrictEqual(lines, [warning("lease"), works, warning("lease"), works])
      }))

    it.effect("again when it had worked meanwhile, be it only to be read", () =>
      Effect.gen(function*() {
        const lines = yield* warned((acquire, breaks, elsewhere) =>
          Effect.gen(function*() {
            yield* breaks("put")
            yield* acquire
            yield* breaks()
            for (let time = 0; time < 2; time++) {
              yield* elsewhere
              yield* acquire
            }
            yield* breaks("get")
            yield* acquire
          })
        )
        deepStrictEqual(lines, [warning("put"), works, warning("get")])
      }))

    it.effect("never while it works", () =>
      Effect.gen(function*() {
        deepStrictEqual(yield* warned((acquire) => Effect.repeatN(acquire, 4)), [])
      }))
  })

  it.effect.each(
    [
      ["never come", Effect.never],
      ["never come and cannot be interrupted", Effect.uninterruptible(Effect.never)]
    ] as const
  )(
    "and credentials that %s: the endpoint is asked after 10 s, with a warning, and nothing is shared",
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

  it.effect("and a storeTimeout without end: 30 s", () =>
    Effect.gen(function*() {
      const { source } = yield* endpoint()
      const store = broken(yield* TokenStore.makeMemory, "get", () => Effect.never)
      const { acquire } = yield* member(source, store, { storeTimeout: Infinity })
      const { exit, took } = yield* drive(yield* Effect.fork(acquire(Option.none())))
      deepStrictEqual([Exit.map(exit, valueOf), took], [Exit.succeed("token-1"), 30_000])
    }))

  it.effect("over an endpoint whose credentials never come either: ends by its deadline", () =>
    Effect.gen(function*() {
      const source = yield* FakeClient.source(FakeClient.make(FakeClient.token), { credentials: Effect.never })
      const { acquire } = yield* member(source, yield* TokenStore.makeMemory, { credentials: Effect.never })
      const { exit, took } = yield* drive(yield* Effect.fork(acquire(Option.none())))
      const error = yield* Effect.flip(exit)
      deepStrictEqual(["reason" in error && error.reason, took], ["Timeout", 40_000])
    }))

  it.effect("and credentials that cannot be read are the endpoint's affair", () =>
    Effect.gen(function*() {
      const { source } = yield* endpoint({ answer: () => Effect.fail(outage) })
      const { acquire } = yield* member(source, yield* TokenStore.makeMemory, {
        credentials: Effect.flatMap(credentialsOf("id", "secret"), () => Effect.fail(unreadable))
      })
      deepStrictEqual(yield* Effect.flip(acquire(Option.none())), outage)
    }))
})
