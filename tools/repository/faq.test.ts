/** docs/faq.md: that each of its answers can be looked up. */
import { assert, describe, it } from "vitest"
import { namedTests, read, type Section, sections } from "./support/pages.js"

/** Questions whose answer names no test and leads to no page of ours; the links to those who asked elsewhere do not count. */
const unproved = (all: ReadonlyArray<Section>): ReadonlyArray<string> =>
  all.filter(({ text, under }) => under !== "" && namedTests(text).length === 0 && !/\]\((?!https?:)/.test(text))
    .map(({ heading }) => heading)

describe("docs/faq.md", () => {
  it("has a test or a page for each answer", () => {
    const questions = sections(read("docs/faq.md"))
    assert.isAbove(questions.filter(({ under }) => under !== "").length, 30)
    assert.deepStrictEqual(unproved(questions), [])
  })

  it("would be found with an answer that has neither", () => {
    const page = ["## Part", "### One", "Yes: [x #1](https://example.com/1).", "### Two", "No: [x](x.md)."].join("\n")
    assert.deepStrictEqual(unproved(sections(page)), ["One"])
  })
})
