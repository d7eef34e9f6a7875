/** Fleets whose wall clocks jump, over a store that has its own clock, and therefore in real time. */
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { TokenStore } from "@store-api/core"
import { Effect, FastCheck as fc } from "effect"
import * as jumpingClocks from "./jumpingClocks.js"

/** A token is valid for 3.6 seconds, so that an event in an hour of the other tests takes a thousandth. */
const life = 3600

/** Runs a fleet. No token has expired, and no call fails. Returns the number of token requests. */
const survives = (
  store: TokenStore.Service,
  fleet: jumpingClocks.Fleet,
  events: ReadonlyArray<jumpingClocks.Event>
) =>
  Effect.gen(function*() {
    const time = jumpingClocks.realTime()
    let longestPut = 0
    const put: TokenStore.Service["put"] = (...parameters) =>
      Effect.suspend(() => {
        const before = time.monotonic()
        const measure = () => {
          longestPut = Math.max(longestPut, time.monotonic() - before)
        }
        return Effect.ensuring(store.put(...parameters), Effect.sync(measure))
      })
    const report = yield* jumpingClocks.run(
      {
        time,
        machines: jumpingClocks.threeMachines(time),
        storeOn: () => Effect.succeed({ ...store, put }),
        storeMachine: jumpingClocks.makeMachine(time)
      },
      fleet,
      events
    )
    // The store counts the lifetime of an entry from when it got it.
    const expired = jumpingClocks.expired(report).filter(({ at, end }) =>
      at >= end + longestPut
    )
    deepStrictEqual(
      [expired, jumpingClocks.failed(report)],
      [[], []],
      JSON.stringify({ fleet, events })
    )
    return report
  })

/** Lets random events happen to this number of fleets at the same time. */
export const survivesJumps = (store: TokenStore.Service, count: number, seed: number) => {
  const arbitrary = fc.tuple(
    jumpingClocks.fleets(life).map((fleet) => ({
      ...fleet,
      wayToEndpoint: 30,
      wayToStore: 0
    })),
    jumpingClocks.events(life, { maxLength: 20, jump: "Jump" })
  )
  return Effect.forEach(
    fc.sample(arbitrary, { numRuns: count, seed }),
    ([fleet, events]) =>
      Effect.gen(function*() {
        const started = performance.now()
        const { requests, schedule } = yield* survives(store, fleet, events)
        if (fleet.endpoint === "repeats") return
        // With right clocks, a token is renewed when a quarter of its lifetime is left, at most.
        const lifetimes = (performance.now() - started) / (0.75 * life)
        const disturbances = schedule.filter(({ _tag }) =>
          _tag === "Jump" || _tag === "Refresh" || _tag === "Reject"
        )
        assert.isAtMost(
          requests,
          1 + lifetimes + disturbances.length,
          JSON.stringify({ fleet, events })
        )
      }),
    { concurrency: "unbounded", discard: true }
  )
}

/** Runs all scenarios at the same time. */
export const survivesScenarios = (store: TokenStore.Service) =>
  Effect.forEach(
    jumpingClocks.scenarios(life),
    ({ events }) =>
      survives(
        store,
        {
          processes: 2,
          endpoint: "mints",
          life,
          wayToEndpoint: 30,
          wayToStore: 0,
          chance: 0.5
        },
        events
      ),
    { concurrency: "unbounded", discard: true }
  )
