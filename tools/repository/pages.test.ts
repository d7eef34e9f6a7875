/** Checks of all pages: the tests that they cite, and their links. */
import { assert, describe, it } from "vitest"
import { trackedFiles } from "./support/command.js"
import { deadLinks, missing, namedTests, read } from "./support/pages.js"

const pages = trackedFiles("docs/*.md").filter((file) => !file.startsWith("docs/reference/api/"))

describe("the tests that the documentation cites", () => {
  it.each(pages)("%s: exist in the named files", (page) => {
    assert.deepStrictEqual(missing(namedTests(read(page))), [])
  })

  it("are found on each page that cites tests", () => {
    for (const page of ["behaviour", "reported-problems", "standards"].map((name) => `docs/evidence/${name}.md`)) {
      assert.isAbove(namedTests(read(page)).length, 5, page)
    }
    // Only there is a title in another kind of quotation marks.
    for (const page of pages) {
      const marks = read(page).split("”").length - 1
      assert.isAtLeast(namedTests(read(page)).length, marks / 2, page)
    }
  })

  it("are cited on pages of evidence only", () => {
    const others = trackedFiles("*.md").filter((file) => !file.startsWith("docs/evidence/"))
    assert.includeMembers([...others], ["README.md", "docs/guides/migrating.md", "packages/core/README.md"])
    assert.deepStrictEqual(others.filter((file) => namedTests(read(file)).length > 0), [])
  })

  it("are reported if they do not exist", () => {
    const file = "tools/repository/pages.test.ts"
    // Assembled from parts, so that this file does not contain it.
    const absent = { title: ["no", "such", "test"].join(" "), file }
    const there = { title: "are reported if they do not exist", file }
    assert.deepStrictEqual(missing([absent, there, { title: "would be missed", file }]), [
      absent,
      { title: "would be missed", file }
    ])
    assert.lengthOf(missing([{ title: "x", file: "no/such/file.test.ts" }]), 1)
  })
})

describe("the links between Markdown files", () => {
  it("lead to a file, and to a heading in it", () => {
    const files = trackedFiles("*.md").filter((file) => !file.startsWith("docs/reference/api/"))
    assert.include(files, "packages/core/README.md")
    assert.isAbove(files.length, 30)
    assert.deepStrictEqual(files.flatMap((file) => deadLinks(file, read(file))), [])
  })

  it("are reported if they do not", () => {
    const dead = ["no.md", "../no/", "#no", "../../README.md#no", "redis.md#what-is-in-redis-1", "/LICENSE"]
    const alive = [
      "redis.md",
      "../../examples/",
      "#a-heading-1",
      "../../README.md#options",
      "https://a.example/no.md"
    ]
    const text = ["# A heading", "## A `heading`", "`[code](no.md)`", "```", "[code](no.md)", "```"]
    const links = [...alive, ...dead].map((link) => `[a link](${link})`)
    assert.deepStrictEqual(
      deadLinks("docs/guides/page.md", [...text, ...links].join("\n")),
      dead.map((link) => `docs/guides/page.md: ${link}`)
    )
  })
})
