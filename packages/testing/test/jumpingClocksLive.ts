/** Fleets whose wall clocks jump, over a store that has its own clock, and therefore in real time. */
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { TokenStore } from "@store-api/core"
import { Effect, FastCheck as fc } from "effect"
import * as jumpingClocks from "./jumpingClocks.js"

/** A token is valid for 3.6 seconds, so that an event in an hour of the other tests takes a thousandth. */
const life = 3600

/** Runs a fleet. No token has expired, and no call fails. Also returns how long a read took. */
const runFleet = (
  store: TokenStore.Service,
  fleet: jumpingClocks.Fleet,
  events: ReadonlyArray<jumpingClocks.Event>
) =>
  Effect.gen(function*() {
    const time = jumpingClocks.realTime()
    const longest = { get: 0, put: 0 }
    const measure = <A, E>(operation: keyof typeof longest, effect: Effect.Effect<A, E>) =>
      Effect.suspend(() => {
        const before = time.monotonic()
        const note = () => {
          longest[operation] = Math.max(longest[operation], time.monotonic() - before)
        }
        return Effect.ensuring(effect, Effect.sync(note))
      })
    const watched: TokenStore.Service = {
      ...store,
      get: (key) => measure("get", store.get(key)),
      put: (key, entry, life) => measure("put", store.put(key, entry, life))
    }
    const report = yield* jumpingClocks.run(
      {
        time,
        machines: jumpingClocks.threeMachines(time),
        storeOn: () => Effect.succeed(watched),
        storeMachine: jumpingClocks.makeMachine(time)
      },
      fleet,
      events
    )
    // The store counts the lifetime of an entry from when it got it.
    const expired = jumpingClocks.expired(report).filter(({ at, end }) =>
      at >= end + longest.put
    )
    // On a busy machine, an acquisition may take longer than its token is valid, which then has expired on arrival.
    const isInTime = report.answers.every(({ askedAt, at }) => at - askedAt < fleet.life)
    deepStrictEqual(
      [expired, isInTime ? jumpingClocks.failed(report) : []],
      [[], []],
      JSON.stringify({ fleet, events })
    )
    return { ...report, longestRead: longest.get }
  })

/** A control, because random events allow several token requests: processes whose clocks are right share one token. */
const expectOneRequest = (store: TokenStore.Service) =>
  Effect.gen(function*() {
    const fleet: jumpingClocks.Fleet = {
      processes: 3,
      endpoint: "mints",
      life,
      wayToEndpoint: 30,
      wayToStore: 0,
      chance: 0.5
    }
    const calls = [0, 1, 2].map((process): jumpingClocks.Event => ({ _tag: "Get", process }))
    const { answers, requests } = yield* runFleet(store, fleet, calls)
    deepStrictEqual([answers.length, requests], [3, 1])
  })

/** Lets random events happen to this number of fleets at the same time. */
export const runRandomFleets = (store: TokenStore.Service, count: number, seed: number) => {
  const arbitrary = fc.tuple(
    jumpingClocks.fleets(life).map((fleet) => ({
      ...fleet,
      wayToEndpoint: 30,
      wayToStore: 0
    })),
    jumpingClocks.events(life, { maxLength: 20, jump: "Jump" })
  )
  const random = Effect.forEach(
    fc.sample(arbitrary, { numRuns: count, seed }),
    ([fleet, events]) =>
      Effect.gen(function*() {
        const started = performance.now()
        const { longestRead, requests, schedule } = yield* runFleet(store, fleet, events)
        if (fleet.endpoint === "repeats") return
        // With right clocks, a token is renewed when a quarter of its lifetime is left, at most. A reader counts from
        // before its read, and the endpoint takes time too, for which the last part counts as a whole lifetime.
        const lifetimes = Math.ceil(
          (performance.now() - started) / Math.max(0.75 * life - longestRead, 1)
        )
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
  return Effect.zipRight(expectOneRequest(store), random)
}

/** Runs all scenarios at the same time. */
export const runScenarios = (store: TokenStore.Service) =>
  Effect.forEach(
    jumpingClocks.scenarios(life),
    ({ events }) =>
      runFleet(
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
