import { FetchHttpClient, HttpClientError, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect, Either, FastCheck as FC, Fiber, Option, Redacted, TestClock } from "effect"
import { baseUrl, isLoopback, withoutTrailingSlash } from "../src/internal/baseUrl.js"
import * as boundedBody from "../src/internal/boundedBody.js"
import * as manualRedirect from "../src/internal/manualRedirect.js"
import * as retryAfter from "../src/internal/retryAfter.js"
import * as sanitise from "../src/internal/sanitise.js"
import { fromHttpClientError } from "../src/internal/transportError.js"
import { renderings, shows } from "./support/renderings.js"

const hour = 3_600_000

describe("retryAfter", () => {
  const now = Date.UTC(2026, 0, 1)
  const read = (value: string | undefined, date?: string) =>
    Option.getOrUndefined(retryAfter.milliseconds({ "retry-after": value, date }, now, hour))

  it.each([
    ["seconds", "30", 30_000],
    ["0", "0", 0],
    ["leading zeros", "0007", 7000],
    ["blanks around", "  30  ", 30_000],
    ["a second below an hour", "3599", 3_599_000],
    ["more than an hour", "3601", hour],
    ["a year", "31536000", hour],
    ["more seconds than a number holds", "9".repeat(400), hour],
    ["two values: the longest", "5, 30", 30_000],
    ["two values without a blank", "30,5", 30_000],
    ["a date", "Thu, 01 Jan 2026 00:00:30 GMT", 30_000],
    ["a date that is now", "Thu, 01 Jan 2026 00:00:00 GMT", 0],
    ["a date that is past", "Wed, 31 Dec 2025 23:59:59 GMT", 0],
    ["a date long past", "Thu, 01 Jan 1970 00:00:00 GMT", 0],
    ["a date in a year", "Fri, 01 Jan 2027 00:00:00 GMT", hour],
    ["a date as RFC 850 wrote it", "Thursday, 01-Jan-26 00:00:30 GMT", 30_000],
    ["a date as asctime writes it", "Thu Jan  1 00:00:30 2026", 30_000],
    ["a date with a two-digit day as asctime writes it", "Sun Feb 15 00:00:30 2026", hour],
    ["the past as RFC 850 wrote it", "Sunday, 06-Nov-94 08:49:37 GMT", 0]
  ])("%s: %s", (_name, value, expected) => {
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
  ])("%j is ignored", (value) => {
    assert.isUndefined(read(value))
  })

  it("without the header there is nothing to wait for", () => {
    deepStrictEqual(retryAfter.milliseconds({}, now, hour), Option.none())
  })

  it("a date is measured by the answer's own clock, when it tells it", () => {
    assert.strictEqual(read("Thu, 01 Jan 2026 12:00:30 GMT", "Thu, 01 Jan 2026 12:00:00 GMT"), 30_000)
    assert.strictEqual(read("Thu, 01 Jan 2026 00:00:30 GMT", "Thu, 01 Jan 2026 00:01:00 GMT"), 0)
    assert.strictEqual(read("Thu, 01 Jan 2026 00:00:30 GMT", "yesterday"), 30_000)
    assert.strictEqual(read("30", "Thu, 01 Jan 2026 12:00:00 GMT"), 30_000)
  })

  it.prop("whatever stands there: nothing, or a whole wait from 0 to the longest", [
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
  const encodings: ReadonlyArray<readonly [name: string, encode: (secret: string) => string]> = [
    ["as it was sent", (secret) => secret],
    ["in upper case", (secret) => secret.toUpperCase()],
    ["with blanks inside", (secret) => [...secret].join(" ")],
    [
      "with its percent signs decoded",
      (secret) => secret.replace(/%([\da-f]{2})/gi, (code) => decodeURIComponent(code))
    ],
    ["with its plus signs as blanks", (secret) => secret.replaceAll("+", " ")],
    ["percent-encoded", encodeURIComponent],
    ["percent-encoded in lower case", (secret) => encodeURIComponent(secret).toLowerCase()],
    ["percent-encoded twice", (secret) => encodeURIComponent(encodeURIComponent(secret))],
    [
      "percent-encoded, each byte",
      (secret) => `%${(Buffer.from(secret).toString("hex").match(/../g) ?? []).join("%")}`
    ],
    ["form-encoded", (secret) => new URLSearchParams({ x: secret }).toString().slice(2)],
    ["in base64", (secret) => Buffer.from(secret).toString("base64")],
    ["in base64, after one byte", (secret) => Buffer.from(`:${secret}`).toString("base64")],
    ["in base64, after two bytes", (secret) => Buffer.from(`::${secret}`).toString("base64")],
    ["in base64url", (secret) => Buffer.from(secret).toString("base64url")],
    ["in hex", (secret) => Buffer.from(secret).toString("hex")],
    ["in hex literals", (secret) => [...Buffer.from(secret)].map((byte) => `0x${byte.toString(16)}`).join(", ")],
    ["as a list of bytes", (secret) => Buffer.from(secret).join(", ")],
    ["as an object of bytes", (secret) => [...Buffer.from(secret)].map((byte, index) => `${index}:${byte}`).join()],
    ["percent-encoded, in base64", (secret) => Buffer.from(encodeURIComponent(secret)).toString("base64")],
    ["in numbered entities", (secret) => [...secret].map((sign) => `&#${sign.charCodeAt(0)};`).join("")],
    ["as a string of JSON", (secret) => JSON.stringify(secret)]
  ]
  /** Long enough for a secret, with all that encodings change. */
  const secrets = FC.stringMatching(/^[A-Za-z0-9]{8}([A-Za-z0-9]{4}[ +/=_%~!$'-]){2,8}[A-Za-z0-9]{4}$/)
    .filter((secret) => !/%[89a-f][\da-f]/i.test(secret))
  const letters = FC.stringMatching(/^[A-Za-z0-9]{16,60}$/)
  const sentence = FC.stringMatching(/^[a-z ,.:;]{0,60}$/)

  for (const [name, encode] of encodings) {
    it.prop(`no description repeats a secret ${name}`, [secrets, sentence, sentence], ([secret, before, after]) => {
      const text = `${before} ${encode(secret)} ${after}`
      deepStrictEqual(
        sanitise.description(text, [Redacted.make("another-invented-one"), Redacted.make(secret)]),
        Option.none()
      )
    })

    it.prop(`no description repeats twelve letters of a secret ${name}`, [letters, FC.nat(4), sentence], (
      [secret, start, before]
    ) => {
      const text = `${before} ${encode(secret.slice(start, start + 12))}`
      deepStrictEqual(sanitise.description(text, [Redacted.make(secret)]), Option.none())
    })
  }

  it.prop("no description repeats twelve characters of a secret, whatever they are", [secrets, FC.nat(9), sentence], (
    [secret, start, before]
  ) => {
    for (const encode of [(piece: string) => piece, encodeURIComponent]) {
      const text = `${before}${encode(secret.slice(start, start + 12))}`
      deepStrictEqual(sanitise.description(text, [Redacted.make(secret)]), Option.none())
    }
  })

  it("finds a short secret, and one of signs only", () => {
    for (
      const [secret, text] of [["abc", "got abc"], ["+/~", "got +/~"], ["+/~", "got %2B%2F%7E"], ["a-b", "got a b"]]
    ) {
      deepStrictEqual(sanitise.description(text ?? "", [Redacted.make(secret ?? "")]), Option.none(), text)
    }
  })

  it("finds a short secret in base64, in the middle of a longer text", () => {
    const text = Buffer.from(":s3cret7x").toString("base64")
    deepStrictEqual(sanitise.description(text, [Redacted.make("s3cret7")]), Option.none())
  })

  it("finds a secret in an object of bytes, after ten others", () => {
    const text = [...Buffer.from("0123456789aB3dE5gH7jK9")].map((byte, index) => `${index}:${byte}`).join()
    deepStrictEqual(sanitise.description(text, [Redacted.make("aB3dE5gH7jK9")]), Option.none())
  })

  it("keeps what repeats no secret", () => {
    const secrets = [Redacted.make("invented-secret"), Redacted.make("invented-id"), Redacted.make("")]
    for (const text of ["The client is suspended", "trace 4bf92f3577b34da6a3ce929d0e0e4736", "100% wrong, see #7"]) {
      deepStrictEqual(sanitise.description(text, secrets), Option.some(text))
    }
    deepStrictEqual(sanitise.code("quota.exceeded:7", secrets), Option.some("quota.exceeded:7"))
  })

  it("always keeps a registered code, and another one unless it repeats a secret", () => {
    for (
      const code of ["invalid_client", "invalid_request", "unauthorized_client", "use_dpop_nonce", "invalid_target"]
    ) {
      deepStrictEqual(sanitise.code(code, [Redacted.make(code), Redacted.make("client")]), Option.some(code))
    }
    deepStrictEqual(sanitise.code("unknown_client", [Redacted.make("unknown_client")]), Option.none())
    deepStrictEqual(sanitise.code("unknown_client", [Redacted.make("another")]), Option.some("unknown_client"))
  })

  it("searches for a token of 16 KiB without delay", () => {
    const token = Redacted.make("aB3".repeat(5461))
    deepStrictEqual(
      sanitise.description("no".repeat(128), Array.from({ length: 20 }, () => token)),
      Option.some("no".repeat(128))
    )
  })
})

describe("transportError", () => {
  const request = HttpClientRequest.post("https://auth.shop.example").pipe(
    HttpClientRequest.bearerToken("invented-canary"),
    HttpClientRequest.bodyText("client_secret=invented-canary")
  )
  const coded = (code: unknown, cause?: unknown) => Object.assign(new Error("said", { cause }), { code })
  const behind = (errors: number): unknown =>
    errors === 0 ? coded("ECODE") : new Error("said", { cause: behind(errors - 1) })
  const failing = (cause: unknown) =>
    fromHttpClientError(new HttpClientError.RequestError({ request, reason: "Transport", cause }))

  it.each([
    ["a code", coded("ECONNREFUSED"), "ECONNREFUSED"],
    [
      "a code behind another error, as fetch hides it",
      new TypeError("x", { cause: coded("ECONNRESET") }),
      "ECONNRESET"
    ],
    ["a code of undici", coded("UND_ERR_SOCKET"), "UND_ERR_SOCKET"],
    ["the first of two codes", coded("EFIRST", coded("ESECOND")), "EFIRST"],
    [
      "several addresses tried",
      Object.assign(new AggregateError([coded("EINNER")]), { code: "ECONNREFUSED" }),
      "ECONNREFUSED"
    ],
    ["no code", new Error("socket hang up"), undefined],
    ["no cause", undefined, undefined],
    ["null", null, undefined],
    ["a text", "ECONNREFUSED", undefined],
    ["a number as the code", coded(7), undefined],
    ["an array as the code", coded(["ECONNRESET"]), undefined],
    ["words before a code", coded("said ECONNRESET"), undefined],
    ["a code behind four errors", behind(4), "ECODE"],
    ["a code behind five errors, since only five are searched", behind(5), undefined],
    ["a sentence as the code", coded("invented canary"), undefined],
    ["a code in lower case", coded("econnrefused"), undefined],
    ["a code with a line break", coded("ECODE\nx: 1"), undefined],
    ["an endless code", coded("E".repeat(65)), undefined]
  ])("%s", (_name, cause, code) => {
    const error = failing(cause)
    assert.strictEqual(error.reason, "Transport")
    assert.strictEqual(error.attempts, 1)
    deepStrictEqual(error.code, Option.fromNullable(code))
  })

  it("a cause that is its own cause does not matter", () => {
    const cause: { cause?: unknown } = {}
    cause.cause = cause
    assert.strictEqual(failing(cause).reason, "Transport")
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
  ])("%s is a matter of the certificate, also behind another error", (code) => {
    for (const cause of [coded(code), new TypeError("fetch failed", { cause: coded(code) })]) {
      const error = failing(cause)
      assert.strictEqual(error.reason, "Certificate")
      deepStrictEqual(error.code, Option.some(code))
    }
  })

  it("so are the words of a runtime that gives no code", () => {
    assert.strictEqual(failing(new Error("invalid peer certificate: UnknownIssuer")).reason, "Certificate")
    assert.strictEqual(failing({ message: ["certificate"] }).reason, "Transport", "only when they are a string")
  })

  it.each(["EPROTO", "ERR_SSL_WRONG_VERSION_NUMBER", "ECONNRESET", "ETIMEDOUT", "ENOTFOUND"])("%s is not", (code) => {
    assert.strictEqual(failing(coded(code)).reason, "Transport")
  })

  it("nothing of the request or of the response is kept", () => {
    const cause = coded("ECONNRESET")
    const original = new HttpClientError.RequestError({ request, reason: "Transport", cause })
    assert.isTrue(shows(original, "invented-canary"), "the search finds what is there")
    assert.notInclude(renderings(fromHttpClientError(original)), "canary")
    const answered = new HttpClientError.ResponseError({
      request,
      response: HttpClientResponse.fromWeb(request, new Response("invented-canary")),
      reason: "Decode",
      cause: new Error("invented-canary")
    })
    assert.isTrue(shows(answered, "invented-canary"), "the search finds what is there")
    assert.notInclude(renderings(fromHttpClientError(answered)), "canary")
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
  ])("%s is of this machine: %s", (url, expected) => {
    assert.strictEqual(isLoopback(new URL(url)), expected)
    assert.strictEqual(Either.isRight(baseUrl("authUrl", url, false)), expected)
    assert.isTrue(Either.isRight(baseUrl("authUrl", url, true)), "allowInsecure lifts it")
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
    ["http beyond this machine", "http://canary.shop.example", elsewhere],
    ["http to an address beyond this machine", "http://10.0.0.1/canary", elsewhere],
    ["http to a name that only looks local", "http://localhost.canary.example", elsewhere]
  ])("%s: ConfigurationError that does not show it, as a text and as a URL", (_name, text, reason) => {
    for (const value of URL.canParse(text) ? [text, new URL(text)] : [text]) {
      const error = Either.getOrThrow(Either.flip(baseUrl("authUrl", value, false)))
      deepStrictEqual([error._tag, error.option, error.reason], ["ConfigurationError", "authUrl", reason])
      assert.isFalse(shows(error, "canary"))
    }
    if (text.includes("canary")) assert.isTrue(shows({ text }, "canary"), "the search finds what is there")
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
  ])("%s is taken", (url) => {
    for (const value of [url, new URL(url)]) {
      assert.strictEqual(Either.getOrThrow(baseUrl("authUrl", value, false)).href, new URL(url).href)
    }
  })

  it("a host that only ends like a loopback address is not of this machine", () => {
    assert.isFalse(isLoopback(new URL("redis://x127.0.0.1")))
    assert.isTrue(isLoopback(new URL("redis://127.0.0.1")))
  })

  it("withoutTrailingSlash removes every slash at the end, and no other", () => {
    for (const end of ["", "/", "//"]) {
      for (const start of ["https://auth.shop.example", "https://auth.shop.example/two/levels"]) {
        assert.strictEqual(withoutTrailingSlash(new URL(start + end)), start)
      }
    }
  })

  it.prop("what it takes is a URL without query, fragment and user, over TLS or within this machine", [
    FC.oneof(
      FC.webUrl({ withFragments: true, withQueryParameters: true, validSchemes: ["http", "https", "ftp"] }),
      FC.string(),
      FC.string().map((rest) => `https://auth.shop.example${rest}`),
      FC.string().map((rest) => `https://${rest}`)
    )
  ], ([text]) => {
    const result = baseUrl("authUrl", text, false)
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
  const request = HttpClientRequest.get("https://auth.shop.example")
  const respond = (body: BodyInit | null) => HttpClientResponse.fromWeb(request, new Response(body))

  /** The bytes in pieces of this size, and whether the rest was given up. */
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

  /** This text, and then the end of the connection. */
  const breaking = (text: string) =>
    new ReadableStream<Uint8Array>({
      pull: (controller) => {
        if (text !== "") controller.enqueue(new TextEncoder().encode(text))
        text = ""
        if (controller.desiredSize !== 0) controller.error(new Error("reset"))
      }
    }, { highWaterMark: 1 })

  it.effect("a body of exactly the limit is complete, one of a byte more is not", () =>
    Effect.gen(function*() {
      deepStrictEqual(yield* boundedBody.read(respond("a".repeat(100)), 100), {
        text: "a".repeat(100),
        complete: true
      })
      const longer = new Uint8Array(101).fill(97)
      for (const response of [respond(longer), streamed(longer, 60).response, streamed(longer, 100).response]) {
        deepStrictEqual(yield* boundedBody.read(response, 100), { text: "a".repeat(100), complete: false })
      }
    }))

  it.effect("a body that breaks fails with the error of the client, also when a part of it has arrived", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(boundedBody.read(respond(breaking("abc")), 100))
      assert.strictEqual(error.reason, "Decode")
    }))

  it.effect("no body is an empty text", () =>
    Effect.gen(function*() {
      for (const body of [null, ""]) {
        deepStrictEqual(yield* boundedBody.read(respond(body), 100), { text: "", complete: true })
      }
    }))

  it.effect("bytes are counted, not characters, and a byte order mark is left out", () =>
    Effect.gen(function*() {
      assert.isTrue((yield* boundedBody.read(respond("\u00e9".repeat(50)), 100)).complete)
      assert.isFalse((yield* boundedBody.read(respond("\u00e9".repeat(51)), 100)).complete)
      assert.strictEqual((yield* boundedBody.read(respond("\ufeff{}"), 100)).text, "{}")
    }))

  it.effect.prop("the text is the same however it comes in pieces", [
    FC.string({ unit: "grapheme" }),
    FC.integer({ min: 1, max: 7 })
  ], ([text, size]) =>
    Effect.gen(function*() {
      const bytes = new TextEncoder().encode(text)
      const { response } = streamed(bytes, size)
      const body = yield* boundedBody.read(response, 10_000)
      deepStrictEqual(body, { text: new TextDecoder().decode(bytes), complete: true })
    }))

  it.effect("of a longer one the rest is not read but given up", () =>
    Effect.gen(function*() {
      const { response, state } = streamed(new Uint8Array(1_000_000), 10)
      assert.isFalse((yield* boundedBody.read(response, 100)).complete)
      assert.isTrue(state.cancelled)
      assert.isAtMost(state.pulled, 200)
    }))

  const textOf = (held: Option.Option<Blob>) =>
    Effect.promise(async () => Option.isNone(held) ? undefined : held.value.text())

  it.effect("hold reads a body of 64 KiB to its end, and keeps the first 64 KiB of a longer one", () =>
    Effect.gen(function*() {
      for (const size of [100, 1000, 1_000_000]) {
        const exact = streamed(new Uint8Array(65_536).fill(97), size)
        assert.strictEqual(yield* textOf(yield* boundedBody.hold(exact.response)), "a".repeat(65_536))
        assert.isFalse(exact.state.cancelled)
        const long = streamed(new Uint8Array(300_000).fill(97), size)
        assert.strictEqual(yield* textOf(yield* boundedBody.hold(long.response)), "a".repeat(65_536))
        assert.isTrue(long.state.cancelled)
      }
    }))

  it.effect("hold keeps what has arrived when a body fails, and nothing of one that cannot be read", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* textOf(yield* boundedBody.hold(respond(breaking("abc")))), "abc")
      assert.isUndefined(yield* textOf(yield* boundedBody.hold(respond(breaking("")))))
      const read = respond("abc")
      yield* read.text
      assert.isUndefined(yield* textOf(yield* boundedBody.hold(read)))
    }))

  it.effect("hold returns None for an empty body when content-length announces one, unless the request is a HEAD", () =>
    Effect.gen(function*() {
      const head = HttpClientRequest.head("https://auth.shop.example")
      assert.strictEqual(yield* textOf(yield* boundedBody.hold(respond(null))), "")
      for (
        const [asked, length, expected] of [
          [request, {}, ""],
          [request, { "content-length": "0" }, ""],
          [request, { "content-length": "7" }, undefined],
          [head, { "content-length": "7" }, ""]
        ] as const
      ) {
        const response = HttpClientResponse.fromWeb(asked, new Response("", { headers: length }))
        assert.strictEqual(yield* textOf(yield* boundedBody.hold(response)), expected)
      }
    }))

  it.effect("hold returns an empty body when nothing arrives within a second, also when content-length announces one", () =>
    Effect.gen(function*() {
      const silent = new Response(new ReadableStream(), { headers: { "content-length": "7" } })
      const fiber = yield* Effect.fork(boundedBody.hold(HttpClientResponse.fromWeb(request, silent)))
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(yield* textOf(yield* Fiber.join(fiber)), "")
    }))

  it.effect("hold waits for a second at most, also where it cannot be interrupted or the body cannot be cancelled", () =>
    Effect.gen(function*() {
      for (const cancel of [() => undefined, () => new Promise<never>(() => undefined)]) {
        for (const region of [Effect.interruptible, Effect.uninterruptible]) {
          let cancelled = false
          const slow = new ReadableStream<Uint8Array>({
            start: (controller) => controller.enqueue(new TextEncoder().encode("abc")),
            cancel: () => {
              cancelled = true
              return cancel()
            }
          })
          const fiber = yield* Effect.fork(region(boundedBody.hold(respond(slow))))
          yield* TestClock.adjust("999 millis")
          assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
          yield* TestClock.adjust("1 millis")
          assert.strictEqual(yield* textOf(yield* Fiber.join(fiber)), "abc")
          assert.isTrue(cancelled)
        }
      }
    }))
})

describe("manualRedirect", () => {
  const seen = Effect.serviceOption(FetchHttpClient.RequestInit)

  it.effect("sets redirect, and nothing but it, where nothing was set", () =>
    Effect.gen(function*() {
      const withoutRedirects = yield* manualRedirect.make
      deepStrictEqual(yield* withoutRedirects(seen), Option.some({ redirect: "manual" as const }))
      deepStrictEqual(yield* seen, Option.none(), "not beyond the effect")
    }))

  it.effect("keeps what was set while the layer was built and around the request; redirect is not the user's", () =>
    Effect.gen(function*() {
      const withoutRedirects = yield* Effect.provideService(manualRedirect.make, FetchHttpClient.RequestInit, {
        credentials: "omit",
        cache: "no-store",
        redirect: "follow"
      })
      deepStrictEqual(
        yield* Effect.provideService(withoutRedirects(seen), FetchHttpClient.RequestInit, {
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
    }))
})
