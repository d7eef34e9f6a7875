import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, TokenSource } from "@store-api/core"
import { test } from "@store-api/testing/test"
import { Effect, TestClock } from "effect"
import { token } from "../support/scriptedSource.js"

test("a source learns why it is asked", function*() {
  const reasons: Array<TokenSource.Acquisition["reason"]> = []
  const source = TokenSource.make(({ reason }) =>
    Effect.suspend(() => token(`token-${reasons.push(reason)}`))
  )
  const provider = yield* AccessTokenProvider.make().pipe(
    Effect.provideService(TokenSource.TokenSource, source)
  )
  const expectReasons = (...expected: typeof reasons) =>
    Effect.map(TestClock.adjust(0), () => deepStrictEqual(reasons.splice(0), expected))

  yield* provider.get
  yield* expectReasons("Missing")
  yield* TestClock.adjust("56 minutes")
  yield* provider.get
  yield* expectReasons("Renewal")
  yield* provider.refresh
  yield* expectReasons("Refresh")
  yield* provider.invalidate(yield* provider.get)
  yield* provider.get
  yield* expectReasons("Rejected")
  yield* TestClock.adjust("60 minutes")
  yield* provider.get
  yield* expectReasons("Expired")
})
