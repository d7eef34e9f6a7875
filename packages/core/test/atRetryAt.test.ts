import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError } from "@store-api/core"
import { clockOf } from "@store-api/testing/effectMajor"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Clock, DateTime, Duration, Effect, Fiber, Ref, TestClock } from "effect"

const unreachable = (retryAt?: number) =>
  new AccessTokenError.TokenRequestError({
    reason: "Transport",
    attempts: 1,
    retryAt: retryAt === undefined ? undefined : DateTime.unsafeMake(retryAt)
  })

/** The times of the attempts, in milliseconds, of which each fails with the result of `fail`. */
const attemptsOf = (times: number, fail: (now: number) => Error) =>
  Effect.gen(function*() {
    const attempts = yield* Ref.make<ReadonlyArray<number>>([])
    const attempt = Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      yield* Ref.update(attempts, (all) => [...all, now])
      return yield* Effect.fail(fail(now))
    })
    const fiber = yield* Effect.fork(
      Effect.flip(Effect.retry(attempt, AccessTokenError.atRetryAt(times)))
    )
    yield* TestClock.adjust("1 day")
    yield* Fiber.join(fiber)
    return yield* Ref.get(attempts)
  })

describe("atRetryAt", () => {
  test("retries at the retryAt of each error", function*() {
    const pauses = [1000, 4000, 90_000]
    let failures = 0
    const attempts = yield* attemptsOf(
      3,
      (now) => unreachable(now + (pauses[failures++] ?? 0))
    )
    deepStrictEqual(attempts, [0, 1000, 5000, 95_000])
  })

  test("retries at once when retryAt is over", function*() {
    const attempts = yield* attemptsOf(2, (now) => unreachable(now - 1000))
    deepStrictEqual(attempts, [0, 0, 0])
  })

  test("retries after a second an error without retryAt", function*() {
    deepStrictEqual(yield* attemptsOf(2, () => unreachable()), [0, 1000, 2000])
  })

  test.each([
    [
      "a token request that was redirected",
      () => new AccessTokenError.TokenRequestError({ reason: "Redirect", attempts: 1 })
    ],
    ["an API", () => new Error("out of stock")]
  ])("does not retry, and does not wait for, the error of %s", function*([, make]) {
    const attempts = yield* Ref.make(0)
    const attempt = Effect.zipRight(
      Ref.update(attempts, (count) => count + 1),
      Effect.fail(make())
    )
    // Would never end if it slept.
    yield* Effect.flip(Effect.retry(attempt, AccessTokenError.atRetryAt(3)))
    assert.strictEqual(yield* Ref.get(attempts), 1)
  })

  test("does not wait after the last attempt", function*() {
    const attempt = Effect.fail(unreachable(60_000))
    assert.strictEqual(
      (yield* Effect.flip(Effect.retry(attempt, AccessTokenError.atRetryAt(0)))).reason,
      "Transport"
    )
  })

  /** The monotonic time of the second attempt, at a timer that ends early, and with a wall clock that is set back. */
  const secondAttempt = (early: number, setBack: number) =>
    Effect.gen(function*() {
      const time = VirtualClock.make()
      const clock = clockOf({
        wall: time.wall,
        monotonic: time.monotonic,
        sleep: (duration) =>
          time.clock.sleep(Duration.subtract(duration, Duration.millis(early)))
      })
      const attempts: Array<number> = []
      const attempt = Effect.suspend(() => {
        attempts.push(time.monotonic())
        return attempts.length > 1 ? Effect.void : Effect.fail(unreachable(time.wall() + 1000))
      })
      const fiber = yield* Effect.fork(
        Effect.withClock(Effect.retry(attempt, AccessTokenError.atRetryAt(1)), clock)
      )
      yield* time.advance("500 millis")
      time.jump(-setBack)
      yield* time.advance("1 hour")
      yield* Fiber.join(fiber)
      return attempts[1]
    })

  test("waits again when a timer ends before retryAt", function*() {
    assert.strictEqual(yield* secondAttempt(3, 0), 1000 - 3)
  })

  test("waits at most 100 ms longer when the wall clock is set back", function*() {
    assert.strictEqual(yield* secondAttempt(0, 10_000), 1100)
  })
})
