import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import * as Canary from "./support/canary.js"
import { encodings } from "./support/encodings.js"
import { render, renderings } from "./support/renderings.js"
import { find } from "./support/search.js"

/** Carries a text wherever an error can carry one. */
class Naive extends Error {
  readonly held: string
  constructor(text: string) {
    super(text)
    this.held = text
  }
}

describe("the search", () => {
  const canaries = [Canary.secret(), Canary.token()]

  describe.each(Object.keys(encodings))("finds a canary in the encoding: %s", (name) => {
    const encode = encodings[name] ?? String

    it.each(canaries)("bare, a $name", (canary) => {
      const found = find(`<before ${encode(canary.value)} after>`, canaries)
      assert.isAbove(found.length, 0)
      assert.isTrue(found.every((finding) => finding.canary === canary.name))
    })

    it.each(Object.keys(renderings))("by the rendering: %s", (rendering) => {
      for (const canary of canaries) {
        const outputs = render("", new Naive(encode(canary.value))).filter(({ name }) => name === `: ${rendering}`)
        assert.lengthOf(outputs, 1)
        assert.isAbove(outputs.flatMap(({ text }) => find(text, [canary])).length, 0)
      }
    })
  })

  it("finds nothing in what is no canary, nor in another one, in any encoding", () => {
    for (const encode of Object.values(encodings)) {
      deepStrictEqual(find(encode(Canary.secret().value), canaries), [])
      deepStrictEqual(find(encode(Canary.token().value), canaries), [])
    }
    deepStrictEqual(find(Buffer.from("x".repeat(2000)).toString("hex"), canaries), [])
    deepStrictEqual(find("", canaries), [])
  })

  it("a piece of 11 characters is no finding", () => {
    for (const { name, value } of canaries) deepStrictEqual(find(`… ${value.slice(3, 14)} …`, [{ name, value }]), [])
  })
})
