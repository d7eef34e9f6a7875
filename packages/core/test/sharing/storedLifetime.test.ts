import { describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, TokenSource } from "@store-api/core"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { DateTime, Duration, Effect, Option } from "effect"
import { drive, fullToken, member, watched } from "../support/fleet.js"
import { minute } from "../support/scriptedSource.js"

describe("a store of your own gets the remaining lifetime of a token", () => {
  // A token that has expired is acquired once more.
  test.each(
    [["zero if it has expired", 0, [0, 0]], ["whole milliseconds", 120_000.5, [
      60_001
    ]]] as const
  )(
    "as %s",
    function*([, more, lifetimes]) {
      const acquired = Effect.map(
        Effect.all([fullToken("token"), DateTime.now]),
        ([token, now]) => {
          const end = DateTime.addDuration(DateTime.subtract(now, { minutes: 1 }), more)
          return new AccessToken.AccessToken({
            ...token,
            acquiredAt: DateTime.subtract(now, { minutes: 2 }),
            expiresAt: end
          })
        }
      )
      const { puts, store } = yield* watched
      const { acquire } = yield* member(TokenSource.make(() => acquired), store)
      yield* (yield* drive(yield* Effect.fork(acquire(TokenSource.missing)))).exit
      deepStrictEqual((yield* puts).map(([, , life]) => life), [...lifetimes])
    }
  )

  const movedBack = [
    ["less than its age", 40 * minute],
    ["its age", 57 * minute],
    ["its age and a part of a second", 57 * minute + 500]
  ] as const

  test.live.each(movedBack)(
    "that ends no later than before if your source returns it again and the wall clock moved back by %s",
    function*([, by]) {
      const virtual = VirtualClock.make()
      yield* Effect.gen(function*() {
        const same = yield* fullToken("same")
        const { puts, store } = yield* watched
        const { acquire } = yield* member(TokenSource.make(() => Effect.succeed(same)), store)
        yield* acquire(TokenSource.missing)
        yield* virtual.advance("57 minutes")
        virtual.jump(-by)
        yield* acquire({ reason: "Renewal", replacing: Option.some(same) })
        const minutes = (yield* puts).map(([, , life]) => Duration.toMillis(life) / minute)
        deepStrictEqual(minutes, [60, 3])
      }).pipe(Effect.withClock(virtual.clock))
    }
  )
})
