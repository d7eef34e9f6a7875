/** Runs the tests of `provider.test.ts` with more cases and with the other HTTP clients. */
import { FetchHttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { describe } from "@effect/vitest"
import { interruption } from "../support/interruption.js"
import { overSockets } from "../support/overSockets.js"
import { testRandomSequences } from "../support/providerModel.js"

testRandomSequences(1500)

describe("AccessTokenProvider, interruption", () => {
  interruption({ every: 1, runs: 300 })
})

overSockets("node:http", NodeHttpClient.layer)
overSockets("fetch", FetchHttpClient.layer)
