import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import * as jumpingClocks from "@store-api/testing/jumpingClocks"
import { asyncProperty } from "@store-api/testing/test"
import { Effect, FastCheck as fc } from "effect"
import { hour, minute } from "../support/scriptedSource.js"

type Event = jumpingClocks.Event

const runIn =
  (world: typeof jumpingClocks.memoryWorld) =>
  (fleet: jumpingClocks.Fleet, events: ReadonlyArray<Event>) =>
    Effect.runPromise(
      Effect.flatMap(world, (world) => jumpingClocks.run(world, fleet, events))
    )

const runInMemory = runIn(jumpingClocks.memoryWorld)
const runWithServer = runIn(jumpingClocks.serverWorld)

const threeProcesses: jumpingClocks.Fleet = {
  processes: 3,
  endpoint: "mints",
  life: hour,
  wayToEndpoint: 50,
  wayToStore: 5,
  chance: 0.5
}

const get = (process: number): Event => ({ _tag: "Get", process })
const wait = (millis: number): Event => ({ _tag: "Wait", millis })
const waitUntil = (left: number): Event => ({ _tag: "WaitUntil", left })
const jump = (process: number, millis: number): Event => ({ _tag: "Jump", process, millis })

/** To search for a counterexample: `MODEL_RUNS=20000 MODEL_SEED=7`. */
const numRuns = Number(process.env["MODEL_RUNS"] ?? 1000)
const seed = Number(process.env["MODEL_SEED"] ?? Math.floor(Math.random() * 2 ** 31))

describe("random events", () => {
  const searches = [
    {
      title:
        "a jump of a process clock costs at most one token request: no failure, no expired token",
      jump: "Jump",
      numRuns,
      runIn: runInMemory,
      wrong: (_: unknown, report: jumpingClocks.Report) => jumpingClocks.expired(report)
    },
    {
      title:
        "a jump of the server clock costs at most one token request: no failure, no unexplained token",
      jump: "StoreJump",
      numRuns: numRuns / 4,
      runIn: runWithServer,
      wrong: jumpingClocks.unexplained
    }
  ] as const
  for (const { jump, numRuns, runIn, title, wrong } of searches) {
    it(title, async () => {
      const arbitraries = [
        jumpingClocks.fleets(hour),
        jumpingClocks.events(hour, { maxLength: 15, jump })
      ] as const
      let requests = 0
      await fc.assert(
        asyncProperty(...arbitraries, async (fleet, events) => {
          const report = await runIn(fleet, events)
          deepStrictEqual([wrong(fleet, report), jumpingClocks.failed(report)], [[], []])
          requests += report.requests
          const jumps = jumpingClocks.jumpsOf(events)
          // With right clocks, the first call also sends a request.
          if (report.requests <= 1 + jumps) return
          const right = await runIn(fleet, jumpingClocks.withRightClocks(report.schedule))
          assert.isAtMost(report.requests, right.requests + jumps)
        }),
        { numRuns, seed }
      )
      assert.isAbove(requests, numRuns / 2, "control: token requests")
    })
  }
})

describe("a wall clock that is wrong from the start", () => {
  const clocks = (["mints", "repeats", "extends"] as const).flatMap((endpoint) =>
    [0, 1].flatMap((process) => [-2, 2].map((hours) => ({ endpoint, process, hours })))
  )

  it.each(clocks)(
    "a wrong clock changes no answer: that of process $process, by $hours h; the endpoint $endpoint",
    async ({ endpoint, hours, process }) => {
      const calls = Array.from(
        { length: 130 },
        (_, index) => [get(index % 3), wait(minute)]
      ).flat()
      const fleet = { ...threeProcesses, endpoint }
      const right = await runInMemory(fleet, calls)
      assert.isAbove(right.requests, 2, "control")
      const wrong = await runInMemory(fleet, [jump(process, hours * hour), ...calls])
      deepStrictEqual(wrong, { ...right, schedule: wrong.schedule })
    }
  )

  it.each(jumpingClocks.scenarios(hour))(
    "no process serves an expired token: $title",
    async ({ events }) => {
      const report = await runInMemory(threeProcesses, events)
      deepStrictEqual([jumpingClocks.expired(report), jumpingClocks.failed(report)], [[], []])
    }
  )
})

