import { HttpClientError, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Option } from "effect"
import { UntrustedOriginError } from "../../src/AccessTokenError.js"
import { fromHttpClientError } from "../../src/internal/endpoint/transportError.js"
import { renderings, shows } from "../support/renderings.js"

describe("transportError", () => {
  const request = HttpClientRequest.post("https://auth.shop.example").pipe(
    HttpClientRequest.bearerToken("invented-canary"),
    HttpClientRequest.bodyText("client_secret=invented-canary")
  )
  const withCode = (code: unknown, cause?: unknown) => Object.assign(new Error("message", { cause }), { code })
  const nested = (errors: number): unknown =>
    errors === 0 ? withCode("ECODE") : new Error("message", { cause: nested(errors - 1) })
  const errorOf = (cause: unknown) =>
    fromHttpClientError(new HttpClientError.RequestError({ request, reason: "Transport", cause }))

  it.each([
    ["a code", withCode("ECONNREFUSED"), "ECONNREFUSED"],
    [
      "a code of a nested cause, as fetch reports it",
      new TypeError("x", { cause: withCode("ECONNRESET") }),
      "ECONNRESET"
    ],
    ["a code of undici", withCode("UND_ERR_SOCKET"), "UND_ERR_SOCKET"],
    ["the first of two codes", withCode("EFIRST", withCode("ESECOND")), "EFIRST"],
    [
      "an AggregateError of several addresses",
      Object.assign(new AggregateError([withCode("EINNER")]), { code: "ECONNREFUSED" }),
      "ECONNREFUSED"
    ],
    ["no code", new Error("socket hang up"), undefined],
    ["no cause", undefined, undefined],
    ["null", null, undefined],
    ["a text", "ECONNREFUSED", undefined],
    ["a number as the code", withCode(7), undefined],
    ["an array as the code", withCode(["ECONNRESET"]), undefined],
    ["words before a code", withCode("error ECONNRESET"), undefined],
    ["a code of the fifth error in the chain", nested(4), "ECODE"],
    ["a code of the sixth error, which is not searched", nested(5), undefined],
    ["a sentence as the code", withCode("invented canary"), undefined],
    ["a code in lower case", withCode("econnrefused"), undefined],
    ["a code with a line break", withCode("ECODE\nx: 1"), undefined],
    ["a code of 65 characters", withCode("E".repeat(65)), undefined]
  ])("reads the code of a transport error with %s", (_name, cause, code) => {
    const error = errorOf(cause)
    assert.strictEqual(error.reason, "Transport")
    assert.strictEqual(error.attempts, 1)
    deepStrictEqual(error.code, Option.fromNullable(code))
  })

  it("is a redirect if the request would have left for another origin", () => {
    const error = errorOf(new UntrustedOriginError({ origin: "https://elsewhere.example", trusted: [] }))
    assert.strictEqual(error.reason, "Redirect")
  })

  it("ends at a cause that is its own cause", () => {
    const cause: { cause?: unknown } = {}
    cause.cause = cause
    assert.strictEqual(errorOf(cause).reason, "Transport")
  })

  it.each([
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "SELF_SIGNED_CERT_IN_CHAIN",
    "CERT_HAS_EXPIRED",
    "CERT_NOT_YET_VALID",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "UNABLE_TO_GET_ISSUER_CERT",
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "HOSTNAME_MISMATCH",
    "INVALID_CA",
    "INVALID_PURPOSE",
    "CRL_HAS_EXPIRED"
  ])("%s is Certificate, also in a nested cause", (code) => {
    for (const cause of [withCode(code), new TypeError("fetch failed", { cause: withCode(code) })]) {
      const error = errorOf(cause)
      assert.strictEqual(error.reason, "Certificate")
      deepStrictEqual(error.code, Option.some(code))
    }
  })

  it("a message that names the certificate is Certificate when there is no code", () => {
    assert.strictEqual(errorOf(new Error("invalid peer certificate: UnknownIssuer")).reason, "Certificate")
    assert.strictEqual(errorOf({ message: ["certificate"] }).reason, "Transport", "the message must be a string")
  })

  it.each(["EPROTO", "ERR_SSL_WRONG_VERSION_NUMBER", "ECONNRESET", "ETIMEDOUT", "ENOTFOUND"])("%s is not", (code) => {
    assert.strictEqual(errorOf(withCode(code)).reason, "Transport")
  })

  it("keeps nothing of the request or the response", () => {
    const cause = withCode("ECONNRESET")
    const original = new HttpClientError.RequestError({ request, reason: "Transport", cause })
    assert.isTrue(shows(original, "invented-canary"), "control: the search finds the canary")
    assert.notInclude(renderings(fromHttpClientError(original)), "canary")
    const responseError = new HttpClientError.ResponseError({
      request,
      response: HttpClientResponse.fromWeb(request, new Response("invented-canary")),
      reason: "Decode",
      cause: new Error("invented-canary")
    })
    assert.isTrue(shows(responseError, "invented-canary"), "control: the search finds the canary")
    assert.notInclude(renderings(fromHttpClientError(responseError)), "canary")
  })
})
