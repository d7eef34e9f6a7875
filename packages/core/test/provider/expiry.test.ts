import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { aged, hour, minute, providerTest, settle, timeline, token } from "../support/scriptedSource.js"

describe("AccessTokenProvider, expiry", () => {
  it.effect.each([1000, 500, 100])(
    "lifetimes of 1 s and less: at most one request per get, and no background renewal within a second: %d ms",
    (lifetime) =>
      timeline((n) => token(`token-${n}`, lifetime), function*({ calls, provider, virtual }) {
        let background = 0
        for (let call = 0; call < 500; call++) {
          const before = yield* calls
          const { state } = yield* provider.status
          yield* provider.get
          yield* settle
          const requests = (yield* calls) - before
          assert.isAtMost(requests, 1)
          if (state !== "Empty" && state !== "Expired") background += requests
          yield* virtual.advance("10 millis")
        }
        assert.isAtMost(background, 5, "5 seconds")
      })
  )

  it.effect.each([0, -5000])(
    "lifetimes of 0 and less: get fails with DeadOnArrival, its expiry and the current time, and sends no request during the cooldown: %d ms",
    (lifetime) =>
      timeline(() => aged("expired", hour, lifetime), function*({ after, provider, virtual }) {
        const error = yield* Effect.flip(provider.get)
        if (error._tag !== "TokenExpiredError") return assert.fail(error._tag)
        assert.strictEqual(error.reason, "DeadOnArrival")
        assert.strictEqual(error.expiredAt.epochMillis, virtual.wall() + lifetime)
        assert.strictEqual(error.checkedAt.epochMillis, virtual.wall())
        assert.isTrue(Option.isSome(error.retryAt))
        for (let call = 0; call < 10; call++) yield* after(0, { gets: "DeadOnArrival", calls: 1 })
        yield* after("1 seconds", { gets: "DeadOnArrival", calls: 2 })
      })
  )

  providerTest(() => token("one", "3650 days"))(
    "a token with a huge lifetime stays fresh until the longest margin begins",
    function*({ after }) {
      yield* after(0, { gets: "one" })
      yield* after("3600 days", { state: "Fresh", gets: "one" })
    }
  )

  describe("the token's lifetime by the monotonic clock", () => {
    it.effect.each([
      { measured: "before the request if the wall clock moved back", during: -5, afterwards: 0, lifetime: 50 },
      { measured: "the token's arrival if the wall clock moved forward", during: 5, afterwards: -5, lifetime: 45 }
    ])("is measured from $measured during the acquisition", ({ afterwards, during, lifetime }) =>
      timeline(
        (_, virtual) =>
          Effect.tap(
            aged("one", 10 * minute, 50 * minute),
            () => Effect.sync(() => virtual.jump(during * minute))
          ),
        function*({ after, provider, virtual }) {
          yield* provider.get
          virtual.jump(afterwards * minute)
          yield* after(lifetime * minute - 1, { state: "MustWait" })
          yield* after(1, { state: "Expired" })
          assert.isBelow(virtual.wall(), Option.getOrThrow((yield* provider.status).expiresAt).epochMillis)
        }
      ))

    providerTest((_, virtual) =>
      Effect.gen(function*() {
        virtual.jump(900)
        const ahead = yield* token("ahead")
        virtual.jump(-900)
        return ahead
      })
    )("never exceeds the full lifetime, even if acquiredAt is ahead of the wall clock", function*({ after, provider }) {
      yield* provider.get
      yield* after(hour - 1, { state: "MustWait" })
      // By the wall clock, 900 ms are left.
      yield* after(1, { state: "Expired" })
    })

    providerTest((n) => n === 1 ? token("one") : aged("two", 0, 50 * minute))(
      "does not depend on an earlier token with the same expiresAt after the wall clock moved back",
      function*({ after, provider, virtual }) {
        const one = yield* provider.get
        yield* virtual.advance(50 * minute)
        virtual.jump(-40 * minute)
        const two = yield* provider.refresh
        assert.strictEqual(two.expiresAt.epochMillis, one.expiresAt.epochMillis)
        // The first token would have expired.
        yield* after(11 * minute, { state: "Fresh" })
      }
    )

    providerTest(() => token("sliding", "100 seconds"))(
      "grows when the same value arrives with a later expiresAt",
      function*({ after, provider }) {
        yield* provider.get
        yield* after("70 seconds", { state: "Fresh" })
        yield* provider.refresh
        yield* after("70 seconds", { state: "Fresh" })
      }
    )
  })
})
