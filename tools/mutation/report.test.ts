/** In the committed report of `npm run mutation`, each file is above its threshold and each survivor is explained. */
import { readdirSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { pageOf, pagePath, problemsOf, readReport, textOf } from "./report.mjs"

const report = readReport() ?? { files: {}, versions: {} }

describe("the mutation report", () => {
  it("has every file above the threshold, and is shown in docs/evidence/mutation.md", () => {
    assert.deepStrictEqual(problemsOf(report), [])
    assert.strictEqual(textOf(pagePath), pageOf(report))
  })

  it("has every module of core, but those that only declare a value", () => {
    const declarations = ["index.ts", "internal/configOf.ts", "internal/renewal.ts"]
    const source = "packages/core/src/"
    const modules = readdirSync(new URL(`../../${source}`, import.meta.url), { recursive: true, encoding: "utf8" })
    const measured = Object.keys(report.files).filter((path) => path.startsWith(source))
    assert.sameMembers(
      modules.filter((path) => path.endsWith(".ts")),
      [...measured.map((path) => path.slice(source.length)), ...declarations]
    )
  })

  it("has no problem only if the file is measured, its score is high, and each survivor is explained", () => {
    const path = "packages/core/src/TokenResponse.ts"
    const problemsWith = (result?: object) =>
      problemsOf({ ...report, files: { ...report.files, [path]: result } }).filter((found) => found.startsWith(path))
    const counts = { killed: 100, timeout: 0, survived: 0, noCoverage: 0, score: 100, survivors: [] }
    assert.deepStrictEqual(problemsWith(counts), [])
    assert.match(problemsWith().join(), /: not in the report$/)
    assert.match(problemsWith({ ...counts, score: 89, killed: 89, survived: 11 }).join(), /: 89 %, less than/)
    assert.match(problemsWith({ ...counts, survived: 100 }).join(), /does not match its counts$/)
    assert.match(problemsWith({ ...counts, survivors: [{ at: "invented()" }] }).join(), /survived: invented\(\)$/)
  })
})
