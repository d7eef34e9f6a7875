import { Headers } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Option } from "effect"
import { refusal } from "../../src/internal/endpoint/refusal.js"
import { heldToken } from "../support/fakeClient.js"
import { renderDistinct } from "../support/renderings.js"
import { credentialsOf } from "../support/wire.js"
import * as Canary from "./support/canary.js"
import { encodings, find, leaksIn } from "./support/canary.js"

const formats: Readonly<Record<string, (echo: string) => unknown>> = {
  "RFC 6749": (echo) => ({ error: echo, error_description: `no such client: ${echo}` }),
  "a gateway": (echo) => ({ ErrorCode: echo, Error: `no such client: ${echo}` }),
  "another gateway": (echo) => ({ fault: { faultstring: echo, detail: { errorcode: echo } } }),
  "the suite": (echo) => ({ errors: [{ errorCode: echo, type: echo, reason: echo, message: echo }] })
}

const refused = (body: unknown, [secret, token]: readonly [Canary.Canary, Canary.Canary]) =>
  refusal(
    { credentials: credentialsOf("invented-client", secret.value), replacing: heldToken(token.value) },
    { status: 400, headers: Headers.empty },
    JSON.stringify(body)
  )

/** The forms that the search covers. The security model names the rest. */
const searched = Object.keys(encodings).filter((name) =>
  /^(raw|over lines|percent(, lower case|, each byte)?|form|form-decoded|base64(url)?(, shifted by \d)?)$/.test(name)
)

describe("an error response that repeats the secret or the token", () => {
  const canaries = [Canary.secret(), Canary.token()] as const

  describe.each(Object.keys(formats))("in the format of %s", (format) => {
    const write = formats[format] ?? String

    it.each(searched)("is reported without it, in the encoding: %s", (encoding) => {
      for (const { value } of canaries) {
        const echo = encodings[encoding]?.(value) ?? value
        assert.isAbove(find(JSON.stringify(write(echo)), canaries).length, 0, "control: the response contains it")
        for (const body of [write(echo), write(`${"before ".repeat(40)}${echo}`)]) {
          const error = refused(body, canaries)
          deepStrictEqual(leaksIn(renderDistinct("the error", error), canaries), [])
        }
      }
    })
  })

  it("control: other text is kept", () => {
    const text = "trace 4bf92f3577b34da6a3ce929d0e0e4736"
    const error = refused({ error: "invalid_client", error_description: text }, canaries)
    deepStrictEqual(error.code, Option.some("invalid_client"))
    deepStrictEqual(error.description, Option.some(text))
  })

  it("control: there are encodings to look for", () => {
    assert.lengthOf(searched, 14)
  })
})
