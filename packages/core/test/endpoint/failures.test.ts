/** How failures of the token endpoint are read: error responses, `Retry-After`, and errors of the HTTP client. */
import {
  Headers,
  HttpBody,
  HttpClientError,
  HttpClientRequest,
  HttpClientResponse
} from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenRequest } from "@store-api/core"
import { renderings, shows } from "@store-api/testing/renderings"
import { prop } from "@store-api/testing/test"
import { Effect, FastCheck as FC, Redacted } from "effect"
import { UntrustedOriginError } from "../../src/AccessTokenError.js"
import { codes, containers, texts } from "../../src/internal/endpoint/dialects.js"
import * as failure from "../../src/internal/endpoint/failure.js"
import * as retryAfter from "../../src/internal/endpoint/retryAfter.js"
import * as sanitise from "../../src/internal/endpoint/sanitise.js"
import { heldToken } from "../support/fakeClient.js"
import {
  character,
  clientId,
  clientSecret,
  credentialsOf,
  tokenBody
} from "../support/wire.js"

describe("error responses", () => {
  /** The reason of each status. */
  const reasons = new Map([
    [400, "InvalidRequest"],
    [401, "InvalidClient"],
    ...[403, 404, 405, 413].map((status) => [status, "Other"] as const),
    [429, "RateLimited"],
    ...[408, 500, 502, 503, 504, 529, 599].map((status) => [status, "Unavailable"] as const)
  ])
  const statuses = [...reasons.keys()]

  const respond = (
    status: number,
    body: string | undefined,
    {
      challenge,
      id = clientId,
      isFirst = false,
      request = TokenRequest.specification,
      secret = clientSecret
    }: {
      challenge?: string | undefined
      id?: string
      secret?: string
      isFirst?: boolean
      request?: TokenRequest.TokenRequest
    } = {}
  ) => {
    const credentials = credentialsOf(id, secret)
    const sent = Effect.runSync(request.request(credentials))
    return failure.refusal(
      {
        request: sent,
        credentials,
        replacing: isFirst ? undefined : heldToken("invented-token-0001")
      },
      { status, headers: Headers.fromInput({ "www-authenticate": challenge }), request: sent },
      body
    )
  }

  const refuse = (...response: Parameters<typeof respond>) =>
    respond(...response) ?? assert.fail("it is not a refusal")

  const reasonsOf = (body: string, statuses: ReadonlyArray<number>) =>
    statuses.map((status) => refuse(status, body).reason)

  const dialects: ReadonlyArray<
    readonly [name: string, body: string, code?: string | undefined, text?: string]
  > = [
    [
      "RFC 6749",
      `{"error":"e","error_description":"a text","error_uri":"https://x.example"}`,
      "e",
      "a text"
    ],
    [
      "RFC 6749, without a description",
      `{"error":"unauthorized_client"}`,
      "unauthorized_client"
    ],
    ["RFC 6749, an unregistered code", `{"error":"quota.exceeded:7"}`, "quota.exceeded:7"],
    [
      "a gateway's ErrorCode",
      `{"ErrorCode":"missing_field","Error":"No field"}`,
      "missing_field",
      "No field"
    ],
    [
      "a gateway's fault",
      `{"fault":{"faultstring":"Spike","detail":{"errorcode":"a.Spike"}}}`,
      "a.Spike",
      "Spike"
    ],
    [
      "a gateway's fault without a detail",
      `{"fault":{"faultstring":"Broken"}}`,
      undefined,
      "Broken"
    ],
    [
      "the suite's errors",
      `{"errors":[{"errorCode":"E1001","type":"auth","reason":"why","message":"Not now"},{"errorCode":"E2"}]}`,
      "E1001",
      "Not now"
    ],
    [
      "the suite's errors, type and reason",
      `{"errors":[{"type":"auth","reason":"Because"}]}`,
      "auth",
      "Because"
    ],
    ["an empty list of errors", `{"errors":[]}`],
    ["HTML", "<html><body><h1>502 Bad Gateway</h1></body></html>"],
    ["an empty body", ""],
    ["plain text", "upstream connect error"],
    ["truncated JSON", `{"error":"invalid_client","error_desc`],
    ["null", "null"],
    ["an array", "[]"],
    ["a string", "\"invalid_client\""],
    [
      "fields of other types",
      `{"error":true,"error_description":{},"ErrorCode":null,"fault":[],"errors":{}}`
    ],
    [
      "UPS",
      `{"response":{"errors":[{"code":"250003","message":"Invalid"}]}}`,
      "250003",
      "Invalid"
    ],
    [
      "Okta",
      `{"errorCode":"E0000022","errorSummary":"No","errorCauses":[]}`,
      "E0000022",
      "No"
    ],
    [
      "WSO2",
      `{"fault":{"code":900901,"message":"Invalid","description":"Try again"}}`,
      "900901",
      "Invalid"
    ],
    [
      "DHL",
      `{"status":403,"title":"Forbidden","detail":"No product"}`,
      undefined,
      "No product"
    ],
    [
      "Twitch",
      `{"status":403,"message":"invalid client secret"}`,
      undefined,
      "invalid client secret"
    ],
    [
      "Facebook",
      `{"error":{"message":"No app","type":"OAuthException","code":101}}`,
      "101",
      "No app"
    ],
    [
      "Walmart",
      `{"error":[{"code":"UNAUTHORIZED.GMP","description":"Denied"}]}`,
      "UNAUTHORIZED.GMP",
      "Denied"
    ],
    [
      "a code far down",
      `${`{"error":`.repeat(4)}${`{"code":"E","error":`.repeat(7000)}1${"}".repeat(7004)}`
    ],
    ["hostile keys", `{"__proto__":{"error":"polluted"},"constructor":{"error":"polluted"}}`]
  ]

  it.each(dialects)(
    "the code and the description of an error are read in the format of %s",
    (_name, body, code, text) => {
      for (const status of statuses) {
        const error = refuse(status, body)
        deepStrictEqual([error.code, error.description], [code, text])
      }
    }
  )

  it.each(dialects)("the status decides the reason of an error in the format of %s", (
    _name,
    body
  ) => {
    for (const [status, reason] of reasons) {
      const error = refuse(status, body)
      deepStrictEqual([error.httpStatus, error.reason], [status, reason])
    }
  })

  it("an error is read in the same way without a token to replace", () => {
    const body = `{"error":"e","error_description":"a text"}`
    deepStrictEqual(refuse(400, body, { isFirst: true }), refuse(400, body))
  })

  it.each([
    `{"error":"invalid_client"}`,
    `{"ErrorCode":"invalid_client","Error":"ClientId is Invalid"}`,
    `{"ErrorCode":"InvalidClientIdentifier"}`,
    `{"fault":{"faultstring":"no","detail":{"errorcode":"invalid_client"}}}`,
    `{"fault":{"faultstring":"no","detail":{"errorcode":"oauth.v2.InvalidClientIdentifier"}}}`,
    `{"errors":[{"errorCode":"INVALID_CLIENT"}]}`
  ])("a code that means an invalid client also counts with status 400 or 403: %s", (body) => {
    const expected = ["InvalidClient", "InvalidClient", "Unavailable", "RateLimited"] as const
    deepStrictEqual<ReadonlyArray<string>>(reasonsOf(body, [400, 403, 500, 429]), expected)
  })

  const challenges = [
    "Bearer",
    "Bearer realm=\"a\"",
    "bearer error=\"invalid_token\"",
    "Basic realm=\"a\", Bearer realm=\"a\""
  ]

  it.each(challenges)("a 401 with the challenge of an API is Other: %s", (challenge) => {
    const codes = ["invalid_token", "not_invalid_request", "invalid_requests"].map((code) =>
      `{"error":"${code}"}`
    )
    for (const body of ["", "<html>", ...codes, `{"errors":[{"errorCode":"E7"}]}`]) {
      assert.strictEqual(refuse(401, body, { challenge }).reason, "Other", body)
    }
  })

  it.each(challenges)(
    "a code of OAuth makes a 401 with the challenge of an API InvalidClient: %s",
    (challenge) => {
      const codes = ["invalid_client", "invalid_request", "invalid_grant"]
      const bodies = codes.map((code) => `{"error":"${code}"}`)
      for (const body of [...bodies, `{"ErrorCode":"unauthorized_client"}`]) {
        assert.strictEqual(refuse(401, body, { challenge }).reason, "InvalidClient", body)
      }
    }
  )

  it.each(challenges)("the challenge of an API matters only with a 401: %s", (challenge) => {
    assert.strictEqual(refuse(400, "", { challenge }).reason, "InvalidRequest")
    assert.strictEqual(refuse(503, "", { challenge }).reason, "Unavailable")
  })

  it.each([
    "Basic realm=\"tokens\"",
    "Basic realm=\"tokens, bearer only\"",
    "Digest",
    "Bearers",
    "",
    undefined
  ])("a 401 with another challenge is InvalidClient: %s", (challenge) => {
    assert.strictEqual(refuse(401, "", { challenge }).reason, "InvalidClient")
  })

  it("a refusal is InvalidClient even if the client id is a part of the code", () => {
    const error = refuse(400, `{"error":"invalid_client"}`, { id: "invalid_client" })
    deepStrictEqual([error.reason, error.code], ["InvalidClient", "invalid_client"])
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
  ])(
    "the code decides the reason of a success with an error instead of a token: %s",
    (body, reason) => {
      for (const status of [200, 201]) {
        const error = refuse(status, body)
        deepStrictEqual([error.httpStatus, error.reason], [status, reason])
      }
    }
  )

  it("an error in a success has its code and its description", () => {
    const error = refuse(200, `{"error":"e","error_description":"a text"}`)
    deepStrictEqual([error.code, error.description], ["e", "a text"])
  })

  it("the status of an error decides its reason, even if its code means that the server is not available", () => {
    for (const error of ["temporarily_unavailable", "server_error", "invalid_scope"]) {
      const all = reasonsOf(JSON.stringify({ error }), [300, 400, 403, 404])
      deepStrictEqual(all, ["Other", "InvalidRequest", "Other", "Other"], error)
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

  it.each(["not a code", "", "a".repeat(101), "code\r\nno", "c\u00f6de", "<b>code</b>"])(
    "a code that is not a single word is dropped: %j",
    (error) => {
      assert.isUndefined(refuse(400, JSON.stringify({ error })).code)
    }
  )

  it("a code may have 100 characters", () => {
    assert.strictEqual(refuse(400, `{"error":"${"a".repeat(100)}"}`).code, "a".repeat(100))
  })

  it.each([
    [401, "", true],
    [400, `{"error":"invalid_client"}`, true],
    [400, "", false],
    [503, "", false]
  ])("only InvalidClient reports that form decoding changes credentials: %i %s", (
    status,
    body,
    expected
  ) => {
    for (const change of [{ secret: "p+lus" }, { id: "per%cent" }]) {
      assert.strictEqual(refuse(status, body, change).changedByFormDecoding, expected)
    }
  })

  const rawBasic = TokenRequest.make({
    identity: "Basic without encoding",
    request: ({ clientId, clientSecret }) =>
      Effect.succeed(
        HttpClientRequest.basicAuth(HttpClientRequest.post(""), clientId, clientSecret)
      )
  })
  const json = TokenRequest.make({
    identity: "JSON",
    request: ({ clientId, clientSecret }) =>
      Effect.succeed(HttpClientRequest.bodyUnsafeJson(HttpClientRequest.post(""), {
        id: clientId,
        secret: Redacted.value(clientSecret)
      }))
  })
  const { clientSecretBasic, clientSecretPost, specification } = TokenRequest

  it.each([
    ["an-id", "p+lus", ["basic", "rawBasic", "raw"]],
    ["an-id", "per%2525cent", ["basic", "rawBasic", "raw"]],
    ["an-id", "%", ["basic", "rawBasic", "raw"]],
    ["p+lus", "a=b", ["basic", "rawBasic", "raw"]],
    ["co:lon", "plain", ["basic"]],
    ["an-id", "co:lon", []]
  ])(
    "InvalidClient reports what form decoding changes of a request, whoever made it: %s %s",
    (id, secret, expected) => {
      const raw = TokenRequest.make({ identity: "unencoded", request: specification.request })
      const requests = {
        basic: clientSecretBasic(),
        post: clientSecretPost(),
        rawBasic,
        raw,
        json
      }
      const reporting = Object.entries(requests).filter(([, request]) =>
        refuse(401, "", { id, secret, request }).changedByFormDecoding
      )
      deepStrictEqual(reporting.map(([name]) => name), expected)
    }
  )

  it.each([["an-id", "b\u00fccher"], ["b\u00fccher", "plain"]])(
    "InvalidClient reports that Basic encodes characters beyond ASCII: %s %s",
    (id, secret) => {
      const [basic, post] = [clientSecretBasic(), clientSecretPost()].map((request) =>
        refuse(401, "", { id, secret, request }).changedByFormDecoding
      )
      deepStrictEqual([basic, post], [true, false])
    }
  )

  describe("what the request carried", () => {
    const key = "live-7f3a/81+c2=%41"

    /** The error of a request, whose response may belong to another one. */
    const refuseRequest = (
      sent: HttpClientRequest.HttpClientRequest,
      body: object,
      { credentials = credentialsOf(clientId, clientSecret), received = sent } = {}
    ) =>
      failure.refusal(
        { request: sent, credentials, replacing: undefined },
        { status: 400, headers: Headers.empty, request: received },
        JSON.stringify(body)
      )

    /** The description that is kept when the endpoint repeats a text. */
    const descriptionOf = (
      sent: HttpClientRequest.HttpClientRequest,
      text: string,
      received = sent
    ) =>
      refuseRequest(sent, { error_description: `no ${text} here` }, { received })?.description

    const post = HttpClientRequest.post("")
    const form = new FormData()
    form.set("key", key)
    const places: ReadonlyArray<
      readonly [place: string, sent: HttpClientRequest.HttpClientRequest]
    > = [
      ["a header", HttpClientRequest.setHeader(post, "x-api-key", key)],
      [
        "a header whose name begins like one that describes the message",
        HttpClientRequest.setHeader(post, "content-hmac", key)
      ],
      [
        "a header with a scheme",
        HttpClientRequest.setHeader(post, "x-authorization", `ApiKey ${key}`)
      ],
      ["a bearer token", HttpClientRequest.bearerToken(post, key)],
      [
        "the password of basic",
        HttpClientRequest.setHeader(post, "authorization", `basic ${btoa(`shop:${key}`)}`)
      ],
      ["the password of Basic", HttpClientRequest.basicAuth(post, clientId, key)],
      ["the user name of Basic", HttpClientRequest.basicAuth(post, key, "")],
      [
        "a parameter of a scheme",
        HttpClientRequest.setHeader(post, "authorization", `Key id="x", key="${key}"`)
      ],
      ["a cookie", HttpClientRequest.setHeader(post, "cookie", `lang=en; key=${key}`)],
      ["a form", HttpClientRequest.bodyUrlParams(post, { scope: "a", key })],
      [
        "an unencoded form",
        HttpClientRequest.bodyText(post, `scope=a&key=${key}`, "text/plain")
      ],
      [
        "a form without bytes",
        HttpClientRequest.setBody(post, HttpBody.raw(new URLSearchParams({ key })))
      ],
      ["a multipart form", HttpClientRequest.bodyFormData(post, form)],
      ["JSON", HttpClientRequest.bodyUnsafeJson(post, { key })],
      [
        "JSON, at any depth",
        HttpClientRequest.bodyUnsafeJson(post, { data: [{ attributes: { key } }] })
      ],
      [
        "a query",
        HttpClientRequest.setUrlParam(HttpClientRequest.get("https://a.example"), "key", key)
      ],
      [
        "the query of the URL",
        HttpClientRequest.get(`https://a.example/?key=${encodeURIComponent(key)}`)
      ]
    ]

    it.each(places)("a description that repeats a value in %s is dropped", (_place, sent) => {
      assert.isUndefined(descriptionOf(sent, key))
      assert.isUndefined(descriptionOf(sent, `"${encodeURIComponent(key)}"`))
      assert.strictEqual(descriptionOf(sent, "other"), "no other here", "control")
    })

    it("a description that repeats a value of another request is kept", () => {
      assert.strictEqual(descriptionOf(post, key), `no ${key} here`)
    })

    const withKey = HttpClientRequest.setHeader(post, "x-api-key", key)

    it("a description that repeats a value which the HTTP client added is dropped", () => {
      assert.isUndefined(descriptionOf(post, key, withKey))
    })

    it("a description that repeats a value which the HTTP client removed is dropped", () => {
      assert.isUndefined(descriptionOf(withKey, key, post))
    })

    it("a value of at least 8 characters counts", () => {
      const sent = HttpClientRequest.setHeaders(post, {
        "x-plan": "premium",
        "x-key": "premium8"
      })
      assert.strictEqual(descriptionOf(sent, "premium"), "no premium here")
      assert.isUndefined(descriptionOf(sent, "premium8"))
    })

    it("a header of at least 8 characters counts, even if its parts are shorter", () => {
      const sent = HttpClientRequest.setHeader(post, "x-key", "Key abcd")
      assert.isUndefined(descriptionOf(sent, "Key abcd"))
      assert.strictEqual(descriptionOf(sent, "abcd"), "no abcd here")
    })

    it("what follows a scheme counts, even if it has separators", () => {
      const sent = HttpClientRequest.setHeader(post, "authorization", "Key a=1;b=2,c=3")
      assert.isUndefined(descriptionOf(sent, "a=1;b=2,c=3"))
    })

    it("a number in JSON counts", () => {
      assert.isUndefined(
        descriptionOf(HttpClientRequest.bodyUnsafeJson(post, { pin: 12_345_678 }), "12345678")
      )
    })

    it("the client id is replaced, wherever it was sent", () => {
      const sent = HttpClientRequest.bodyUrlParams(post, { appid: clientId }).pipe(
        HttpClientRequest.setUrlParam("user", clientId),
        HttpClientRequest.setHeaders({
          "x-app": clientId,
          "cookie": `app=${encodeURIComponent(clientId)}`
        }),
        HttpClientRequest.basicAuth(clientId, key)
      )
      assert.strictEqual(descriptionOf(sent, clientId), "no <client id> here")
    })

    it.each([
      ["invented+client%41", specification],
      ["invented:client", clientSecretBasic()],
      ["invented:client", clientSecretPost()]
    ])(
      "a client id is replaced even if form decoding would change it: %s",
      (id, request) => {
        const body = JSON.stringify({ error_description: `no ${id} here` })
        assert.strictEqual(
          refuse(400, body, { id, request }).description,
          "no <client id> here"
        )
      }
    )

    it.each([
      "client_credentials",
      "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      "account_credentials"
    ])(
      "a description that repeats a constant of the protocol is kept: %s",
      (value) => {
        const fields = { grant_type: value, client_assertion_type: value, grantType: value }
        assert.strictEqual(
          descriptionOf(HttpClientRequest.bodyUrlParams(post, fields), value),
          `no ${value} here`
        )
        assert.strictEqual(
          descriptionOf(HttpClientRequest.bodyUnsafeJson(post, fields), value),
          `no ${value} here`
        )
        assert.isUndefined(
          descriptionOf(HttpClientRequest.bodyUrlParams(post, { key: value }), value),
          "control"
        )
      }
    )

    it.each(["accept", "accept-encoding", "content-type", "content-language", "user-agent"])(
      "a description that repeats a header about the message is kept: %s",
      (name) => {
        assert.strictEqual(
          descriptionOf(
            HttpClientRequest.setHeader(post, name, "a/media-type"),
            "a/media-type"
          ),
          "no a/media-type here"
        )
        assert.isUndefined(
          descriptionOf(
            HttpClientRequest.setHeader(post, `x-${name}`, "a/media-type"),
            "a/media-type"
          ),
          "control"
        )
      }
    )

    it("a code that is a value of the request is dropped, unless it is registered", () => {
      const codeOf = (error: string) =>
        refuseRequest(HttpClientRequest.setHeader(post, "x-key", error), { error })?.code
      assert.isUndefined(codeOf("key-of-a-shop"))
      assert.strictEqual(codeOf("invalid_scope"), "invalid_scope")
    })
  })

  it.each(Object.entries({ clientSecretBasic, clientSecretPost }))(
    "a description that repeats a secret parameter of %s is dropped",
    (_name, make) => {
      const request = make({ child_secret: Redacted.make("invented-child"), scope: "orders" })
      const repeat = (error_description: string) =>
        refuse(400, JSON.stringify({ error_description }), { request }).description
      assert.isUndefined(repeat("no child invented-child"))
      assert.strictEqual(repeat("no scope orders"), "no scope orders", "control")
    }
  )

  it("a description that repeats the header of Basic is dropped", () => {
    const header = Buffer.from(`${clientId}:per%25c%2Bnt`).toString("base64")
    const body = JSON.stringify({ error_description: `got Basic ${header}` })
    const request = clientSecretBasic()
    assert.isUndefined(refuse(400, body, { secret: "per%c+nt", request }).description)
  })

  it.each(["s3cret+/=%~ !x", "invented-token-0001", "something"])(
    "a description that repeats the secret or the replaced token is dropped: %s",
    (value) => {
      const body = JSON.stringify({ fault: { faultstring: `you sent ${value} here` } })
      const error = refuse(400, body, { secret: "s3cret+/=%~ !x" })
      assert.strictEqual(shows(error, "you sent"), value === "something")
    }
  )

  it.each([clientId, clientSecret, "invented-token-0001"])(
    "a code that contains a credential or the token is dropped: %s",
    (value) => {
      assert.isFalse(shows(refuse(400, JSON.stringify({ error: `no_${value}` })), value))
    }
  )

  it("a code that contains no credential is kept", () => {
    const { code } = refuse(400, `{"error":"invented-other-7f3a"}`)
    assert.strictEqual(code, "invented-other-7f3a")
  })

  const hostile = [
    "\u0000",
    "\r",
    "\n",
    "\u202e",
    "\u2028",
    "\ud800",
    "\udc00",
    "\u{1f600}",
    " ",
    "\u{e0001}"
  ]

  prop(
    "no description contains a control or formatting character, a line break, or more than 256 characters",
    [
      FC.string({ unit: FC.oneof(FC.constantFrom(...hostile), character), maxLength: 600 })
    ],
    ([text]) => {
      const error = refuse(400, JSON.stringify({ error_description: text }), {
        id: "c",
        secret: "\u007e\u007e\u007e"
      })
      const description = error.description ?? "x"
      assert.notMatch(description, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u)
      assert.isTrue(description.length >= 1 && description.length <= 256)
    },
    { fastCheck: { numRuns: 500 } }
  )

  const fields = [...codes, ...texts, ...containers]

  prop("the error of any body contains no secret", [
    FC.oneof(
      FC.string({ unit: character }),
      FC.json(),
      FC.dictionary(FC.constantFrom(...fields), FC.jsonValue())
        .map((body) => JSON.stringify(body).replaceAll("a", "invented-secret-7f3a"))
    ),
    FC.constantFrom(...statuses)
  ], ([body, status]) => {
    const error = refuse(status, body)
    assert.notInclude(error.message, "invented-secret")
    assert.strictEqual(error.httpStatus, status)
  })
})

describe("sanitise", () => {
  const nobody = { clientId: "", secrets: [] }
  const knowing = (...secrets: ReadonlyArray<string>) => ({
    clientId: "invented-client",
    secrets
  })

  const bytesOf = (before: string, secret: string, after = "") =>
    Buffer.from(before + secret + after)
  const hexOf = (character: string) => character.charCodeAt(0).toString(16)
  const entities: Readonly<Record<string, string>> = {
    "&": "amp",
    "<": "lt",
    ">": "gt",
    "\"": "quot",
    "'": "apos"
  }
  const escapedForHtml = (
    text: string,
    name: (character: string) => string | undefined = (character) => entities[character]
  ) => text.replace(/[&<>"']/g, (character) => `&${name(character)};`)
  const encodings: ReadonlyArray<readonly [name: string, encode: (secret: string) => string]> =
    [
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
        (secret) => bytesOf("", secret).toString("hex").replace(/../g, "%$&")
      ],
      ["form-encoded", (secret) => new URLSearchParams({ x: secret }).toString().slice(2)],
      ["percent-encoded twice", (secret) => encodeURIComponent(encodeURIComponent(secret))],
      [
        "escaped for HTML",
        (secret) => escapedForHtml(secret, (character) => entities[character])
      ],
      [
        "escaped for HTML, in decimal",
        (secret) => escapedForHtml(secret, (character) => `#${character.charCodeAt(0)}`)
      ],
      [
        "escaped for HTML, with zeros",
        (secret) => escapedForHtml(secret, (character) => `#0${character.charCodeAt(0)}`)
      ],
      [
        "escaped for HTML, in hexadecimal",
        (secret) => escapedForHtml(secret, (character) => `#X${hexOf(character)}`)
      ],
      ["escaped for HTML twice", (secret) => escapedForHtml(escapedForHtml(secret))],
      ["escaped for JSON", (secret) => JSON.stringify(secret).slice(1, -1)],
      [
        "escaped for JSON, with slashes",
        (secret) => JSON.stringify(secret).slice(1, -1).replaceAll("/", "\\/")
      ],
      [
        "escaped for JSON, each character",
        (secret) => secret.replace(/./gs, (it) => `\\u${hexOf(it).padStart(4, "0")}`)
      ],
      ["escaped for JSON twice", (secret) => JSON.stringify(JSON.stringify(secret))],
      ["escaped for JSON and HTML", (secret) => escapedForHtml(JSON.stringify(secret))],
      ["escaped for HTML and JSON", (secret) => JSON.stringify(escapedForHtml(secret))],
      [
        "percent-encoded and escaped for HTML",
        (secret) => escapedForHtml(encodeURIComponent(secret))
      ],
      [
        "in base64, percent-encoded",
        (secret) => encodeURIComponent(bytesOf("", secret).toString("base64"))
      ],
      [
        "in base64, escaped for JSON",
        (secret) => bytesOf("", secret).toString("base64").replaceAll("/", "\\/")
      ],
      ["in base64", (secret) => bytesOf("", secret).toString("base64")],
      ["in base64, after one byte", (secret) => bytesOf(":", secret).toString("base64")],
      [
        "in base64, after two bytes",
        (secret) => bytesOf("::", secret, "&").toString("base64")
      ],
      ["in base64url", (secret) => bytesOf("", secret).toString("base64url")],
      ["in base64url, after one byte", (secret) => bytesOf(":", secret).toString("base64url")],
      [
        "in base64url, after two bytes",
        (secret) => bytesOf("::", secret).toString("base64url")
      ]
    ]
  /** Secrets with every character that an encoding changes. */
  const secrets = FC.stringMatching(
    /^[a-z0-9]{8}([a-z0-9]{4}[ +/=_%~!$'"&<>\\-]){2,8}[a-z0-9]{4}$/
  )
    .filter((secret) => !/%[89a-f][\da-f]/i.test(secret))
  const sentence = FC.stringMatching(/^[a-z ,.:;]{0,300}$/)

  for (const [name, encode] of encodings) {
    prop(
      `a description that repeats a secret is dropped: ${name}`,
      [secrets, sentence, sentence],
      ([secret, before, after]) => {
        const text = `${before} ${encode(secret)} ${after}`
        assert.isUndefined(sanitise.description(text, knowing("another-invented-one", secret)))
        assert.isUndefined(sanitise.code(encode(secret), knowing(secret)))
        assert.isDefined(
          sanitise.description(`${before} ${encode("another one")} ${after}`, knowing(secret)),
          "control"
        )
      }
    )
  }

  it("a description that repeats a secret beyond ASCII is dropped", () => {
    const secret = "p\u00e4ssw\u00f6rd"
    const text = `you sent ${encodeURIComponent(secret)}`
    assert.isUndefined(sanitise.description(text, knowing(secret)))
    assert.strictEqual(sanitise.description(text, knowing("another")), text, "control")
  })

  it("a description that repeats a secret of several lines, escaped for JSON, is dropped", () => {
    const secret = "-----BEGIN INVENTED KEY-----\ninvented/line+one\r\ninvented\tline\n"
    const text = `got ${JSON.stringify(secret)}`
    assert.isUndefined(sanitise.description(text, knowing(secret)))
    assert.strictEqual(sanitise.description(text, knowing("another")), text, "control")
  })

  const short = {
    "a": ["got a"],
    "abc": ["got abc", "got YWJj"],
    "+/~": ["got +/~", "got %2B%2F%7E"],
    "+/=": ["got +/=", "got %2B%2F%3D"],
    "a b": ["got a\nb"]
  }

  it.each(Object.entries(short))(
    "a description that repeats a short secret is dropped: %s",
    (secret, texts) => {
      for (const text of texts) {
        assert.isUndefined(sanitise.description(text, knowing(secret)), text)
      }
      assert.strictEqual(sanitise.description("get it", knowing(secret)), "get it", "control")
    }
  )

  it.each<readonly [string, text: string, expected: string | undefined]>([
    ["keeps a text without a secret", "The client is suspended", "The client is suspended"],
    [
      "keeps markup and signs",
      "100% wrong: #7 & \"8\" \\ <b>refusé</b>",
      "100% wrong: #7 & \"8\" \\ <b>refusé</b>"
    ],
    ["keeps a part of a secret", "invented", "invented"],
    [
      "keeps what looks like an entity",
      "&#99999999; &#x110000; &#e; &nbsp; &#;",
      "&#99999999; &#x110000; &#e; &nbsp; &#;"
    ],
    ["replaces CR and LF by a space each", "one\r\ntwo", "one  two"],
    [
      "replaces an escape sequence by a space",
      "one \u001b[31mtwo\u009b31m",
      "one  [31mtwo 31m"
    ],
    [
      "replaces a NUL, a tab, separators and a change of direction",
      "1\u00002\t3\u20284\u20295\u202e6",
      "1 2 3 4 5 6"
    ],
    [
      "replaces zero-width and tag characters, and half of a pair",
      "1\u200b2\ufeff3\u{e0041}4\ud8005",
      "1 2 3 4 5"
    ],
    ["omits nothing but control characters", "\r\n\u0000", undefined],
    ["omits an empty text", "", undefined]
  ])("the sanitised description %s", (_name, text, expected) => {
    assert.strictEqual(sanitise.description(text, knowing("invented-secret", "")), expected)
  })

  it("the client id is replaced in a description, unless it is shorter than 8 characters", () => {
    const cases = { eight888: "<client id>, <client id>s", seven77: "seven77, seven77s" }
    for (const [clientId, expected] of Object.entries(cases)) {
      assert.strictEqual(
        sanitise.description(`${clientId}, ${clientId}s`, { clientId, secrets: [] }),
        expected
      )
    }
  })

  const long = "no".repeat(200)

  it("a description is cut at 256 characters", () => {
    assert.strictEqual(sanitise.description(long, nobody), "no".repeat(128))
  })

  it("a description is not cut in the middle of a character", () => {
    const text = "x".repeat(255)
    assert.strictEqual(sanitise.description(text + "\u{1f600}", nobody), `${text} `)
  })

  it.each([0, 250, 300, 400])(
    "a description is searched for secrets before it is cut: at %i",
    (at) => {
      const text = `${long.slice(0, at)}s3cret${long.slice(at)}`
      assert.isUndefined(sanitise.description(text, knowing("s3cret")))
    }
  )

  it("a description is searched for the client id before it is cut", () => {
    const text = long.slice(0, 250)
    const description = sanitise.description(`${text}invented-client`, knowing())
    assert.strictEqual(description, `${text}<clien`)
  })

  it.each([
    "invalid_client",
    "invalid_request",
    "unauthorized_client",
    "use_dpop_nonce",
    "invalid_target"
  ])("a registered code is kept even if it is a credential: %s", (code) => {
    assert.strictEqual(
      sanitise.code(code, { clientId: code, secrets: [code, "client"] }),
      code
    )
  })

  it.each([
    [knowing("unknown"), undefined],
    [{ clientId: "unknown_client", secrets: [] }, undefined],
    [knowing("another", ""), "unknown_client"],
    [{ clientId: "client", secrets: [] }, "unknown_client"]
  ])("another code is kept unless it contains a credential: %j", (credentials, expected) => {
    assert.strictEqual(sanitise.code("unknown_client", credentials), expected)
  })

  it("a description of 64 KiB is searched for twenty tokens of 16 KiB in time", () => {
    const tokens = knowing(...Array.from({ length: 20 }, () => "aB3".repeat(5461)))
    assert.strictEqual(sanitise.description("no".repeat(32_768), tokens), "no".repeat(128))
    const escaped = "%25&amp;%3C\\u0041".repeat(4000)
    assert.strictEqual(sanitise.description(escaped, tokens), escaped.slice(0, 256))
  })
})

describe("retryAfter", () => {
  const hour = 3_600_000
  const now = Date.UTC(2026, 0, 1)
  const read = (value: string | undefined, date?: string) =>
    retryAfter.milliseconds({ "retry-after": value, date }, now)

  it.each<readonly [milliseconds: number, values: ReadonlyArray<string>]>([
    [30_000, ["30", "  30  ", "5, 30", "30,5"]],
    // The formats of HTTP, of RFC 850 and of asctime.
    [30_000, [
      "Thu, 01 Jan 2026 00:00:30 GMT",
      "Thursday, 01-Jan-26 00:00:30 GMT",
      "Thu Jan  1 00:00:30 2026"
    ]],
    [7000, ["0007"]],
    [3_599_000, ["3599"]],
    [hour, [
      "3601",
      "31536000",
      "9".repeat(400),
      "Fri, 01 Jan 2027 00:00:00 GMT",
      "Sun Feb 15 00:00:30 2026"
    ]],
    [0, ["0", "Thu, 01 Jan 2026 00:00:00 GMT", "Wed, 31 Dec 2025 23:59:59 GMT"]],
    [0, ["Thu, 01 Jan 1970 00:00:00 GMT", "Sunday, 06-Nov-94 08:49:37 GMT"]]
  ])("a Retry-After means %i ms, at most an hour: %j", (expected, values) => {
    for (const value of values) assert.strictEqual(read(value), expected, value)
  })

  const day = "Thu, 01 Jan 2026"

  it.each([
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
    "\u0663\u0660",
    undefined,
    "2026-01-01T00:00:30Z",
    "1767225630000 GMT",
    "Thu, 99 Jan 2026 00:00:30 GMT",
    "Thu, 01 Foo 2026 00:00:30 GMT",
    ...["25:00:30 GMT", "00:00:30 +0100", "00:00:30", "00:00:30 GMT+0100"].map((time) =>
      `${day} ${time}`
    ),
    "On Thu, 01 Jan 2026 00:00:30 GMT",
    "On Thu Jan  1 00:00:30 2026",
    "Thu Jan  1 00:00:30 2026 +0100",
    "01 Jan 2026 00:00:30 GMT"
  ])("a Retry-After of %j is ignored", (value) => {
    assert.isUndefined(read(value))
  })

  it.each([
    ["that passed after it", `${day} 12:00:30 GMT`, `${day} 12:00:00 GMT`, 30_000],
    ["that passed before it", `${day} 00:00:30 GMT`, `${day} 00:01:00 GMT`, 0],
    ["only if the header is valid", `${day} 00:00:30 GMT`, "yesterday", 30_000]
  ])("a date is measured from the Date header of the response: %s", (_, value, date, wait) => {
    assert.strictEqual(read(value, date), wait)
  })

  it("a number of seconds does not depend on the Date header of the response", () => {
    assert.strictEqual(read("30", `${day} 12:00:00 GMT`), 30_000)
  })

  prop("any Retry-After means nothing, or whole milliseconds up to the maximum", [
    FC.oneof(
      FC.string(),
      FC.integer().map(String),
      FC.double().map(String),
      FC.date().map((date) => date.toUTCString()),
      FC.array(FC.nat().map(String)).map((values) => values.join(", "))
    ),
    FC.option(FC.date({ noInvalidDate: true }).map((date) => date.toUTCString()), {
      nil: undefined
    })
  ], ([value, date]) => {
    const wait = read(value, date)
    if (wait !== undefined) {
      assert.isTrue(
        Number.isSafeInteger(wait) && wait >= 0 && wait <= hour,
        `${value}: ${wait}`
      )
    }
  }, { fastCheck: { numRuns: 500 } })
})

describe("transportError", () => {
  const request = HttpClientRequest.post("https://auth.shop.example").pipe(
    HttpClientRequest.bearerToken("invented-canary"),
    HttpClientRequest.bodyText("client_secret=invented-canary")
  )
  const withCode = (code: unknown, cause?: unknown) =>
    Object.assign(new Error("message", { cause }), { code })
  const nested = (errors: number): unknown =>
    errors === 0 ? withCode("ECODE") : new Error("message", { cause: nested(errors - 1) })
  const errorOf = (cause: unknown) =>
    failure.fromHttpClientError(
      new HttpClientError.RequestError({ request, reason: "Transport", cause })
    )

  it.each<readonly [string, unknown, string?]>([
    ["a code", withCode("ECONNREFUSED"), "ECONNREFUSED"],
    [
      "a code of a nested cause, as fetch reports it",
      new TypeError("x", { cause: withCode("ECODE") }),
      "ECODE"
    ],
    ["a code of undici", withCode("UND_ERR_SOCKET"), "UND_ERR_SOCKET"],
    ...["EPROTO", "ERR_SSL_WRONG_VERSION_NUMBER", "ECONNRESET", "ETIMEDOUT", "ENOTFOUND"]
      .map((code) => ["a code of no certificate", withCode(code), code] as const),
    ["the first of two codes", withCode("EFIRST", withCode("ESECOND")), "EFIRST"],
    [
      "an AggregateError",
      Object.assign(new AggregateError([withCode("EINNER")]), { code: "EOUTER" }),
      "EOUTER"
    ],
    ["a code of the fifth error in the chain", nested(4), "ECODE"],
    ["a code of the sixth error, which is not searched", nested(5)],
    ...[undefined, null, "ECONNREFUSED", new Error("socket hang up"), {
      message: ["certificate"]
    }]
      .map((cause) => ["no code", cause] as const),
    ...[
      7,
      ["ECONNRESET"],
      "error ECONNRESET",
      "invented canary",
      "econnrefused",
      "ECODE\nx: 1",
      "E".repeat(65)
    ]
      .map((code) => ["an unusable code", withCode(code)] as const)
  ])("the code of a transport error is read from %s", (_name, cause, code) => {
    const error = errorOf(cause)
    deepStrictEqual([error.reason, error.attempts, error.code], ["Transport", 1, code])
  })

  it("a request that would have left for another origin is a Redirect", () => {
    const error = errorOf(
      new UntrustedOriginError({ origin: "https://elsewhere.example", trusted: [] })
    )
    assert.strictEqual(error.reason, "Redirect")
  })

  it("the search for a code ends at a cause that is its own cause", () => {
    const cause: { cause?: unknown } = {}
    cause.cause = cause
    assert.strictEqual(errorOf(cause).reason, "Transport")
  })

  /** Checks the reason and the code of a cause, also if it is the cause of another error. */
  const assertReason = (cause: Error, reason: string, code?: string) => {
    for (const error of [cause, new TypeError("fetch failed", { cause })].map(errorOf)) {
      deepStrictEqual([error.reason, error.code], [reason, code])
    }
  }

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
    assertReason(withCode(code), "Certificate", code)
  })

  it.each([
    "invalid peer certificate: UnknownIssuer",
    "self-signed certificate",
    "Certificate has expired."
  ])(
    "a message about the certificate is Certificate when there is no code: %s",
    (message) => {
      assert.strictEqual(errorOf(new Error(message)).reason, "Certificate")
      assert.strictEqual(
        errorOf(Object.assign(new Error(message), { code: "ECODE" })).reason,
        "Transport"
      )
    }
  )

  it.each([
    "certificate.shop.example",
    "auth.certificate.example",
    "my-certificate",
    "https://certificate/"
  ])(
    "a host name in a message is not about a certificate: %s",
    (host) => {
      assert.strictEqual(errorOf(new Error(`cannot find ${host}`)).reason, "Transport")
    }
  )

  const proxyErrors: ReadonlyArray<
    readonly [client: string, errorOf: (status: number) => Error]
  > = [
    [
      "undici through a tunnel",
      (status) =>
        Object.assign(new Error(`Proxy response (${status}) !== 200 when HTTP Tunneling`), {
          code: "UND_ERR_ABORTED"
        })
    ],
    [
      "undici without a tunnel",
      (status) =>
        Object.assign(new Error(`Proxy Authentication Required (${status})`), {
          code: "UND_ERR_INVALID_ARG"
        })
    ],
    [
      "node:https through a tunnel",
      (statusCode) =>
        Object.assign(new Error("Failed to establish tunnel"), {
          code: "ERR_PROXY_TUNNEL",
          statusCode
        })
    ]
  ]

  it.each(proxyErrors)(
    "the 407 of a proxy is Proxy without a code, also in a nested cause: %s",
    (_client, refuse) => assertReason(refuse(407), "Proxy")
  )

  it.each(proxyErrors)("another status of a proxy is Transport: %s", (_client, refuse) => {
    assert.strictEqual(errorOf(refuse(403)).reason, "Transport")
  })

  it.each(["UND_ERR_DESTROYED", "UND_ERR_CLOSED"])(
    "%s is Closed, also in a nested cause",
    (code) => assertReason(withCode(code), "Closed", code)
  )

  it("the error keeps nothing of the request or the response", () => {
    const response = HttpClientResponse.fromWeb(request, new Response("invented-canary"))
    const cause = new Error("invented-canary")
    const originals = [
      new HttpClientError.RequestError({
        request,
        reason: "Transport",
        cause: withCode("ECONNRESET")
      }),
      new HttpClientError.ResponseError({ request, response, reason: "Decode", cause })
    ]
    for (const original of originals) {
      assert.isTrue(shows(original, "invented-canary"), "control: the search finds the canary")
      assert.notInclude(renderings(failure.fromHttpClientError(original)), "canary")
    }
  })
})
