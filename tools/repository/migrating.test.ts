/** docs/migrating.md beside the code that examples/test/migrating.test.ts runs. */
import { assert, describe, it } from "vitest"
import { fenced } from "./support/codeBlocks.js"
import { read, sections } from "./support/pages.js"

const withoutImports = (code: string) =>
  code.split("\n").filter((line) => !line.startsWith("import ")).join("\n").trim()

describe("docs/migrating.md", () => {
  it("shows the caches that the tests run, as they are", () => {
    const before = sections(read("docs/migrating.md")).find(({ heading }) => heading === "Before")?.text ?? ""
    const shown = fenced("docs/migrating.md", before.split("\n")).map(({ code }) => withoutImports(code))
      .flatMap((code) => code.split(/\n\n(?=export )/))
    const run = withoutImports(read("examples/test/handRolled.ts")).split(/\n\n(?=export )/).slice(1)
    // The client around them is the test's own.
    assert.sameMembers([...new Set(shown)].filter((code) => !code.startsWith("export const withToken")), run)
    assert.lengthOf(run, 4)
  })
})
