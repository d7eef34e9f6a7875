import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Option, Redacted } from "effect"
import { refusal } from "../../src/internal/refusal.js"
import * as Canary from "./support/canary.js"
import { encodings } from "./support/canary.js"
import { renderDistinct } from "./support/renderings.js"
import { find, leaksIn } from "./support/search.js"

const dialects: Readonly<Record<string, (said: string) => unknown>> = {
  "RFC 6749": (said) => ({ error: said, error_description: `no such client: ${said}` }),
  "a gateway": (said) => ({ ErrorCode: said, Error: `no such client: ${said}` }),
  "another gateway": (said) => ({ fault: { faultstring: said, detail: { errorcode: said } } }),
  "the suite": (said) => ({ errors: [{ errorCode: said, type: said, reason: said, message: said }] })
}

const refused = (body: unknown, canaries: ReadonlyArray<Canary.Canary>) =>
  refusal({
    status: 400,
    body: JSON.stringify(body),
    secrets: canaries.map(({ value }) => Redacted.make(value)),
    changedByFormDecoding: true,
    retryAt: Option.none()
  })

describe("a refusal that repeats what it was sent", () => {
  const canaries = [Canary.secret(), Canary.token()]

  describe.each(Object.keys(dialects))("in the words of %s", (dialect) => {
    const write = dialects[dialect] ?? String

    it.each(Object.keys(encodings))("does not get it into the error in the encoding: %s", (encoding) => {
      for (const { value } of canaries) {
        const said = encodings[encoding]?.(value) ?? value
        assert.isAbove(find(JSON.stringify(write(said)), canaries).length, 0, "the answer holds it")
        for (
          const body of [write(said), write(`${"before ".repeat(30)}${said}`), write(said.slice(0, said.length / 2))]
        ) {
          const error = refused(body, canaries)
          deepStrictEqual(leaksIn(renderDistinct("the error", error), canaries), [])
        }
      }
    })

    it("does not get a piece of it into the error, however it is cut", () => {
      for (const { value } of canaries) {
        for (let length = 12; length <= value.length; length++) {
          const error = refused(write(`…${value.slice(-length)}…`), canaries)
          deepStrictEqual(find(JSON.stringify(error), canaries), [])
        }
      }
    })
  })

  it("keeps the words that repeat nothing", () => {
    const error = refused(
      { error: "invalid_client", error_description: "trace 4bf92f3577b34da6a3ce929d0e0e4736" },
      canaries
    )
    deepStrictEqual(error.code, Option.some("invalid_client"))
    deepStrictEqual(error.description, Option.some("trace 4bf92f3577b34da6a3ce929d0e0e4736"))
  })
})
