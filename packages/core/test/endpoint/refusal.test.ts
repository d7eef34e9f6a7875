import { Headers } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError } from "@store-api/core"
import { FastCheck as FC, Option } from "effect"
import { refusal } from "../../src/internal/endpoint/refusal.js"
import * as sanitise from "../../src/internal/endpoint/sanitise.js"
import { heldToken } from "../support/fakeClient.js"
import { prop } from "../support/property.js"
import { renderings, shows } from "../support/renderings.js"
import { character, clientId, clientSecret, credentialsOf, tokenBody } from "../support/wire.js"

describe("error responses", () => {
  const statuses = [400, 401, 403, 404, 405, 408, 413, 429, 500, 502, 503, 504, 529, 599]

  const respond = (
    status: number,
    body: string | undefined,
    { challenge, id = clientId, isFirst = false, secret = clientSecret }: {
      challenge?: string | undefined
      id?: string
      secret?: string
      isFirst?: boolean
    } = {}
  ) =>
    refusal(
      { credentials: credentialsOf(id, secret), replacing: isFirst ? undefined : heldToken("invented-token-0001") },
      { status, headers: Headers.fromInput({ "www-authenticate": challenge }) },
      body
    )

  const refuse = (...given: Parameters<typeof respond>) => respond(...given) ?? assert.fail("it is not a refusal")

  const reasonOf = (status: number): AccessTokenError.TokenRefusedError["reason"] =>
    status === 400
      ? "InvalidRequest"
      : status === 401
      ? "InvalidClient"
      : status === 429
      ? "RateLimited"
      : status === 408 || status >= 500
      ? "Unavailable"
      : "Other"

  const dialects: ReadonlyArray<
    readonly [name: string, body: string, code: string | undefined, description: string | undefined]
  > = [
    [
      "RFC 6749",
      `{"error":"invalid_request","error_description":"grant_type is missing","error_uri":"https://x.example"}`,
      "invalid_request",
      "grant_type is missing"
    ],
    ["RFC 6749, without a description", `{"error":"unauthorized_client"}`, "unauthorized_client", undefined],
    ["RFC 6749, an unregistered code", `{"error":"quota.exceeded:7"}`, "quota.exceeded:7", undefined],
    [
      "a gateway's ErrorCode",
      `{"ErrorCode":"missing_parameter","Error":"A parameter is missing"}`,
      "missing_parameter",
      "A parameter is missing"
    ],
    [
      "a gateway's fault",
      `{"fault":{"faultstring":"Spike arrest violation","detail":{"errorcode":"policies.ratelimit.SpikeArrest"}}}`,
      "policies.ratelimit.SpikeArrest",
      "Spike arrest violation"
    ],
    ["a gateway's fault without a detail", `{"fault":{"faultstring":"Broken"}}`, undefined, "Broken"],
    [
      "the suite's errors",
      `{"errors":[{"errorCode":"E1001","type":"auth","reason":"why","message":"Not now"},{"errorCode":"E2"}]}`,
      "E1001",
      "Not now"
    ],
    ["the suite's errors, type and reason", `{"errors":[{"type":"auth","reason":"Because"}]}`, "auth", "Because"],
    ["an empty list of errors", `{"errors":[]}`, undefined, undefined],
    ["HTML", "<html><body><h1>502 Bad Gateway</h1></body></html>", undefined, undefined],
    ["an empty body", "", undefined, undefined],
    ["plain text", "upstream connect error", undefined, undefined],
    ["truncated JSON", `{"error":"invalid_client","error_desc`, undefined, undefined],
    ["null", "null", undefined, undefined],
    ["an array", "[]", undefined, undefined],
    ["a string", "\"invalid_client\"", undefined, undefined],
    [
      "fields of other types",
      `{"error":7,"error_description":{},"ErrorCode":null,"fault":[],"errors":{}}`,
      undefined,
      undefined
    ],
    ["hostile keys", `{"__proto__":{"error":"polluted"},"constructor":{"error":"polluted"}}`, undefined, undefined]
  ]

  describe.each(dialects)("of %s", (_name, body, code, description) => {
    it.each(statuses)("with status %d", (status) => {
      const error = refuse(status, body)
      assert.instanceOf(error, AccessTokenError.TokenRefusedError)
      assert.strictEqual(error.status, status)
      assert.strictEqual(error.reason, reasonOf(status))
      deepStrictEqual(error.code, Option.fromNullable(code))
      deepStrictEqual(error.description, Option.fromNullable(description))
      deepStrictEqual(error.retryAt, Option.none())
    })
  })

  it.each([
    `{"error":"invalid_client"}`,
    `{"ErrorCode":"invalid_client","Error":"ClientId is Invalid"}`,
    `{"ErrorCode":"InvalidClientIdentifier"}`,
    `{"fault":{"faultstring":"no","detail":{"errorcode":"invalid_client"}}}`,
    `{"fault":{"faultstring":"no","detail":{"errorcode":"oauth.v2.InvalidClientIdentifier"}}}`,
    `{"errors":[{"errorCode":"INVALID_CLIENT"}]}`
  ])("a code that means an invalid client also counts with status 400 or 403: %s", (body) => {
    assert.strictEqual(refuse(400, body).reason, "InvalidClient")
    assert.strictEqual(refuse(403, body).reason, "InvalidClient")
    assert.strictEqual(refuse(500, body).reason, "Unavailable")
    assert.strictEqual(refuse(429, body).reason, "RateLimited")
  })

  it.each([
    "Bearer",
    "Bearer realm=\"orders\"",
    "bearer error=\"invalid_token\"",
    "Basic realm=\"orders\", Bearer realm=\"orders\""
  ])("a 401 with the challenge of an API (%s) is not InvalidClient, and the message names authUrl", (challenge) => {
    for (
      const body of [
        ...["", "<html>", `{"error":"invalid_token"}`, `{"errors":[{"errorCode":"E7","message":"No"}]}`],
        ...[`{"error":"not_invalid_request"}`, `{"error":"invalid_requests"}`]
      ]
    ) {
      const error = refuse(401, body, { challenge })
      assert.strictEqual(error.reason, "Other", body)
      assert.include(error.message, "check authUrl")
    }
    for (const code of ["invalid_client", "invalid_request", "invalid_grant", "unauthorized_client"]) {
      assert.strictEqual(refuse(401, `{"error":"${code}"}`, { challenge }).reason, "InvalidClient", code)
    }
    assert.strictEqual(refuse(401, `{"ErrorCode":"invalid_client"}`, { challenge }).reason, "InvalidClient")
    assert.strictEqual(refuse(400, "", { challenge }).reason, "InvalidRequest")
    assert.strictEqual(refuse(503, "", { challenge }).reason, "Unavailable")
  })

  it.each(["Basic realm=\"tokens\"", "Basic realm=\"tokens, bearer only\"", "Digest", "Bearers", "", undefined])(
    "a 401 with another challenge (%s) is InvalidClient",
    (challenge) => {
      assert.strictEqual(refuse(401, "", { challenge }).reason, "InvalidClient")
    }
  )

  it("is InvalidClient even if the client id is a part of the code", () => {
    const error = refuse(400, `{"error":"invalid_client"}`, { id: "invalid_client" })
    assert.strictEqual(error.reason, "InvalidClient")
    deepStrictEqual(error.code, Option.some("invalid_client"))
  })

  it.each([
    [`{"error":"invalid_client","error_description":"No such client"}`, "InvalidClient"],
    [`{"error":"unauthorized_client"}`, "InvalidRequest"],
    [`{"error":"invalid_scope","access_token":null}`, "InvalidRequest"],
    [`{"error":"temporarily_unavailable"}`, "Unavailable"],
    [`{"error":"server_error"}`, "Unavailable"],
    ...["bad_verification_code", "not_server_error", "temporarily_unavailable_too"]
      .map((code): [string, string] => [`{"error":"${code}"}`, "Other"]),
    [`{"error":{"message":"in an object"}}`, "Other"]
  ])("a success with an error and no token is a refusal, whose code decides its reason: %s", (body, reason) => {
    for (const status of [200, 201]) {
      const error = refuse(status, body)
      deepStrictEqual([error.status, error.reason], [status, reason])
      deepStrictEqual(error.code, refuse(400, body).code)
      deepStrictEqual(error.description, refuse(400, body).description)
    }
  })

  it("the status of an error decides its reason, even if its code means that the server is not available", () => {
    for (const error of ["temporarily_unavailable", "server_error", "invalid_scope"]) {
      const reasons = [300, 400, 403, 404].map((status) => refuse(status, JSON.stringify({ error })).reason)
      deepStrictEqual(reasons, ["Other", "InvalidRequest", "Other", "Other"], error)
    }
  })

  it.each([
    tokenBody({ error: "invalid_client" }),
    tokenBody({ access_token: "not usable", error: "invalid_client" }),
    `{"error":null}`,
    `{"ErrorCode":"invalid_client"}`,
    `"error"`,
    `["error"]`,
    "null",
    "error",
    undefined
  ])("a success with a token or without an error is not a refusal: %s", (body) => {
    assert.isUndefined(respond(200, body))
    assert.isDefined(respond(400, body), "control: the status alone is enough")
  })

  it("is the same for an acquisition that replaces no token", () => {
    for (const [, body] of dialects) deepStrictEqual(refuse(400, body, { isFirst: true }), refuse(400, body))
  })

  it("omits a code that is not a single word", () => {
    for (const code of ["not a code", "", "a".repeat(101), "code\r\ninjected", "c\u00f6de", "<b>code</b>"]) {
      deepStrictEqual(refuse(400, JSON.stringify({ error: code })).code, Option.none(), code)
    }
    deepStrictEqual(refuse(400, `{"error":"${"a".repeat(100)}"}`).code, Option.some("a".repeat(100)))
  })

  it("sets changedByFormDecoding for InvalidClient only", () => {
    const raw = { secret: "invented+secret" }
    assert.isTrue(refuse(401, "", raw).changedByFormDecoding)
    assert.isTrue(refuse(400, `{"error":"invalid_client"}`, raw).changedByFormDecoding)
    assert.isFalse(refuse(400, "", raw).changedByFormDecoding)
    assert.isFalse(refuse(503, "", raw).changedByFormDecoding)
    assert.isFalse(refuse(401, "").changedByFormDecoding)
    assert.include(refuse(401, "", raw).message, "+ or %")
    assert.notInclude(refuse(401, "").message, "+ or %")
  })

  it.each(["s3cret+/=%~ !x", "invented-token-0001"])(
    "omits a description that contains the secret or the token, and keeps the code, in every format: %s",
    (value) => {
      const text = `you sent ${value} here`
      for (
        const body of [
          { error: "invalid_client", error_description: text },
          { ErrorCode: "invalid_client", Error: text },
          { fault: { faultstring: text, detail: { errorcode: "invalid_client" } } },
          { errors: [{ errorCode: "invalid_client", message: text }] }
        ]
      ) {
        const error = refuse(400, JSON.stringify(body), { secret: "s3cret+/=%~ !x" })
        deepStrictEqual([error.code, error.description], [Option.some("invalid_client"), Option.none()])
        assert.notInclude(renderings(error), "you sent")
        const other = JSON.stringify(body).replace(value, "something")
        deepStrictEqual(refuse(400, other).description, Option.some("you sent something here"), "control: it is kept")
      }
    }
  )

  it("omits a code that contains a credential or the token", () => {
    for (const value of [clientId, clientSecret, "invented-token-0001"]) {
      for (const field of ["error", "ErrorCode"]) {
        const error = refuse(400, JSON.stringify({ [field]: `no_${value}` }))
        deepStrictEqual(error.code, Option.none())
        assert.isFalse(shows(error, value))
      }
    }
    deepStrictEqual(refuse(400, `{"error":"invented-other-7f3a"}`).code, Option.some("invented-other-7f3a"))
    deepStrictEqual(refuse(400, `{"error":"no_shop"}`, { id: "shop" }).code, Option.some("no_shop"))
  })

  prop("no description contains a control or formatting character, a line break, or more than 256 characters", [
    FC.string({
      unit: FC.oneof(
        FC.constantFrom("\u0000", "\r", "\n", "\u202e", "\u2028", "\ud800", "\udc00", "\u{1f600}", " ", "\u{e0001}"),
        character
      ),
      maxLength: 600
    })
  ], ([text]) => {
    const description = Option.getOrElse(
      refuse(400, JSON.stringify({ error_description: text }), { id: "c", secret: "\u007e\u007e\u007e" }).description,
      () => "x"
    )
    assert.notMatch(description, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u)
    assert.isTrue(description.length >= 1 && description.length <= 256)
  }, { fastCheck: { numRuns: 500 } })

  prop("never throws and never contains the secret, for any body", [
    FC.oneof(
      FC.string({ unit: character }),
      FC.json(),
      FC.record({
        error: FC.jsonValue(),
        error_description: FC.jsonValue(),
        ErrorCode: FC.jsonValue(),
        Error: FC.jsonValue(),
        fault: FC.jsonValue(),
        errors: FC.jsonValue()
      }, { requiredKeys: [] }).map((body) => JSON.stringify(body).replaceAll("a", "invented-secret-7f3a"))
    ),
    FC.constantFrom(...statuses)
  ], ([body, status]) => {
    const error = refuse(status, body)
    assert.notInclude(error.message, "invented-secret")
    assert.strictEqual(error.status, status)
  })
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
    ["in base64url", (secret) => Buffer.from(secret).toString("base64url")],
    ["in base64url, after one byte", (secret) => Buffer.from(`:${secret}`).toString("base64url")],
    ["in base64url, after two bytes", (secret) => Buffer.from(`::${secret}`).toString("base64url")]
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
