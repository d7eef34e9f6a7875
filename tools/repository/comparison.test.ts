/** Compares docs/explanation/comparison.md with the libraries that are installed for the benchmarks. */
import { assert, describe, it } from "vitest"
import { codes, read, rows, sectionOf } from "./support/pages.js"

const page = "docs/explanation/comparison.md"

/** The word of the page for a count: none, some or all. */
const counted = (cell: string): string => {
  const [count = 0, of = 0] = [...cell.matchAll(/\d+(?: \d{3})*/g)].map(([digits]) =>
    Number(digits.replaceAll(" ", ""))
  )
  return count === 0 ? "none" : count === of ? "all" : "some"
}

describe("docs/explanation/comparison.md", () => {
  it("names the versions that are installed", () => {
    const named = rows(read(page).replace(/\n## [^]*/, ""))
    assert.lengthOf(named, 6)
    for (const [name = "", version] of named) {
      const manifest = JSON.parse(read(`tools/benchmarks/node_modules/${codes(name)[0] ?? ""}/package.json`)) as object
      assert.propertyVal(manifest, "version", version)
    }
  })

  it("names the version of Effect 4 that the tests use", () => {
    const [, version] = /^ {2}effect@([\d.]+):$/m.exec(read("tools/effect4/line/pnpm-lock.yaml")) ?? []
    assert.include(sectionOf(page, "On Effect 4"), `\`effect\` ${version ?? "of no version"}.`)
  })

  it("has the counts of docs/evidence/benchmarks.md", () => {
    const measured = new Map(
      rows(sectionOf("docs/evidence/benchmarks.md", "Compared with other libraries"))
        .map((row) => [row[0] ?? "", [row[3] ?? "", counted(row[5] ?? ""), counted(row[7] ?? "")]])
    )
    const names = new Map([
      ["this library", "@store-api/core"],
      ["`Cache`", "Effect Cache"],
      ["`google-auth-library`, `OAuth2Client`", "google-auth-library OAuth2Client"],
      ["`google-auth-library`, `IdentityPoolClient`", "google-auth-library IdentityPoolClient"]
    ])
    const listed = rows(sectionOf(page, "Counts"))
    assert.lengthOf(listed, measured.size)
    for (const [name = "", ...counts] of listed) {
      assert.deepStrictEqual(counts, measured.get(names.get(name) ?? codes(name)[0] ?? ""), name)
    }
  })
})
