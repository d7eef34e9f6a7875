/** Effect 3 turns a negative duration into zero, and Effect 4 keeps it. The outcome of these tests is the same. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, TokenSource, TokenStore } from "@store-api/core"
import { test } from "@store-api/testing/test"
import { DateTime, Duration, Effect, Exit, Option, Ref } from "effect"
import * as tokenPolicy from "../src/internal/provider/tokenPolicy.js"
import * as FakeClient from "./support/fakeClient.js"
import { drive, endpoint, fullToken, member, watched } from "./support/fleet.js"
import { valueOf } from "./support/scriptedSource.js"

const durations = {
  "a number": -1000,
  "a Duration": Duration.seconds(-1),
  "a fraction of a millisecond": Duration.nanos(-1n),
  "a text": "-1 seconds",
  "minus infinity": -Infinity
} satisfies Record<string, Duration.DurationInput>

describe.each(Object.entries(durations))("a negative duration, given as %s,", (_, duration) => {
  it.each(["refreshAhead", "leeway", "cooldown.base", "cooldown.max"] as const)("is zero in %s", (option) => {
    const policyOf = (value: Duration.DurationInput) => {
      const [name, part] = option.split(".")
      return tokenPolicy.make({ [name ?? ""]: part === undefined ? value : { [part]: value } })
    }
    deepStrictEqual(policyOf(duration), policyOf(0))
    assert.notDeepEqual(policyOf(duration), tokenPolicy.make())
  })

  test.each(["attemptTimeout", "deadline"] as const)("is a ConfigurationError in %s", function*(option) {
    const error = yield* Effect.flip(FakeClient.source(FakeClient.make(FakeClient.token), { [option]: duration }))
    deepStrictEqual([error.option, error.reason], [option, "must be greater than zero"])
  })

  test("is the shortest lease in lease, as zero; others have whole milliseconds, at most an hour", function*() {
    const leases = yield* Ref.make<ReadonlyArray<number>>([])
    for (const lease of [duration, 0, 5000.5, Infinity]) {
      const { source } = yield* endpoint()
      const memory = yield* TokenStore.makeMemory
      const store = TokenStore.TokenStore.of({
        ...memory,
        lease: (key, duration) =>
          Effect.zipRight(
            Ref.update(leases, (all) => [...all, Duration.toMillis(duration)]),
            memory.lease(key, duration)
          )
      })
      const { acquire } = yield* member(source, store, { lease })
      yield* (yield* drive(yield* Effect.fork(acquire(Option.none())))).exit
    }
    deepStrictEqual(yield* Ref.get(leases), [100, 100, 5001, 3_600_000])
  })

  test("does not wait for another process in maxWait, nor for the store in storeTimeout", function*() {
    for (
      const [option, change] of [
        ["maxWait", { lease: () => Effect.succeedNone }],
        ["storeTimeout", { get: () => Effect.never }]
      ] as const
    ) {
      const { requests, source } = yield* endpoint()
      const store = TokenStore.TokenStore.of({ ...yield* TokenStore.makeMemory, ...change })
      const { acquire } = yield* member(source, store, { [option]: duration })
      const { exit, took } = yield* drive(yield* Effect.fork(acquire(Option.none())))
      deepStrictEqual([Exit.map(exit, valueOf), took, yield* requests], [Exit.succeed("token-1"), 0, 1])
    }
  })
})

describe("a store of your own gets the remaining lifetime of a token", () => {
  test.each([["zero if it has expired", 0, 0], ["whole milliseconds", 120_000.5, 60_001]] as const)(
    "as %s",
    function*([, more, life]) {
      const acquired = Effect.map(Effect.all([fullToken("token"), DateTime.now]), ([token, now]) => {
        const end = DateTime.addDuration(DateTime.subtract(now, { minutes: 1 }), more)
        return new AccessToken.AccessToken({
          ...token,
          acquiredAt: DateTime.subtract(now, { minutes: 2 }),
          expiresAt: end
        })
      })
      const { puts, store } = yield* watched
      const { acquire } = yield* member(TokenSource.make(() => acquired), store)
      yield* (yield* drive(yield* Effect.fork(acquire(Option.none())))).exit
      deepStrictEqual((yield* puts).map(([, , life]) => life), [life])
    }
  )
})
