import { FetchHttpClient, HttpClientError, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect, Either, Exit, FastCheck as FC, Option, TestClock } from "effect"
import { UntrustedOriginError } from "../src/AccessTokenError.js"
import { baseUrl, isLoopback, withoutTrailingSlash } from "../src/internal/baseUrl.js"
import * as boundedBody from "../src/internal/boundedBody.js"
import * as retryAfter from "../src/internal/endpoint/retryAfter.js"
import * as sanitise from "../src/internal/endpoint/sanitise.js"
import { fromHttpClientError } from "../src/internal/endpoint/transportError.js"
import * as manualRedirect from "../src/internal/manualRedirect.js"
import { countingFibers, httpReason, settle } from "./support/effectLine.js"
import { prop, propEffect } from "./support/property.js"
import { renderings, shows } from "./support/renderings.js"
import { test } from "./support/test.js"

const hour = 3_600_000

describe("retryAfter", () => {
  const now = Date.UTC(2026, 0, 1)
  const read = (value: string | undefined, date?: string) =>
    retryAfter.milliseconds({ "retry-after": value, date }, now)

  it.each([
    ["seconds", "30", 30_000],
    ["0", "0", 0],
    ["leading zeros", "0007", 7000],
    ["surrounding white space", "  30  ", 30_000],
    ["a second below an hour", "3599", 3_599_000],
    ["more than an hour", "3601", hour],
    ["a year", "31536000", hour],
    ["more seconds than a number can hold", "9".repeat(400), hour],
    ["the longer of two values", "5, 30", 30_000],
    ["two values without a space", "30,5", 30_000],
    ["a date", "Thu, 01 Jan 2026 00:00:30 GMT", 30_000],
    ["the current time", "Thu, 01 Jan 2026 00:00:00 GMT", 0],
    ["a date in the past", "Wed, 31 Dec 2025 23:59:59 GMT", 0],
    ["a date in the distant past", "Thu, 01 Jan 1970 00:00:00 GMT", 0],
    ["a date a year ahead", "Fri, 01 Jan 2027 00:00:00 GMT", hour],
    ["a date in the format of RFC 850", "Thursday, 01-Jan-26 00:00:30 GMT", 30_000],
    ["a date in the format of asctime", "Thu Jan  1 00:00:30 2026", 30_000],
    ["a date in the format of asctime with a two-digit day", "Sun Feb 15 00:00:30 2026", hour],
    ["a past date in the format of RFC 850", "Sunday, 06-Nov-94 08:49:37 GMT", 0]
  ])("reads %s: %s", (_name, value, expected) => {
    assert.strictEqual(read(value), expected)
  })

  it.each([
    undefined,
    "",
    " ",
    "-1",
    "+30",
    "1.5",
    "1e3",
    "0x10",
    "30s",
    "30 seconds",
    "PT30S",
    "soon",
    "NaN",
    "Infinity",
    "5,",
    ",5",
    "5, soon",
    "5x, 6",
    "1.5, 6",
    "5; 6",
    "2026-01-01T00:00:30Z",
    "1767225630000 GMT",
    "Thu, 99 Jan 2026 00:00:30 GMT",
    "Thu, 01 Foo 2026 00:00:30 GMT",
    "Thu, 01 Jan 2026 25:00:30 GMT",
    "Thu, 01 Jan 2026 00:00:30 +0100",
    "Thu, 01 Jan 2026 00:00:30",
    "Thu, 01 Jan 2026 00:00:30 GMT+0100",
    "On Thu, 01 Jan 2026 00:00:30 GMT",
    "On Thu Jan  1 00:00:30 2026",
    "Thu Jan  1 00:00:30 2026 +0100",
    "01 Jan 2026 00:00:30 GMT",
    "\u0663\u0660"
  ])("ignores %j", (value) => {
    assert.isUndefined(read(value))
  })

  it("returns nothing without the header", () => {
    assert.isUndefined(retryAfter.milliseconds({}, now))
  })

  it("measures a date from the Date header of the response, if it is valid", () => {
    assert.strictEqual(read("Thu, 01 Jan 2026 12:00:30 GMT", "Thu, 01 Jan 2026 12:00:00 GMT"), 30_000)
    assert.strictEqual(read("Thu, 01 Jan 2026 00:00:30 GMT", "Thu, 01 Jan 2026 00:01:00 GMT"), 0)
    assert.strictEqual(read("Thu, 01 Jan 2026 00:00:30 GMT", "yesterday"), 30_000)
    assert.strictEqual(read("30", "Thu, 01 Jan 2026 12:00:00 GMT"), 30_000)
  })

  prop("returns nothing, or whole milliseconds up to the maximum, for any value", [
    FC.oneof(
      FC.string(),
      FC.integer().map(String),
      FC.double().map(String),
      FC.date().map((date) => date.toUTCString()),
      FC.array(FC.nat().map(String)).map((values) => values.join(", "))
    ),
    FC.option(FC.date({ noInvalidDate: true }).map((date) => date.toUTCString()), { nil: undefined })
  ], ([value, date]) => {
    const wait = read(value, date)
    if (wait !== undefined) assert.isTrue(Number.isSafeInteger(wait) && wait >= 0 && wait <= hour, `${value}: ${wait}`)
  }, { fastCheck: { numRuns: 500 } })
})

