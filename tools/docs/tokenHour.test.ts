/** The picture of the README. `npm run picture` writes it. */
import { Effect, Logger, LogLevel } from "effect"
import { assert, describe, expect, it } from "vitest"
import { draw, outage, record } from "./tokenHour.js"

describe("docs/images/token-hour.svg", async () => {
  const recording = await Effect.runPromise(Logger.withMinimumLogLevel(record, LogLevel.None))

  it("shows that a renewal delays no call, and that calls of an outage fail only after the token has expired", () => {
    const { calls, states, tokenRequests } = recording
    const stateAt = (at: number) => states.filter(({ from }) => from <= at).at(-1)?.state
    const ofOutage = calls.filter(({ at }) => at >= outage.from && at < outage.to)
    assert.sameMembers([...new Set(ofOutage.map(({ at }) => stateAt(at)))], [
      "Fresh",
      "RefreshSoon",
      "MustWait",
      "Expired"
    ])
    for (const { at, outcome } of ofOutage) assert.strictEqual(outcome === "failed", stateAt(at) === "Expired", `${at}`)
    const waited = calls.filter(({ at, outcome }) => outcome === "waited" && at < outage.from)
    assert.deepStrictEqual(waited.map(({ at }) => at), [0])
    assert.lengthOf(tokenRequests.filter(({ outcome }) => outcome === "succeeded"), 3)
  })

  it("is what `npm run picture` draws", async () => {
    await expect(draw(recording)).toMatchFileSnapshot("../../docs/images/token-hour.svg")
  })
})
