/**
 * Compares docs/evidence/behaviour.md with the emulator's scenarios. Core's tests check their outcomes with each
 * client.
 */
import { assert, describe, it } from "vitest"
import { Scenario } from "../../packages/emulator/src/index.js"
import { codes, namedTests, read, rows } from "./support/pages.js"

const page = read("docs/evidence/behaviour.md")

/** The names that match a pattern. */
const expand = (pattern: string, names: ReadonlyArray<string> = Scenario.names): ReadonlyArray<string> =>
  names.filter((name) => pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern)

const isScenario = (code: string) => /^(token|api)\/[\w.*-]+$/.test(code)

/** The rows that name scenarios, each with its outcome. */
const told = rows(page).flatMap(([what = "", outcome = "", last = ""]) => {
  const patterns = codes(last).filter(isScenario)
  return patterns.length === 0 ? [] : [{ what, outcome: outcome.replaceAll("`", ""), patterns }]
})

/** The differences between the page and the scenarios. */
const wrong = (all: typeof told): ReadonlyArray<string> =>
  all.flatMap(({ outcome, patterns }) =>
    patterns.flatMap((pattern) => {
      const names = expand(pattern)
      if (names.length === 0) return [`${pattern}: there is none`]
      return names.filter((name) => Scenario.all[name as Scenario.Name].expected !== outcome)
        .map((name) => `${name}: not ${outcome}`)
    })
  )

describe("docs/evidence/behaviour.md", () => {
  it("has the expected result of each scenario", () => {
    assert.isAbove(told.length, 25)
    assert.deepStrictEqual(wrong(told), [])
  })

  it("names each scenario exactly once", () => {
    assert.deepStrictEqual(
      told.flatMap(({ patterns }) => patterns.flatMap((pattern) => expand(pattern))).sort(),
      [...Scenario.names].sort()
    )
  })

  it("is reported with a wrong outcome, and with an unknown scenario", () => {
    const outcome = "a token after one request"
    assert.deepStrictEqual(wrong([{ what: "", outcome, patterns: ["token/404", "token/none-*", "token/charset"] }]), [
      `token/404: not ${outcome}`,
      "token/none-*: there is none"
    ])
  })

  it("names a test or scenarios in each row", () => {
    const all = rows(page)
    assert.isAbove(all.length, 90)
    for (const row of all) {
      const last = row.at(-1) ?? ""
      assert.isTrue(namedTests(last).length > 0 || codes(last).some(isScenario), row.join(" | "))
    }
  })
})
