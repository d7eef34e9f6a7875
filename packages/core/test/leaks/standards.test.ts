import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { read, root } from "./support/repository.js"

interface Reference {
  readonly name: string
  readonly file: string
}

/** `“name of the test” in `file``, as the page writes it. */
const references = (page: string): ReadonlyArray<Reference> =>
  [...page.matchAll(/“([^”]+)”\s+in\s+`([^`]+)`/g)].map(([, name = "", file = ""]) => ({
    name: name.replace(/\s+/g, " "),
    file
  }))

/** Whether a source declares a test or group of just that name: it stands first in a call, with nothing behind it. */
const declares = (source: string, name: string): boolean =>
  new RegExp(`\\(\\s*["\`]${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}["\`]`).test(source)

/** Those whose file is not there, or declares no test or group of that name. */
const missing = (all: ReadonlyArray<Reference>): ReadonlyArray<Reference> =>
  all.filter(({ file, name }) => !existsSync(join(root, file)) || !declares(read(file), name))

describe("docs/evidence/standards.md", () => {
  const page = read("docs/evidence/standards.md")
  const items = page.split(/^\| (?=\d+ \|)/m).slice(1)

  it("has the thirty lines, in their order", () => {
    deepStrictEqual(items.map((item) => Number.parseInt(item)), Array.from({ length: 30 }, (_, index) => index + 1))
  })

  it.each(items)("names a test for the line %#, or says why there can be none", (item) => {
    assert.isTrue(references(item).length > 0 || item.includes("no test:"), item)
  })

  it("names only tests that exist, in files that exist", () => {
    assert.isAbove(references(page).length, 40)
    deepStrictEqual(missing(references(page)), [])
  })

  it("a test that does not exist would be found missing", () => {
    const file = "packages/core/test/leaks/standards.test.ts"
    // The name is put together here, so that this file does not hold it.
    const absent = { name: ["no", "such", "test"].join(" "), file }
    deepStrictEqual(missing([absent, { name: "has the thirty lines, in their order", file }]), [absent])
    deepStrictEqual(missing([{ name: "x", file: "no/such/file.test.ts" }]).length, 1)
    // Neither the beginning of a name nor a string that stands elsewhere will do.
    deepStrictEqual(missing([{ name: "has the thirty lines", file }, { name: "private_key_jwt", file }]).length, 2)
  })
})

describe("SECURITY.md", () => {
  const page = read("SECURITY.md")

  it("names what is out of reach, and the stronger ways to authenticate that this API lacks", () => {
    for (const said of ["follows redirects", "memory", "RequestInit", "Redacted.value", "private_key_jwt", "mTLS"]) {
      assert.include(page, said)
    }
  })

  it("tells where to report, without an address that nobody reads", () => {
    assert.match(page, /security advisor/i)
    assert.notMatch(page, /@[a-z]+\.[a-z]/)
  })
})
