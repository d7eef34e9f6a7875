import { describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, TokenSource } from "@store-api/core"
import { test } from "@store-api/testing/test"
import { DateTime, Effect } from "effect"
import { drive, fullToken, member, watched } from "../support/fleet.js"

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
})
