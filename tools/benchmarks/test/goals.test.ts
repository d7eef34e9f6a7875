import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import * as cached from "../src/cached.js"
import { cachedPathGoals, missedOf, verdictOf } from "../src/goals.js"
import * as hit from "../src/hit.js"
import { withTables } from "../src/page.js"

const timed = (name: string, ratio: number) => {
  const always = (value: number) => ({ median: value, low: value, high: value })
  return [{ name, ns: always(100), ratio: always(ratio) }]
}

const judged = (hits: number, traced: number, calls: number, tracedCalls: number) =>
  cachedPathGoals({
    hits: timed(hit.ours, hits),
    calls: timed(cached.ours, calls),
    traced: { hits: timed(hit.ours, traced), calls: timed(cached.ours, tracedCalls) }
  })

const [met, within, missed] = ["met", "goal missed, within the limit", "LIMIT MISSED"]

describe("the goals of a cached token", () => {
  it.each([
    [[2.8, 2.8, 1, 1.1], [met, met, met, met]],
    [[3.2, 3.2, 1.2, 1.3], [within, within, within, within]],
    [[3.21, 2, 1, 1], [missed, met, met, met]],
    [[2, 3.21, 1, 1], [met, missed, met, met]],
    [[2, 2, 1.21, 1], [met, met, missed, met]],
    [[2, 2, 1, 1.31], [met, met, met, missed]],
    [[Number.NaN, 2, 1, Number.NaN], [missed, met, met, missed]]
  ])("are met up to the goal, and missed above the limit or without a figure: %j", (ratios, verdicts) => {
    const goals = judged(...ratios as [number, number, number, number])
    assert.deepStrictEqual(goals.map(verdictOf), verdicts)
    assert.lengthOf(missedOf(goals), verdicts.filter((verdict) => verdict === missed).length)
  })
})

describe("the pages", () => {
  const read = (name: string) => readFileSync(new URL(`../../../docs/evidence/${name}.md`, import.meta.url), "utf8")

  it.each([
    ["benchmarks", "machine goals hits tracedHits stampedes coldStart peers effect4"],
    ["fleets", "steady repeating renewal start short outage capacity"]
  ])("%s has a place for each table, which is filled without a change to the others", (name, tables) => {
    const page = read(name)
    for (const table of tables.split(" ")) {
      const [before = "", after = ""] = withTables(page, { [table]: "NEW" }).split("NEW")
      assert.isTrue(page.startsWith(before) && page.endsWith(after) && before.length > 100, table)
    }
    assert.throws(() => withTables(page, { other: "NEW" }), /no place for other/)
  })
})
