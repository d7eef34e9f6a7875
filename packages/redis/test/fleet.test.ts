import { Effect } from "effect"
import { inProcess } from "./support/fleet.js"
import { fleetTests, virtualTime } from "./support/fleetTests.js"

fleetTests({
  name: "6 providers in one process and one Redis",
  size: 6,
  fleet: Effect.succeed(inProcess),
  pace: virtualTime(4 * 60_000),
  life: 30 * 60_000
})
