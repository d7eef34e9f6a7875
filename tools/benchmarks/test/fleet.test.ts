import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { outcomeOf } from "../src/fleet/fleet.js"
import { common, count, defaults, minute, problemsOf, type Scenario, scenarios } from "../src/fleet/scenarios.js"

describe("a simulated fleet", { timeout: 60_000 }, () => {
  const small = scenarios.filter(({ setup, table }) => setup.processes === 10 && table === "renewal")

  it.each(small)("has the figures that rules and formulas expect: $table, $what", async (scenario) => {
    assert.deepStrictEqual(problemsOf(scenario, await count(scenario)), [])
  })

  it.each(["all calls fail", "a request too many"])("is reported if %s", async (problem) => {
    const [scenario] = small as [Scenario]
    const counts = await count(scenario)
    const wrong = problem === "all calls fail"
      ? { ...counts, failed: counts.calls }
      : { ...counts, requests: counts.requests + 1 }
    assert.lengthOf(problemsOf(scenario, wrong), 1)
  })

  it("has the same outcome each time, and leaves the platform's cryptography as it was", async () => {
    const before = Object.getOwnPropertyDescriptors(globalThis.crypto.subtle)
    const setup = { ...common, processes: 10, lasts: 60 * minute, start: "together" } as const
    const first = await outcomeOf(setup)
    assert.deepStrictEqual(await outcomeOf(setup), first)
    assert.isAbove(first.commands.length, 10)
    assert.deepStrictEqual(Object.getOwnPropertyDescriptors(globalThis.crypto.subtle), before)
  })
})

describe("the default behaviour of a shared token source", () => {
  const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8")
  const [source, page] = [read("packages/core/src/SharedTokenSource.ts"), read("docs/evidence/fleets.md")]

  const numbersOf = (text: string, pattern: RegExp) => {
    const [, ...found] = pattern.exec(text) ?? assert.fail(`There is no ${String(pattern)}`)
    return found.map(Number)
  }
  const seconds = (option: string) => numbersOf(source, new RegExp(`options\\.${option} \\?\\? "([\\d.]+) seconds?"`))
  const [least = 0, more = 0] = numbersOf(source, /millis \* \(([\d.]+) \+ ([\d.]+) \* chance\)/)

  it("is as the formulas and docs/evidence/fleets.md assume it", () => {
    const [first] = numbersOf(source, /const firstPause = (\d+)/)
    const [growth] = numbersOf(source, /const growth = ([\d.]+)/)
    const [longest] = numbersOf(source, /const longestPause = (\d+)/)
    assert.deepStrictEqual({ first, growth, longest, jitter: least + more / 2 }, defaults.pauses)
    assert.deepStrictEqual(seconds("lease"), [defaults.lease / 1000])
    const [maxWait = 0] = seconds("maxWait")
    for (
      const [pattern, expected] of [
        [/token for (\d+) to (\d+) seconds\s+\(`maxWait`\)/, [least, least + more].map((x) => Math.round(x * maxWait))],
        [/the lease ends after (\d+) seconds/, seconds("lease")],
        [/A process gives a command (\d+) second/, seconds("storeTimeout")],
        [/after (\d+) ms, and then after pauses that are each a quarter longer, up to (\d+) ms/, [first, longest]],
        [/\(× ([\d.]+) to ([\d.]+)\), with two commands/, [least, least + more]]
      ] as const
    ) {
      assert.deepStrictEqual(numbersOf(page, pattern), expected, String(pattern))
    }
  })
})
