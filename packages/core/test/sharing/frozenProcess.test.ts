/** A process that is frozen during an acquisition, as a suspended machine or a paused container is. */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Deferred, Effect, Fiber, Option } from "effect"
import { fleet, fullToken, settled } from "../support/fleet.js"
import { minute, valueOf } from "../support/scriptedSource.js"

/** Two clocks that show the same time. Only the first belongs to the process that is frozen. */
const makeClocks = () => {
  const [own, others] = [
    VirtualClock.make(undefined, settled),
    VirtualClock.make(undefined, settled)
  ]
  return {
    own,
    others,
    /** The other processes run meanwhile. */
    freeze: (millis: number) => {
      own.freeze(millis)
      return others.advance(millis)
    }
  }
}

describe("SharedTokenSource, frozen before it stores its token", () => {
  /** The token that processes find in the store after the frozen one has continued, and the number of requests. */
  const storedAfter = (millis: number, wakesUp: "with the response" | "before the response") =>
    Effect.gen(function*() {
      const { freeze, others, own } = makeClocks()
      const response = yield* Deferred.make<void>()
      const { requests, start } = yield* fleet({
        answer: (number) => {
          const token = fullToken(`token-${number}`)
          return number === 1 ? Effect.zipLeft(token, Deferred.await(response)) : token
        }
      })
      const [frozen, other] = [yield* start(), yield* start()]
      const acquiring = yield* Effect.fork(Effect.withClock(frozen.get(), own.clock))
      yield* own.advance(0)
      assert.strictEqual(yield* requests, 1)

      yield* freeze(millis)
      const meanwhile = yield* Effect.fork(Effect.withClock(other.get(), others.clock))
      yield* others.advance(1000)
      if (wakesUp === "before the response") yield* own.advance(1000)
      yield* Deferred.succeed(response, undefined)
      yield* own.advance(1000)
      yield* others.advance(1000)

      assert.strictEqual(valueOf(yield* Fiber.join(acquiring)), "token-1")
      const found = yield* Effect.withClock(other.get(), others.clock)
      deepStrictEqual(valueOf(yield* Fiber.join(meanwhile)), valueOf(found))
      return [valueOf(found), yield* requests]
    })

  test.live.each(["with the response", "before the response"] as const)(
    "a frozen process does not overwrite the newer token of the process that got the lease: wakes up %s",
    function*(wakesUp) {
      deepStrictEqual(yield* storedAfter(10 * minute, wakesUp), ["token-2", 2])
    }
  )

  test.live("a frozen process stores the token if it still has the lease", function*() {
    deepStrictEqual(yield* storedAfter(1000, "with the response"), ["token-1", 1])
  })
})

describe("SharedTokenSource, frozen while it stores its token", () => {
  /** A process whose `put` is executed when it continues. `remove` is that of its store. */
  const frozenFor = (millis: number, remove = (store: TokenStore.Service) => store.remove) =>
    Effect.gen(function*() {
      const { freeze, others, own } = makeClocks()
      const { requests, start, store } = yield* fleet()
      const late = TokenStore.TokenStore.of({
        ...store,
        put: (...entry) => Effect.zipRight(freeze(millis), store.put(...entry)),
        remove: remove(store)
      })
      const frozen = yield* start({ store: late })
      const acquiring = yield* Effect.fork(Effect.withClock(frozen.get(), own.clock))
      yield* settled
      yield* own.advance(0)
      const other = Effect.withClock((yield* start()).get(), others.clock)
      return { acquiring, other, requests }
    })

  test.live("a frozen process removes a token that the store would keep more than a leeway too long", function*() {
    const { acquiring, other, requests } = yield* frozenFor(minute)
    assert.strictEqual(valueOf(yield* Fiber.join(acquiring)), "token-1")
    deepStrictEqual([valueOf(yield* other), yield* requests], ["token-2", 2])
  })

  test.live("a frozen process leaves a token that the store keeps less than a leeway too long", function*() {
    const { acquiring, other, requests } = yield* frozenFor(20_000)
    assert.strictEqual(valueOf(yield* Fiber.join(acquiring)), "token-1")
    deepStrictEqual([valueOf(yield* other), yield* requests], ["token-1", 1])
  })

  test.live("the caller of a frozen process does not wait for the removal", function*() {
    const { acquiring } = yield* frozenFor(minute, () => () => Effect.never)
    assert.isTrue(Option.isSome(yield* Fiber.poll(acquiring)))
  })
})
