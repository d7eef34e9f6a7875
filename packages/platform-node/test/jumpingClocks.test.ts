import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { FileTokenStore } from "@store-api/platform-node"
import * as jumpingClocks from "@store-api/testing/jumpingClocks"
import { asyncProperty } from "@store-api/testing/test"
import { Effect, FastCheck as fc } from "effect"
import { newFolder } from "./support/tokenFolder.js"

const hour = 60 * 60_000

/** A folder that processes on this number of machines share. The store counts by the wall clock of its process. */
const fileWorld = (machines: number) =>
  Effect.map(newFolder, (folder): jumpingClocks.World => {
    const time = jumpingClocks.virtualTime()
    return {
      time,
      machines: Array.from({ length: machines }, () => jumpingClocks.makeMachine(time)),
      storeOn: () =>
        Effect.orDie(Effect.provide(FileTokenStore.make({ folder }), NodeContext.layer)),
      storeMachine: jumpingClocks.makeMachine(time)
    }
  })

const runWithFiles = (
  machines: number,
  fleet: jumpingClocks.Fleet,
  events: ReadonlyArray<jumpingClocks.Event>
) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(fileWorld(machines), (world) => jumpingClocks.run(world, fleet, events))
    )
  )

const numRuns = Number(process.env["MODEL_RUNS"] ?? 100)
const seed = Number(process.env["MODEL_SEED"] ?? Math.floor(Math.random() * 2 ** 31))

describe("processes that share a token in files", () => {
  it(
    `on a machine whose wall clock jumps: none fails, and none serves an expired token that it knew before (MODEL_SEED=${seed})`,
    async () => {
      const arbitraries = [
        jumpingClocks.fleets(hour),
        jumpingClocks.events(hour, { maxLength: 15, jump: "Jump" })
      ] as const
      let requests = 0
      await fc.assert(
        asyncProperty(...arbitraries, async (fleet, events) => {
          const report = await runWithFiles(1, fleet, events)
          deepStrictEqual([
            jumpingClocks.unexplained(fleet, report),
            jumpingClocks.failed(report)
          ], [[], []])
          requests += report.requests
          // One jump is that of each process and that of the store.
          const jumps = jumpingClocks.jumpsOf(events) * (fleet.processes + 1)
          if (report.requests <= 1 + jumps) return
          const right = await runWithFiles(
            1,
            fleet,
            jumpingClocks.withRightClocks(report.schedule)
          )
          assert.isAtMost(report.requests, right.requests + jumps)
        }),
        { numRuns, seed }
      )
      assert.isAbove(requests, numRuns, "more token requests than sequences")
    },
    300_000
  )

  it.each(jumpingClocks.scenarios(hour))(
    "every call gets a valid token: $title",
    async ({ events }) => {
      const fleet: jumpingClocks.Fleet = {
        processes: 2,
        endpoint: "mints",
        life: hour,
        wayToEndpoint: 50,
        wayToStore: 0,
        chance: 0.5
      }
      const report = await runWithFiles(2, fleet, events)
      deepStrictEqual([jumpingClocks.expired(report), jumpingClocks.failed(report)], [[], []])
    }
  )
})
