import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import * as calls from "../src/calls.js"
import { cachedPathGoals } from "../src/goals.js"
import * as hit from "../src/hit.js"
import type { CachedPath } from "../src/measure.js"
import { split } from "../src/report.js"

const always = (value: number) => ({ median: value, low: value, high: value })

const timed = (name: string, ratio: number) => ({ name, ns: always(100), ratio: always(ratio) })

const path = (ratios: readonly [number, number, number, number]): CachedPath => ({
  hits: [timed(hit.ours, ratios[0]), timed(hit.repeated, 1)],
  calls: [timed(calls.ours, ratios[2])],
  traced: { hits: [timed(hit.ours, ratios[1]), timed(hit.repeated, 1)], calls: [timed(calls.ours, ratios[3])] }
})

const verdicts = (...ratios: readonly [number, number, number, number]) =>
  cachedPathGoals(path(ratios)).map(({ verdict }) => verdict)

const [met, within, missed] = ["met", "goal missed, within the limit", "LIMIT MISSED"]

describe("the goals of a cached token", () => {
  it("are met up to the goal, and missed above the limit, each independently", () => {
    assert.deepStrictEqual(verdicts(2.8, 2.8, 1, 1.1), [met, met, met, met])
    assert.deepStrictEqual(verdicts(3.2, 3.2, 1.2, 1.3), [within, within, within, within])
    assert.deepStrictEqual(verdicts(3.21, 2, 1, 1), [missed, met, met, met])
    assert.deepStrictEqual(verdicts(2, 3.21, 1, 1), [met, missed, met, met])
    assert.deepStrictEqual(verdicts(2, 2, 1.21, 1), [met, met, missed, met])
    assert.deepStrictEqual(verdicts(2, 2, 1, 1.31), [met, met, met, missed])
  })

  it("are missed without a measurement", () => {
    assert.deepStrictEqual(verdicts(Number.NaN, 2, 1, Number.NaN), [missed, met, met, missed])
    assert.throws(() => cachedPathGoals({ ...path([2, 2, 1, 1]), calls: [] }), /was not measured/)
  })
})

describe("the page", () => {
  it("has a section of Effect 4, which `npm run bench` keeps", () => {
    const page = readFileSync(new URL("../../../docs/evidence/benchmarks.md", import.meta.url), "utf8")
    const [own, effect4] = split(page)
    assert.strictEqual(own + effect4, page)
    assert.match(effect4, /^\n## Effect 4\n[^]*\| provider\.get \|/)
    assert.notInclude(own, "Effect 4")
    assert.deepStrictEqual(split(own), [own, ""])
  })
})