describe("a jump during an acquisition costs no failure and no expired token", () => {
  const fleet: jumpingClocks.Fleet = {
    ...threeProcesses,
    endpoint: "repeats",
    wayToEndpoint: 1000,
    wayToStore: 400
  }

  /** In the middle of each step: three before the request, the request itself, and three after it. */
  const moments = [400, 1200, 2000, 2900, 3900, 4800, 5600, 6400]
  const jumps = [-2 * hour, -1500, 1500, hour - 3000]

  const acquisitions: Readonly<
    Record<string, readonly [before: ReadonlyArray<Event>, call: Event]>
  > = {
    "of a process that starts": [[], get(0)],
    "of a process that starts while another one has a token": [[get(1), wait(minute)], get(0)],
    "that renews a token": [[get(0), waitUntil(3 * minute)], get(0)],
    "that replaces an expired token": [[get(0), waitUntil(-minute)], get(0)],
    "that replaces a rejected token": [[get(0), wait(minute)], { _tag: "Reject", process: 0 }]
  }

  it.each(Object.entries(acquisitions))(
    "a jump during an acquisition causes no failure or expired token: %s",
    async (_, [before, call]) => {
      for (const moment of moments) {
        for (const millis of jumps) {
          const after = [
            wait(minute),
            get(0),
            get(1),
            waitUntil(1),
            get(0),
            get(1),
            waitUntil(-1),
            get(0),
            get(1)
          ]
          const report = await runInMemory(fleet, [
            ...before,
            call,
            wait(moment),
            jump(0, millis),
            ...after
          ])
          const wrong = [jumpingClocks.expired(report), jumpingClocks.failed(report)]
          deepStrictEqual(
            wrong,
            [[], []],
            `a jump by ${millis} ms, ${moment} ms after the call`
          )
        }
      }
    }
  )
})

it("a token that seems to have expired before it is stored costs one more token request in the whole fleet", async () => {
  const fleet: jumpingClocks.Fleet = {
    ...threeProcesses,
    wayToEndpoint: 1000,
    wayToStore: 400
  }
  for (let moment = 4400; moment < 8000; moment += 200) {
    const events = [get(0), get(1), wait(moment), jump(0, hour - 5000), waitUntil(0)]
    const report = await runInMemory(fleet, events)
    deepStrictEqual(jumpingClocks.failed(report), [], `a jump ${moment} ms after the call`)
    assert.isAtMost(report.requests, 2, `a jump ${moment} ms after the call`)
  }
})

describe("a process whose wall clock is set back", () => {
  it("a process whose wall clock is set back replaces a token that has expired", async () => {
    const events = [
      get(0),
      wait(30 * minute),
      get(0),
      jump(0, -10 * minute),
      wait(31 * minute),
      get(0)
    ]
    const { answers } = await runInMemory(threeProcesses, events)
    deepStrictEqual(answers.map(({ value }) => value), ["token-1", "token-1", "token-2"])
  })

  it("a process whose wall clock is set back uses a repeated token no longer than before", async () => {
    // A slow store, so that no caller near the end of the token gets another one in time.
    const fleet: jumpingClocks.Fleet = {
      ...threeProcesses,
      endpoint: "repeats",
      wayToStore: 400
    }
    // The endpoint rounds down to whole seconds.
    for (let part = 0; part < 1000; part += 100) {
      const setBack: ReadonlyArray<Event> = [wait(minute + part), jump(0, -1900), {
        _tag: "Reject",
        process: 0
      }]
      const report = await runInMemory(fleet, [get(0), ...setBack, waitUntil(-200), get(0)])
      deepStrictEqual(jumpingClocks.expired(report), [], `${part} ms after a whole second`)
    }
  })

  it("a repeated token is accepted although it seemed to be older when the wall clock was ahead", async () => {
    const fleet: jumpingClocks.Fleet = {
      ...threeProcesses,
      endpoint: "repeats",
      wayToEndpoint: 1000
    }
    const setForward = [
      get(0),
      wait(500),
      jump(0, 10 * minute),
      wait(minute),
      waitUntil(5 * minute)
    ]
    for (const during of [0, -100]) {
      const setBack = [jump(0, -50 * minute), get(0), wait(500), jump(0, during)]
      const { answers } = await runInMemory(fleet, [...setForward, ...setBack])
      deepStrictEqual(answers.map(({ value }) => value), ["token-1", "token-1"])
    }
  })
})
