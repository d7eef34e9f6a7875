import { describe } from "@effect/vitest"
import { interruption } from "./support/interruption.js"

describe("AccessTokenProvider, interruption", () => {
  interruption({ every: 1, runs: 300 })
})
