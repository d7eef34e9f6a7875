import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { read } from "./support/repository.js"

// A test in tools/docs checks that the named tests exist.
describe("docs/evidence/standards.md", () => {
  const items = read("docs/evidence/standards.md").split(/^\| (?=\d+ \|)/m).slice(1)

  it("has thirty lines, numbered in order", () => {
    deepStrictEqual(items.map((item) => Number.parseInt(item)), Array.from({ length: 30 }, (_, index) => index + 1))
  })

  it.each(items)("names a test for line %#, or says why there is none", (item) => {
    assert.match(item, /“[^”]+”\s+in\s+`[^`]+`|no test:/)
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
