/** In the committed report of `npm run mutation`, each file is above its threshold. */
import { assert, describe, it } from "vitest"
import { pageOf, pagePath, problemsOf, readReport, textOf } from "./report.mjs"

const report = readReport() ?? { files: {}, versions: {} }
const path = "packages/core/src/TokenResponse.ts"
const text = textOf(path)

const ofFile = (problems: ReadonlyArray<string>) => problems.filter((problem) => problem.startsWith(path)).join()

/** The problems of the file, if it had this text. */
const problemsOfText = (changed: string) =>
  ofFile(problemsOf(report, (other) => other === path ? changed : textOf(other)))

/** The problems of the file, if it had this result. */
const problemsOfResult = (change: object) =>
  ofFile(problemsOf({ ...report, files: { ...report.files, [path]: { ...report.files[path], ...change } } }))

describe("the mutation report", () => {
  it("is above the threshold, and shown in docs/evidence/mutation.md", () => {
    assert.deepStrictEqual(problemsOf(report), [])
    assert.strictEqual(textOf(pagePath), pageOf(report))
  })

  it("allows no comment for Stryker in a source", () => {
    assert.include(problemsOfText(`// Stryker disable all: because\n${text}`), "a comment for Stryker")
    assert.strictEqual(problemsOfText(`/** Some words. */\n${text}`), "")
  })

  it("has every file, and a score that matches the counts and reaches the threshold", () => {
    assert.include(problemsOf({ ...report, files: {} }).join(), `${path}: not in the report`)
    assert.include(problemsOfResult({ killed: 89, survived: 11, timeout: 0, noCoverage: 0, score: 89 }), "less than")
    assert.include(problemsOfResult({ survived: 1000 }), "does not match its counts")
    assert.include(problemsOfResult({ survivors: [{ at: "invented()" }] }), "why this survived: invented()")
  })
})
