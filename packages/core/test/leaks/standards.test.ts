import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { read, root } from "./support/repository.js"

interface Reference {
  readonly name: string
  readonly file: string
}

/** Parses references of the form `“name of the test” in `file``. */
const references = (page: string): ReadonlyArray<Reference> =>
  [...page.matchAll(/“([^”]+)”\s+in\s+`([^`]+)`/g)].map(([, name = "", file = ""]) => ({
    name: name.replace(/\s+/g, " "),
    file
  }))

/** Whether a source declares a test or group of exactly that name, as the first argument of a call. */
const declares = (source: string, name: string): boolean =>
  new RegExp(`\\(\\s*["\`]${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}["\`]`).test(source)

/** References whose file does not exist, or does not declare a test or group of that name. */
const missing = (all: ReadonlyArray<Reference>): ReadonlyArray<Reference> =>
  all.filter(({ file, name }) => !existsSync(join(root, file)) || !declares(read(file), name))

describe("docs/evidence/standards.md", () => {
  const page = read("docs/evidence/standards.md")
  const items = page.split(/^\| (?=\d+ \|)/m).slice(1)

  it("has thirty lines, numbered in order", () => {
    deepStrictEqual(items.map((item) => Number.parseInt(item)), Array.from({ length: 30 }, (_, index) => index + 1))
  })

  it.each(items)("names a test for line %#, or says why there is none", (item) => {
    assert.isTrue(references(item).length > 0 || item.includes("no test:"), item)
  })

  it("names only tests that exist, in files that exist", () => {
    assert.isAbove(references(page).length, 40)
    deepStrictEqual(missing(references(page)), [])
  })

  it("control: a test that does not exist is reported", () => {
    const file = "packages/core/test/leaks/standards.test.ts"
    // The name is joined here, so that this file does not contain it.
    const absent = { name: ["no", "such", "test"].join(" "), file }
    deepStrictEqual(missing([absent, { name: "has thirty lines, numbered in order", file }]), [absent])
    deepStrictEqual(missing([{ name: "x", file: "no/such/file.test.ts" }]).length, 1)
    // The beginning of a name does not match, and neither does a string elsewhere in the file.
    deepStrictEqual(missing([{ name: "has thirty lines", file }, { name: "private_key_jwt", file }]).length, 2)
  })
})

describe("the security model and policy", () => {
  it("names the limitations, and the stronger authentication methods that this API lacks", () => {
    const page = read("docs/explanation/security-model.md")
    for (
      const term of [
        "follows redirects",
        "memory",
        "RequestInit",
        "Redacted.value",
        "private_key_jwt",
        "mTLS",
        "transformClient"
      ]
    ) {
      assert.include(page, term)
    }
  })

  it("says where to report a vulnerability, without an email address", () => {
    const page = read("SECURITY.md")
    assert.match(page, /security advisor/i)
    assert.notMatch(page, /@[a-z]+\.[a-z]/)
  })
})
