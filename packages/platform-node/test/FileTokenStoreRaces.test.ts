import { describe } from "@effect/vitest"
import { Effect } from "effect"
import { storeRaces } from "./support/storeRaces.js"
import { perform } from "./support/storeWorker.js"

describe("FileTokenStore between fibers", () => {
  storeRaces(Effect.succeed(Array.from({ length: 5 }, () => ({ ask: perform }))), 8)
})
