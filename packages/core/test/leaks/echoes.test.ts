import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Option, Redacted } from "effect"
import { refusal } from "../../src/internal/endpoint/refusal.js"
import { renderDistinct } from "../support/renderings.js"
import * as Canary from "./support/canary.js"
import { encodings, find, leaksIn } from "./support/canary.js"

const formats: Readonly<Record<string, (echo: string) => unknown>> = {
  "RFC 6749": (echo) => ({ error: echo, error_description: `no such client: ${echo}` }),
  "a gateway": (echo) => ({ ErrorCode: echo, Error: `no such client: ${echo}` }),
  "another gateway": (echo) => ({ fault: { faultstring: echo, detail: { errorcode: echo } } }),
  "the suite": (echo) => ({ errors: [{ errorCode: echo, type: echo, reason: echo, message: echo }] })
}

const refused = (body: unknown, canaries: ReadonlyArray<Canary.Canary>) =>
  refusal({
    status: 400,
    body: JSON.stringify(body),
    secrets: canaries.map(({ value }) => Redacted.make(value)),
    changedByFormDecoding: true,
    retryAt: Option.none()
  })

describe("an error response that repeats the secret or the token", () => {
  const canaries = [Canary.secret(), Canary.token()]

  describe.each(Object.keys(formats))("in the format of %s", (format) => {
    const write = formats[format] ?? String

    it.each(Object.keys(encodings))("is reported without it, in the encoding: %s", (encoding) => {
      for (const { value } of canaries) {
        const echo = encodings[encoding]?.(value) ?? value
        assert.isAbove(find(JSON.stringify(write(echo)), canaries).length, 0, "control: the response contains it")
        for (
          const body of [write(echo), write(`${"before ".repeat(30)}${echo}`), write(echo.slice(0, echo.length / 2))]
        ) {
          const error = refused(body, canaries)
          deepStrictEqual(leaksIn(renderDistinct("the error", error), canaries), [])
        }
      }
    })

    it("is reported without a piece of it, however it is cut", () => {
      for (const { value } of canaries) {
        for (let length = 12; length <= value.length; length++) {
          const error = refused(write(`…${value.slice(-length)}…`), canaries)
          deepStrictEqual(find(JSON.stringify(error), canaries), [])
        }
      }
    })
  })

  it("control: other text is kept", () => {
    const error = refused(
      { error: "invalid_client", error_description: "trace 4bf92f3577b34da6a3ce929d0e0e4736" },
      canaries
    )
    deepStrictEqual(error.code, Option.some("invalid_client"))
    deepStrictEqual(error.description, Option.some("trace 4bf92f3577b34da6a3ce929d0e0e4736"))
  })
})
