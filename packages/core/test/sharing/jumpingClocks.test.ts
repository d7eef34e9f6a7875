import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  type Event,
  events,
  expired,
  failed,
  type Fleet,
  fleets,
  jumpsOf,
  memoryWorld,
  run,
  scenarios,
  withRightClocks
} from "@store-api/testing/jumpingClocks"
import { Effect, FastCheck as fc } from "effect"
import { hour, minute } from "../support/scriptedSource.js"

const runInMemory = (fleet: Fleet, events: ReadonlyArray<Event>) =>
  Effect.runPromise(Effect.flatMap(memoryWorld, (world) => run(world, fleet, events)))

const fleet: Fleet = {
  processes: 3,
  endpoint: "mints",
  life: hour,
  wayToEndpoint: 50,
  wayToStore: 5,
  chance: 0.5
}

/** For a search: `MODEL_RUNS=20000 MODEL_SEED=7`. */
const numRuns = Number(process.env["MODEL_RUNS"] ?? 1000)
const seed = Number(process.env["MODEL_SEED"] ?? 1)

describe("a fleet whose wall clocks jump", () => {
  it.each(
    [
      { clocks: "of its processes", jump: "Jump", numRuns },
      { clocks: "of its store", jump: "StoreJump", numRuns: numRuns / 10 }
    ] as const
  )(
    `serves no expired token, fails no call, and sends at most one token request more per jump: those $clocks (MODEL_SEED=${seed})`,
    async ({ jump, numRuns }) => {
      let requests = 0
      await fc.assert(
        fc.asyncProperty(fleets(hour), events(hour, { maxLength: 15, jump }), async (fleet, events) => {
          const report = await runInMemory(fleet, events)
          deepStrictEqual([expired(report), failed(report)], [[], []])
          requests += report.requests
          const jumps = jumpsOf(events)
          // With right clocks, the first call also sends a request.
          if (report.requests <= 1 + jumps) return
          const right = await runInMemory(fleet, withRightClocks(report.schedule))
          assert.isAtMost(report.requests, right.requests + jumps)
        }),
        { numRuns, seed }
      )
      assert.isAbove(requests, numRuns, "more token requests than sequences")
    },
    300_000
  )

  it.each(scenarios(hour))("serves no expired token and fails no call: $title", async ({ events }) => {
    const report = await runInMemory({ ...fleet, processes: 2 }, events)
    deepStrictEqual([expired(report), failed(report)], [[], []])
  })

  it("replaces a token that expired after its wall clock was set back", async () => {
    const [{ events } = { events: [] }] = scenarios(hour)
    const { answers, requests } = await runInMemory(fleet, events)
    deepStrictEqual([answers.map(({ value }) => value), requests], [["token-1", "token-1", "token-2"], 2])
  })

  it.each(
    (["mints", "repeats", "extends"] as const).flatMap((endpoint) =>
      [0, 1].flatMap((process) => [-120, 120].map((minutes) => ({ endpoint, process, minutes })))
    )
  )(
    "gets the same answers as with right clocks if process $process is wrong by $minutes minutes from the start: the endpoint $endpoint",
    async ({ endpoint, minutes, process }) => {
      const events = [
        { _tag: "Get", process: 0 },
        ...Array.from({ length: 130 }).flatMap((_, index) => [
          { _tag: "Wait", millis: minute },
          { _tag: "Get", process: index % 3 }
        ])
      ] as ReadonlyArray<Event> // the tags are literals
      const right = await runInMemory({ ...fleet, endpoint }, events)
      const wrong = await runInMemory({ ...fleet, endpoint }, [
        { _tag: "Jump", process, millis: minutes * minute },
        ...events
      ])
      assert.isAbove(right.requests, 2)
      deepStrictEqual(wrong.answers, right.answers)
    }
  )
})
