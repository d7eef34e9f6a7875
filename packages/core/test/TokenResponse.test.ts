import { Headers } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, TokenResponse } from "@store-api/core"
import { Either, FastCheck as FC, Option, Redacted, Schema } from "effect"
import { isRefusal, refusal } from "../src/internal/endpoint/refusal.js"
import { lifeOf } from "../src/internal/lifetime.js"
import { heldToken } from "./support/fakeClient.js"
import { prop } from "./support/property.js"
import { renderings, shows } from "./support/renderings.js"
import { character, clientId, clientSecret, credentialsOf, specificationFields, tokenBody } from "./support/wire.js"

const hour = 3_600_000

const decoded = (body: string): TokenResponse.TokenResponse =>
  Either.getOrThrowWith(TokenResponse.decode(body), (error) => error)

/** The paths of the problems of a body that is not a valid token response. */
const problems = (body: string): ReadonlyArray<string> => {
  const result = TokenResponse.decode(body)
  assert.isTrue(Either.isLeft(result), `accepted: ${body.slice(0, 100)}`)
  if (Either.isRight(result)) return []
  assert.instanceOf(result.left, AccessTokenError.TokenResponseError)
  return result.left.problems.map(({ path }) => path)
}

const lifetimeOf = (expiresIn: unknown) => lifeOf(decoded(tokenBody({ expires_in: expiresIn })).expires_in)

/** A body in which the value of a field is this JSON text, valid or not. */
const withRaw = (field: string, json: string) =>
  tokenBody({ [field]: "RAW-VALUE" }).replace("\"RAW-VALUE\"", () => json)

