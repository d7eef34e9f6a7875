/** `provider.slow.test.ts` runs these tests with more cases and with the other HTTP clients. */
import { NodeHttpClient } from "@effect/platform-node"
import { describe } from "@effect/vitest"
import { interruption } from "../support/interruption.js"
import { overSockets } from "../support/overSockets.js"
import { testRandomSequences } from "../support/providerModel.js"

testRandomSequences(800)

describe("AccessTokenProvider, interruption", () => {
  interruption({ every: 6, runs: 60 })
})

overSockets("undici", NodeHttpClient.layerUndici)