describe("sanitise", () => {
  const nobody = { clientId: "", secrets: [] }
  const knowing = (...secrets: ReadonlyArray<string>) => ({ clientId: "invented-client", secrets })

  const encodings: ReadonlyArray<readonly [name: string, encode: (secret: string) => string]> = [
    ["as it was sent", (secret) => secret],
    ["over two lines", (secret) => `${secret.slice(0, 5)}\r\n  ${secret.slice(5)}`],
    [
      "with its percent signs decoded",
      (secret) => secret.replace(/%([\da-f]{2})/gi, (code) => decodeURIComponent(code))
    ],
    ["with its plus signs as spaces", (secret) => secret.replaceAll("+", " ")],
    ["percent-encoded", encodeURIComponent],
    ["percent-encoded in lower case", (secret) => encodeURIComponent(secret).toLowerCase()],
    [
      "percent-encoded, each byte",
      (secret) => `%${(Buffer.from(secret).toString("hex").match(/../g) ?? []).join("%")}`
    ],
    ["form-encoded", (secret) => new URLSearchParams({ x: secret }).toString().slice(2)],
    ["in base64", (secret) => Buffer.from(secret).toString("base64")],
    ["in base64, after one byte", (secret) => Buffer.from(`:${secret}`).toString("base64")],
    ["in base64, after two bytes", (secret) => Buffer.from(`::${secret}&`).toString("base64")],
    ["in base64url", (secret) => Buffer.from(secret).toString("base64url")]
  ]
  /** Secrets with every character that an encoding changes. */
  const secrets = FC.stringMatching(/^[a-z0-9]{8}([a-z0-9]{4}[ +/=_%~!$'-]){2,8}[a-z0-9]{4}$/)
    .filter((secret) => !/%[89a-f][\da-f]/i.test(secret))
  const sentence = FC.stringMatching(/^[a-z ,.:;]{0,300}$/)

  for (const [name, encode] of encodings) {
    prop(`no description repeats a secret ${name}`, [secrets, sentence, sentence], ([secret, before, after]) => {
      const text = `${before} ${encode(secret)} ${after}`
      assert.isUndefined(sanitise.description(text, knowing("another-invented-one", secret)))
      assert.isUndefined(sanitise.code(encode(secret), knowing(secret)))
    })
  }

  it("finds a short secret, and one without letters", () => {
    for (
      const [secret, text] of [
        ["a", "got a"],
        ["abc", "got abc"],
        ["abc", "got YWJj"],
        ["+/~", "got +/~"],
        ["+/~", "got %2B%2F%7E"],
        ["a b", "got a\nb"]
      ] as const
    ) {
      assert.isUndefined(sanitise.description(text, knowing(secret)), text)
      assert.strictEqual(sanitise.description("get it", knowing(secret)), "get it")
    }
  })

  it("keeps a description and a code that contain no secret", () => {
    const known = knowing("invented-secret", "")
    for (const text of ["The client is suspended", "100% wrong, see #7 & \"8\" \\ <b>refusé</b>", "invented"]) {
      assert.strictEqual(sanitise.description(text, known), text)
    }
    assert.strictEqual(sanitise.code("quota.exceeded:7", known), "quota.exceeded:7")
  })

  it("replaces the client id in a description, unless it is shorter than 8 characters", () => {
    for (
      const [clientId, expected] of [["eight888", "<client id> or <client id>s"], ["seven77", "seven77 or seven77s"]]
    ) {
      const text = `${clientId} or ${clientId}s`
      assert.strictEqual(sanitise.description(text, { clientId: clientId ?? "", secrets: [] }), expected)
    }
  })

  it.each([
    ["a line break", "one\r\ntwo", "one  two"],
    ["a NUL", "one\u0000two", "one two"],
    ["an escape sequence", "one \u001b[31mtwo", "one  [31mtwo"],
    ["a C1 control sequence", "one\u009b31mtwo", "one 31mtwo"],
    ["a tab", "one\ttwo", "one two"],
    ["a line separator and a paragraph separator", "one\u2028two\u2029three", "one two three"],
    ["a change of text direction", "one \u202eowt", "one  owt"],
    ["a zero-width character", "one\u200btwo\ufeff", "one two "],
    ["a tag character", "one\u{e0041}two", "one two"],
    ["a half of a pair", "one\ud800two", "one two"],
    ["nothing but control characters", "\r\n\u0000", undefined],
    ["no characters", "", undefined]
  ])("replaces control characters in a description by spaces: %s", (_name, text, expected) => {
    assert.strictEqual(sanitise.description(text, nobody), expected)
  })

  it("cuts a description at 256 characters, after the search for secrets and ids", () => {
    const long = "no".repeat(200)
    assert.strictEqual(sanitise.description(long, nobody), "no".repeat(128))
    assert.strictEqual(sanitise.description("x".repeat(255) + "\u{1f600}", nobody), `${"x".repeat(255)} `, "no half")
    for (const at of [0, 250, 300, 400]) {
      assert.isUndefined(sanitise.description(`${long.slice(0, at)}s3cret${long.slice(at)}`, knowing("s3cret")))
    }
    const at250 = sanitise.description(`${long.slice(0, 250)}invented-client`, knowing())
    assert.strictEqual(at250, `${long.slice(0, 250)}<clien`)
  })

  it("always keeps a registered code, and any other unless it contains a credential", () => {
    for (
      const code of ["invalid_client", "invalid_request", "unauthorized_client", "use_dpop_nonce", "invalid_target"]
    ) {
      assert.strictEqual(sanitise.code(code, { clientId: code, secrets: [code, "client"] }), code)
    }
    for (const known of [knowing("unknown"), { clientId: "unknown_client", secrets: [] }]) {
      assert.isUndefined(sanitise.code("unknown_client", known))
    }
    for (const known of [knowing("another"), { clientId: "client", secrets: [] }]) {
      assert.strictEqual(sanitise.code("unknown_client", known), "unknown_client")
    }
  })

  it("keeps a description of 64 KiB that is searched for twenty tokens of 16 KiB", () => {
    const known = knowing(...Array.from({ length: 20 }, () => "aB3".repeat(5461)))
    assert.strictEqual(sanitise.description("no".repeat(32_768), known), "no".repeat(128))
  })
})

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

describe("baseUrl", () => {
  it.each([
    ["http://localhost", true],
    ["http://LOCALHOST", true],
    ["http://shop.localhost", true],
    ["http://127.0.0.1", true],
    ["http://127.10.20.255", true],
    ["http://127.1", true],
    ["http://2130706433", true],
    ["http://[::1]", true],
    ["http://[0:0:0:0:0:0:0:1]", true],
    ["http://localhost.shop.example", false],
    ["http://notlocalhost", false],
    ["http://127.0.0.1.shop.example", false],
    ["http://128.0.0.1", false],
    ["http://10.0.0.1", false],
    ["http://0.0.0.0", false],
    ["http://[::]", false],
    ["http://[::ffff:10.0.0.1]", false]
  ])("%s is a loopback address: %s", (url, expected) => {
    assert.strictEqual(isLoopback(new URL(url)), expected)
    assert.strictEqual(Exit.isSuccess(Effect.runSyncExit(baseUrl("authUrl", url, false))), expected)
    assert.isTrue(Exit.isSuccess(Effect.runSyncExit(baseUrl("authUrl", url, true))), "allowInsecure allows it")
  })

  const empty = "is empty; give it the URL of the service"
  const noUrl = "is not a URL; it must start with https:// and a host name"
  const noHttps = "must be an https URL"
  const userInfo = "must not hold a user name or password"
  const elsewhere = "must be an https URL, or an http URL of this machine"

  it.each([
    ["empty", "", empty],
    ["blank", "   ", empty],
    ["not a URL", "canary", noUrl],
    ["a host without a scheme", "canary.shop.example", noUrl],
    ["a path", "/canary", noUrl],
    ["a scheme alone", "https://", noUrl],
    ["ftp", "ftp://canary.shop.example", noHttps],
    ["file", "file:///canary", noHttps],
    ["javascript", "javascript:canary", noHttps],
    ["a host and a port without a scheme", "canary:8080", noHttps],
    ["a user name", "https://canary@auth.shop.example", userInfo],
    ["a password", "https://:canary@auth.shop.example", userInfo],
    ["both", "https://user:canary@auth.shop.example", userInfo],
    ["a query", "https://auth.shop.example/?key=canary", "must not have a query"],
    ["an empty query", "https://canary.shop.example/?", "must not have a query"],
    ["an empty query behind a path", "https://auth.shop.example/canary?", "must not have a query"],
    ["a fragment", "https://auth.shop.example/#canary", "must not have a fragment"],
    ["an empty fragment", "https://canary.shop.example/#", "must not have a fragment"],
    ["http to another machine", "http://canary.shop.example", elsewhere],
    ["http to an address of another machine", "http://10.0.0.1/canary", elsewhere],
    ["http to a name that begins like a local one", "http://localhost.canary.example", elsewhere]
  ])("%s fails with a ConfigurationError that does not contain it, as a string and as a URL", (_name, text, reason) => {
    for (const value of URL.canParse(text) ? [text, new URL(text)] : [text]) {
      const error = Effect.runSync(Effect.flip(baseUrl("authUrl", value, false)))
      deepStrictEqual([error._tag, error.option, error.reason], ["ConfigurationError", "authUrl", reason])
      deepStrictEqual(error.permittedBy, Option.liftPredicate("allowInsecure", () => reason === elsewhere))
      assert.isFalse(shows(error, "canary"))
    }
    if (text.includes("canary")) assert.isTrue(shows({ text }, "canary"), "control: the search finds the canary")
  })

  it.each([
    "https://auth.shop.example",
    "https://auth.shop.example:8443/base/",
    "HTTPS://AUTH.SHOP.EXAMPLE",
    "http://localhost",
    "http://localhost:8080/base",
    "http://auth.localhost:8080",
    "http://127.0.0.1:8080",
    "http://127.9.9.9",
    "http://[::1]:8080"
  ])("%s is accepted", (url) => {
    for (const value of [url, new URL(url)]) {
      assert.strictEqual(Effect.runSync(baseUrl("authUrl", value, false)).href, new URL(url).href)
    }
  })

  it("a host that ends like a loopback address is not one", () => {
    assert.isFalse(isLoopback(new URL("redis://x127.0.0.1")))
    assert.isTrue(isLoopback(new URL("redis://127.0.0.1")))
  })

  it("withoutTrailingSlash removes all trailing slashes and no others", () => {
    for (const end of ["", "/", "//"]) {
      for (const start of ["https://auth.shop.example", "https://auth.shop.example/two/levels"]) {
        assert.strictEqual(withoutTrailingSlash(new URL(start + end)), start)
      }
    }
  })

  prop("accepts only https or loopback URLs without query, fragment and user info", [
    FC.oneof(
      FC.webUrl({ withFragments: true, withQueryParameters: true, validSchemes: ["http", "https", "ftp"] }),
      FC.string(),
      FC.string().map((rest) => `https://auth.shop.example${rest}`),
      FC.string().map((rest) => `https://${rest}`)
    )
  ], ([text]) => {
    const result = Effect.runSync(Effect.either(baseUrl("authUrl", text, false)))
    if (Either.isLeft(result)) {
      assert.strictEqual(result.left.option, "authUrl")
      return
    }
    const url = result.right
    assert.isTrue(url.protocol === "https:" || isLoopback(url))
    deepStrictEqual([url.search, url.hash, url.username, url.password], ["", "", "", ""])
    assert.notMatch(withoutTrailingSlash(url), /\/$|[?#]/)
    assert.strictEqual(new URL(`${withoutTrailingSlash(url)}/x`).origin, url.origin)
  }, { fastCheck: { numRuns: 500 } })
})

describe("boundedBody", () => {
  const get = HttpClientRequest.get("https://auth.shop.example")
  const respond = (body: BodyInit | null) => HttpClientResponse.fromWeb(get, new Response(body))

  /** A response with the bytes in chunks of this size, and whether its stream was cancelled. */
  const streamed = (bytes: Uint8Array, size: number) => {
    const state = { cancelled: false, pulled: 0 }
    const stream = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        if (state.pulled >= bytes.length) {
          controller.close()
          return
        }
        controller.enqueue(bytes.subarray(state.pulled, state.pulled + size))
        state.pulled += size
      },
      cancel: () => {
        state.cancelled = true
      }
    }, { highWaterMark: 0 })
    return { response: respond(stream), state }
  }

  /** A stream of this text that then fails. */
  const failingAfter = (text: string) =>
    new ReadableStream<Uint8Array>({
      pull: (controller) => {
        if (text !== "") controller.enqueue(new TextEncoder().encode(text))
        text = ""
        if (controller.desiredSize !== 0) controller.error(new Error("reset"))
      }
    }, { highWaterMark: 1 })

  test("reads a body of exactly the limit, and none that is a byte longer", function*() {
    assert.strictEqual(yield* boundedBody.read(respond("a".repeat(100)), 100), "a".repeat(100))
    const longer = new Uint8Array(101).fill(97)
    for (const response of [respond(longer), streamed(longer, 60).response, streamed(longer, 100).response]) {
      assert.isUndefined(yield* boundedBody.read(response, 100))
    }
  })

  test("fails with the error of the client when a body fails after its first part", function*() {
    const error = yield* Effect.flip(boundedBody.read(respond(failingAfter("abc")), 100))
    assert.strictEqual(httpReason(error), "Decode")
  })

  test("reads a missing body as an empty text", function*() {
    for (const body of [null, ""]) {
      assert.strictEqual(yield* boundedBody.read(respond(body), 100), "")
    }
  })

  test("counts bytes, not characters, and omits a byte order mark", function*() {
    assert.strictEqual(yield* boundedBody.read(respond("\u00e9".repeat(50)), 100), "\u00e9".repeat(50))
    assert.isUndefined(yield* boundedBody.read(respond("\u00e9".repeat(51)), 100))
    assert.strictEqual(yield* boundedBody.read(respond("\ufeff{}"), 100), "{}")
  })

  propEffect("reads the same text for any size of the chunks", [
    FC.string({ unit: "grapheme" }),
    FC.integer({ min: 1, max: 7 })
  ], ([text, size]) =>
    Effect.gen(function*() {
      const bytes = new TextEncoder().encode(text)
      const { response } = streamed(bytes, size)
      const body = yield* boundedBody.read(response, 10_000)
      assert.strictEqual(body, new TextDecoder().decode(bytes))
    }))

  test("cancels a longer body at the limit", function*() {
    const { response, state } = streamed(new Uint8Array(1_000_000), 10)
    assert.isUndefined(yield* boundedBody.read(response, 100))
    assert.isTrue(state.cancelled)
    assert.isAtMost(state.pulled, 200)
  })

  test("drain reads a body of 64 KiB to its end, and cancels a longer one, without a wait of its caller", function*() {
    for (const size of [100, 1000, 65_536]) {
      for (const [length, cancelled] of [[65_536, false], [65_537, true], [1_000_000, true]] as const) {
        const { response, state } = streamed(new Uint8Array(length), size)
        yield* boundedBody.drain(response)
        assert.strictEqual(state.pulled, 0)
        yield* settle
        assert.strictEqual(state.cancelled, cancelled, `${length} bytes`)
        assert.isAtLeast(state.pulled, 65_536)
        assert.isAtMost(state.pulled, 65_536 + 2 * size)
      }
    }
  })

  test("drain cancels a body after a second, even from an uninterruptible region, and leaves no fiber", function*() {
    for (const region of [Effect.interruptible, Effect.uninterruptible]) {
      yield* countingFibers((fibers) =>
        Effect.gen(function*() {
          let cancelled = false
          const slow = new ReadableStream<Uint8Array>({
            start: (controller) => controller.enqueue(new TextEncoder().encode("abc")),
            cancel: () => {
              cancelled = true
            }
          })
          yield* region(boundedBody.drain(respond(slow)))
          yield* TestClock.adjust("999 millis")
          assert.isFalse(cancelled)
          yield* TestClock.adjust("1 millis")
          yield* settle
          deepStrictEqual([cancelled, yield* fibers], [true, 0])
        })
      )
    }
  })

  test("drain ignores a body that fails, or that was read before", function*() {
    const read = respond("abc")
    yield* read.text
    for (const response of [read, respond(failingAfter("abc")), respond(failingAfter("")), respond(null)]) {
      yield* countingFibers((fibers) =>
        Effect.gen(function*() {
          yield* boundedBody.drain(response)
          yield* settle
          assert.strictEqual(yield* fibers, 0)
        })
      )
    }
  })
})

describe("manualRedirect", () => {
  const requestInit = Effect.serviceOption(FetchHttpClient.RequestInit)

  test("sets only redirect when no RequestInit is provided", function*() {
    const withoutRedirects = yield* manualRedirect.make
    deepStrictEqual(yield* withoutRedirects(requestInit), Option.some({ redirect: "manual" as const }))
    deepStrictEqual(yield* requestInit, Option.none(), "unchanged outside the effect")
  })

  test("merges the RequestInit of the layer and of the request, and overrides redirect", function*() {
    const withoutRedirects = yield* Effect.provideService(manualRedirect.make, FetchHttpClient.RequestInit, {
      credentials: "omit",
      cache: "no-store",
      redirect: "follow"
    })
    deepStrictEqual(
      yield* Effect.provideService(withoutRedirects(requestInit), FetchHttpClient.RequestInit, {
        cache: "reload",
        keepalive: true,
        redirect: "error"
      }),
      Option.some({
        credentials: "omit" as const,
        cache: "reload" as const,
        keepalive: true,
        redirect: "manual" as const
      })
    )
  })
})