describe("TokenResponse", () => {
  describe("decode", () => {
    it("decodes the response of the specification, and redacts developer.email", () => {
      const response = decoded(tokenBody())
      assert.strictEqual(Redacted.value(response.access_token), "invented-token-0001")
      assert.strictEqual(response.token_type, "bearer")
      assert.strictEqual(response.expires_in, 3600)
      deepStrictEqual(response.scope, Option.some(""))
      deepStrictEqual(response.application_name, Option.some("Invented Shop"))
      deepStrictEqual(
        Option.map(response["developer.email"], Redacted.value),
        Option.some("developer@shop.example")
      )
      deepStrictEqual(response.issued_at, Option.some("1767225600000"))
      deepStrictEqual(response.client_id, Option.some(specificationFields.client_id))
      assert.isTrue(shows(specificationFields, "invented-token-0001"), "control: the search finds the token")
      for (const text of ["invented-token-0001", "developer@shop.example"]) assert.isFalse(shows(response, text))
    })

    it("decodes a response that has only the required fields, with a lifetime of 60 minutes", () => {
      const response = decoded(`{"access_token":"t","token_type":"bearer"}`)
      assert.strictEqual(response.expires_in, 3600)
      assert.strictEqual(lifeOf(response.expires_in), hour)
      deepStrictEqual(
        [
          response.scope,
          response.application_name,
          response.issued_at,
          response.client_id,
          response["developer.email"]
        ],
        [Option.none(), Option.none(), Option.none(), Option.none(), Option.none()]
      )
    })

    it("ignores unknown fields, including refresh_token and a nested developer.email", () => {
      const response = decoded(tokenBody({
        "developer.email": undefined,
        developer: { email: "nested@shop.example" },
        refresh_token: "invented-refresh",
        status: "approved",
        deep: [[[{}]]]
      }))
      assert.isTrue(Option.isNone(response["developer.email"]))
      assert.notInclude(Object.keys(response), "refresh_token")
    })

    it.each([
      ["digits", `"1767225600000"`, Option.some("1767225600000")],
      ["a number", "1767225600000", Option.some("1767225600000")],
      ["zero", "0", Option.some("0")],
      ["a fraction", "1.5", Option.none()],
      ["a negative number", "-1", Option.none()],
      ["a date", `"2026-01-01"`, Option.none()],
      ["an empty string", `""`, Option.none()],
      ["null", "null", Option.none()]
    ])("decodes issued_at as %s", (_name, json, expected) => {
      deepStrictEqual(decoded(withRaw("issued_at", json)).issued_at, expected)
    })

    it.each(["scope", "application_name", "developer.email", "issued_at", "client_id"] as const)(
      "treats %s as missing when it is null or has a wrong type",
      (field) => {
        for (const json of ["null", "true", "[]", "{}", "[\"x\"]", ...field === "issued_at" ? [] : ["7"]]) {
          assert.strictEqual(decoded(withRaw(field, json))[field]._tag, "None", `${field}: ${json}`)
        }
        assert.strictEqual(decoded(withRaw(field, `"7"`))[field]._tag, "Some")
      }
    )

    it("ignores keys such as __proto__ and constructor", () => {
      const hostile = `"__proto__":{"access_token":"polluted","token_type":"bearer","expires_in":1,"scope":"polluted"}`
      const others = `"constructor":{"prototype":{"scope":"polluted"}},"toString":"polluted","hasOwnProperty":1`
      deepStrictEqual(problems(`{${hostile},${others}}`), ["access_token", "token_type"])
      const response = decoded(`{"access_token":"t","token_type":"bearer",${hostile},${others}}`)
      assert.isTrue(Option.isNone(response.scope))
      assert.strictEqual(lifeOf(response.expires_in), hour)
      assert.isUndefined(({} as Record<string, unknown>)["scope"])
      assert.isUndefined(({} as Record<string, unknown>)["access_token"])
    })

    it.each([
      ["nothing", ""],
      ["white space", " \n "],
      ["HTML", "<!doctype html><title>Hello</title>"],
      ["a form", "access_token=invented&token_type=bearer"],
      ["an array", "[]"],
      ["the response in an array", `[${tokenBody()}]`],
      ["null", "null"],
      ["a number", "7"],
      ["a string", "\"invented-token-0001\""],
      ["a truncated response", tokenBody().slice(0, -1)],
      ["a response with trailing text", `${tokenBody()}{}`],
      ["two responses", `${tokenBody()}\n${tokenBody()}`],
      ["deep nesting", "[".repeat(32_000) + "]".repeat(32_000)],
      ["UTF-16", Buffer.from(tokenBody(), "utf16le").toString("utf8")]
    ])("fails for %s", (_name, body) => {
      deepStrictEqual(problems(body), [""])
    })

    it.each([
      ["an OAuth error", `{"error":"invalid_client"}`, ["access_token", "token_type"]],
      ["an empty object", "{}", ["access_token", "token_type"]],
      ["no token_type", `{"access_token":"t"}`, ["token_type"]],
      ["a wrong type and a wrong lifetime", withRaw("token_type", "\"mac\"").replace("3600", "true"), [
        "token_type",
        "expires_in"
      ]]
    ])("names every invalid field of %s", (_name, body, paths) => {
      deepStrictEqual(problems(body), paths)
    })

    it("says in each problem what was expected", () => {
      const expectedOf = (body: string) =>
        Either.match(TokenResponse.decode(body), {
          onLeft: ({ problems }) => problems.map(({ expected }) => expected),
          onRight: () => []
        })
      deepStrictEqual(expectedOf("no JSON"), ["a JSON object with access_token and token_type"])
      deepStrictEqual(expectedOf(`{"expires_in":"soon"}`), [
        "a bearer token of RFC 6750, of at most 16 KiB",
        "bearer",
        "a number of seconds"
      ])
    })

    prop("never throws for any body", [
      FC.oneof(FC.string({ unit: character }), FC.json(), FC.jsonValue().map((value) => tokenBody({ scope: value })))
    ], ([body]) => {
      assert.isTrue(Either.isEither(TokenResponse.decode(body)))
    })
  })

  describe("expires_in", () => {
    it.each([
      ["3600", hour],
      ["3599", 3_599_000],
      ["1", 1000],
      ["\"1799\"", 1_799_000],
      ["\"0001\"", 1000],
      ["59.9", 59_000],
      ["\"59.9\"", 59_000],
      ["\"59.95\"", 59_000],
      ["1.0", 1000],
      ["3601", hour],
      ["86400", hour],
      ["3600000", hour],
      ["1e300", hour],
      ["9007199254740993", hour],
      [`"${"9".repeat(300)}"`, hour]
    ])("%s is a lifetime of %d ms", (json, lifetime) => {
      assert.strictEqual(lifeOf(decoded(withRaw("expires_in", json)).expires_in), lifetime)
    })

    it("is 60 minutes when it is missing", () => {
      assert.strictEqual(lifetimeOf(undefined), hour)
    })

    it("is 60 minutes when it is null, which some servers send instead of nothing", () => {
      assert.strictEqual(lifetimeOf(null), hour)
    })

    it.each(["0", "-0", "-1", "-3600", "0.9", "-0.1", "\"0\"", "\"-1\"", "\"-5.5\"", "-1e308", "5e-324"])(
      "%s leaves no lifetime",
      (json) => {
        assert.isTrue(lifeOf(decoded(withRaw("expires_in", json)).expires_in) <= 0)
      }
    )

    it.each([
      "1e999",
      "-1e999",
      "9".repeat(400),
      `"${"9".repeat(400)}"`,
      "\"NaN\"",
      "\"Infinity\"",
      "\"-Infinity\"",
      "\"1e3\"",
      "\"0x10\"",
      "\"soon\"",
      "\"\"",
      "\" \"",
      "\"3600 \"",
      "\"+3600\"",
      "\"3,600\"",
      "\"\u0663\u0666\u0660\u0660\"",
      "true",
      "false",
      "[]",
      "[3600]",
      "{}"
    ])("%s is not a number of seconds", (json) => {
      deepStrictEqual(problems(withRaw("expires_in", json)), ["expires_in"])
    })

    prop(
      "any value is an error, no lifetime, or a whole number of seconds up to 60 minutes",
      [FC.oneof(
        FC.jsonValue(),
        FC.double(),
        FC.integer(),
        FC.bigInt().map(String),
        FC.double().map(String),
        FC.nat({ max: 10_000 }),
        FC.nat({ max: 10_000 }).map(String)
      )],
      ([expiresIn]) => {
        const result = TokenResponse.decode(tokenBody({ expires_in: expiresIn }))
        if (Either.isLeft(result)) {
          deepStrictEqual(result.left.problems.map(({ path }) => path), ["expires_in"])
          return
        }
        const lifetime = lifeOf(result.right.expires_in)
        if (lifetime <= 0) return
        assert.isTrue(Number.isSafeInteger(lifetime))
        assert.strictEqual(lifetime % 1000, 0)
        assert.isAtMost(lifetime, hour)
        // JSON has no number for infinity and NaN: it has null.
        const sent = typeof expiresIn === "number" && !Number.isFinite(expiresIn) ? null : expiresIn
        const sentSeconds = Number(sent ?? 3600)
        assert.isAtMost(lifetime, sentSeconds * 1000, "not longer than expires_in")
      },
      { fastCheck: { numRuns: 1000 } }
    )
  })

  describe("token_type", () => {
    it.each(["bearer", "Bearer", "BEARER", "bEaReR", "BearerToken", "bearertoken", "BEARERTOKEN"])(
      "%s is accepted",
      (type) => {
        assert.strictEqual(decoded(tokenBody({ token_type: type })).token_type, type)
      }
    )

    it.each([
      "mac",
      "DPoP",
      "Basic",
      "N_A",
      "",
      " bearer",
      "bearer ",
      "bearer\n",
      "bearer\r\nx-injected: 1",
      "bearer token",
      "bearertokens",
      "b\u0117arer",
      7,
      null,
      true,
      ["bearer"],
      {}
    ])("%j is not accepted", (type) => {
      deepStrictEqual(problems(tokenBody({ token_type: type })), ["token_type"])
    })
  })

  describe("access_token", () => {
    it.each([
      "t",
      "invented-token-0001",
      "abc.def-ghi_jkl~mno+pqr/stu",
      "YWJj=",
      "YWJj==",
      "a".repeat(16 * 1024)
    ])("%s is accepted", (token) => {
      assert.strictEqual(Redacted.value(decoded(tokenBody({ access_token: token })).access_token), token)
    })

    const unusable = [
      ["empty", ""],
      ["CR LF and a header", "canary-0001\r\nx-injected: 1"],
      ["a trailing line feed", "canary-0001\n"],
      ["NUL", "canary-0001\0"],
      ["a space", "canary 0001"],
      ["a tab", "canary\t0001"],
      ["DEL", "canary-0001\x7f"],
      ["a letter beyond ASCII", "canary-\u00e9"],
      ["CJK", "canary-\u79d8\u5bc6"],
      ["an emoji", "canary-\u{1f600}"],
      ["an equals sign inside", "canary=0001"],
      ["equals signs only", "==="],
      ["a comma", "canary,0001"],
      ["a quote", "canary\"0001"],
      ["one byte more than 16 KiB", `canary${"a".repeat(16 * 1024 - 5)}`],
      ["a number", 1234567890123],
      ["an object", { value: "canary-0001" }],
      ["an array", ["canary-0001"]],
      ["null", null],
      ["a boolean", true]
    ] as const

    it.each(unusable)("%s is not accepted, and the error does not contain it", (_name, token) => {
      const result = TokenResponse.decode(tokenBody({ access_token: token }))
      assert.isTrue(Either.isLeft(result))
      if (Either.isRight(result)) return
      deepStrictEqual(result.left.problems, [
        { path: "access_token", expected: "a bearer token of RFC 6750, of at most 16 KiB" }
      ])
      const all = renderings(result.left)
      assert.notInclude(all, "canary")
      assert.notInclude(all, "1234567890123")
      assert.notInclude(all, "invented-token")
    })

    it("the error does not contain a token that is the whole body or the element of an array", () => {
      for (const body of [`"canary-0001"`, `["canary-0001"]`, `canary-0001`, `{"access_token":"canary-0001"`]) {
        const result = TokenResponse.decode(body)
        assert.isTrue(Either.isLeft(result))
        assert.isFalse(shows(Either.merge(result), "canary"))
      }
    })

    it("control: the search finds the value in the original error of the schema", () => {
      const naive = Schema.decodeUnknownEither(TokenResponse.TokenResponse)({
        access_token: "canary 0001",
        token_type: "bearer"
      })
      assert.isTrue(Either.isLeft(naive))
      if (Either.isRight(naive)) return
      assert.isTrue(shows(naive.left, "canary"))
    })

    prop(
      "is accepted if and only if it is a b64token of RFC 6750 within 16 KiB",
      [FC.oneof(
        FC.string({ unit: character }),
        FC.string({ unit: FC.constantFrom(..."Az09-._~+/=") }),
        FC.stringMatching(/^[A-Za-z0-9\-._~+/]+=*$/)
      )],
      ([token]) => {
        const body = token.replace(/=+$/, "")
        const isB64token = body !== "" && [...body].every((character) => /[A-Za-z0-9._~+/-]/.test(character))
        assert.strictEqual(Either.isRight(TokenResponse.decode(tokenBody({ access_token: token }))), isB64token)
      },
      { fastCheck: { numRuns: 500 } }
    )
  })

  describe("error responses", () => {
    const statuses = [400, 401, 403, 404, 405, 408, 413, 429, 500, 502, 503, 504, 529, 599]

    const refuse = (
      status: number,
      body: string,
      { challenge, id = clientId, secret = clientSecret }: {
        challenge?: string | undefined
        id?: string
        secret?: string
      } = {}
    ) =>
      refusal(
        { credentials: credentialsOf(id, secret), replacing: heldToken("invented-token-0001") },
        { status, headers: Headers.fromInput({ "www-authenticate": challenge }) },
        body
      )

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
      [`{"error":"bad_verification_code"}`, "Other"],
      [`{"error":{"message":"in an object"}}`, "Other"]
    ])("a success with an error and no token is a refusal, whose code decides its reason: %s", (body, reason) => {
      for (const status of [200, 201]) {
        assert.isTrue(isRefusal(status, body))
        const error = refuse(status, body)
        deepStrictEqual([error.status, error.reason], [status, reason])
        deepStrictEqual(error.code, refuse(400, body).code)
        deepStrictEqual(error.description, refuse(400, body).description)
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
      assert.isFalse(isRefusal(200, body))
      assert.isTrue(isRefusal(400, body), "control: the status alone is enough")
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

  it("the schema can be used alone by other sources", () => {
    assert.strictEqual(
      Redacted.value(Schema.decodeUnknownSync(TokenResponse.TokenResponse)(specificationFields).access_token),
      "invented-token-0001"
    )
  })
})
