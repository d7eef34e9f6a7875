/** Compares docs/evidence with the tests that it cites, and behaviour.md with the scenarios of the emulator. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { Scenario } from "../../packages/emulator/src/index.js"
import { root } from "./support/command.js"
import { type CitedTest, citedTests, codes, pages, read, rows } from "./support/pages.js"

/** Whether the file declares a test or group with exactly that title: the title is the first argument of a call. */
const exists = ({ file, title }: CitedTest): boolean =>
  existsSync(join(root, file)) &&
  new RegExp(`\\(\\s*["\`]${title.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}["\`]`).test(read(file))

const evidence = pages.filter((page) => page.startsWith("docs/evidence/"))

describe("the tests that the documentation cites", () => {
  it.each(evidence)("%s: exist in the named files", (page) => {
    const cited = citedTests(read(page))
    assert.deepStrictEqual(cited.filter((test) => !exists(test)), [])
    // Only a citation has such quotation marks.
    assert.isAtLeast(cited.length, (read(page).split("”").length - 1) / 2)
  })

  it("are reported if they do not exist", () => {
    const file = "tools/repository/evidence.test.ts"
    assert.isTrue(exists({ title: "are reported if they do not exist", file }))
    assert.isFalse(exists({ title: "reported if they do not exist", file }))
  })
})

describe("docs/evidence/behaviour.md", () => {
  const page = read("docs/evidence/behaviour.md")

  /** A pattern may end in an asterisk. */
  const expand = (pattern: string): ReadonlyArray<Scenario.Name> =>
    Scenario.names.filter((name) => pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern)

  const patternsIn = (cell = "") => codes(cell).filter((code) => /^(token|api)\/[\w.*-]+$/.test(code))

  // Core's tests check these results with each client.
  it("has each scenario exactly once, with its expected result", () => {
    const listed = rows(page).flatMap((row) =>
      patternsIn(row.at(2)).flatMap(expand).map((name) => [name, row[1]?.replaceAll("`", "")] as const)
    )
    assert.deepStrictEqual(
      listed.sort(([one], [other]) => one < other ? -1 : 1),
      [...Scenario.names].sort().map((name) => [name, Scenario.all[name].expected] as const)
    )
  })

  it("names a test or scenarios in each row", () => {
    const all = rows(page)
    assert.isAbove(all.length, 90)
    for (const row of all) {
      const evidence = row.at(-1) ?? ""
      const patterns = patternsIn(evidence)
      assert.isTrue(citedTests(evidence).length > 0 || patterns.length > 0, row.join(" | "))
      for (const pattern of patterns) assert.isNotEmpty(expand(pattern), pattern)
    }
  })
})
