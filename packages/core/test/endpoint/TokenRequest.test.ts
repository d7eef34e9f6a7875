import { HttpClientRequest } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessToken,
  AccessTokenError,
  ClientCredentials,
  type TokenEndpoint,
  TokenRequest
} from "@store-api/core"
import { leaksIn } from "@store-api/testing/leaksIn"
import { renderings, shows } from "@store-api/testing/renderings"
import { prop, test } from "@store-api/testing/test"
import {
  ConfigProvider,
  Effect,
  FastCheck as FC,
  Fiber,
  Layer,
  Option,
  Redacted,
  TestClock
} from "effect"
import * as FakeClient from "../support/fakeClient.js"
import {
  character,
  clientId,
  clientSecret,
  credentialsOf,
  printable,
  sendable,
  tokenBody
} from "../support/wire.js"

const { clientSecretBasic, clientSecretPost, specification } = TokenRequest

type Parameters = TokenRequest.Parameters

const make = (request: TokenRequest.TokenRequest, id = clientId, secret = clientSecret) =>
  request.request(credentialsOf(id, secret))

/** What a request carries: its body as text, its fields, and its Basic credentials as they were sent. */
const contentOf = (
  request: TokenRequest.TokenRequest,
  id = clientId,
  secret = clientSecret
) => {
  const { body, headers, method } = Effect.runSync(make(request, id, secret))
  if (body._tag !== "Uint8Array") return assert.fail("not bytes")
  assert.strictEqual(body.contentType, "application/x-www-form-urlencoded")
  const text = new TextDecoder().decode(body.body)
  const { authorization } = headers
  const basic = authorization === undefined
    ? undefined
    : Buffer.from(authorization.replace("Basic ", ""), "base64").toString("latin1")
  return { method, text, fields: [...new URLSearchParams(text)], basic }
}

/** Any text that a server may have issued: printable ASCII with every separator, umlauts and emoji. */
const secretText = FC.string({
  unit: FC.oneof(FC.constantFrom(...printable, "&", ":", "%", "+", " "), character).filter((
    c
  ) => !/[\p{Cc}\p{Cs}]/u.test(c)),
  minLength: 1,
  maxLength: 40
})

const controls = ["\n", "\0", "\t", "\x1f", "\x7f", "\u0085", "\ud800", "\udc00"]

const unsendable = [
  ...[specification, clientSecretPost(), clientSecretBasic()].flatMap((request) => [
    { request, value: "invented-canary\n", reason: /^ends with a line break/ },
    ...controls.map((control) => ({
      request,
      value: `invented${control}canary`,
      reason: /^contains a control char/
    }))
  ]),
  { request: specification, value: "invented&canary", reason: /^contains &/ },
  ...["\u00e9", "\u79d8", "\u{1f600}", "\ufeff"].map((letter) => (
    {
      request: specification,
      value: `invented${letter}canary`,
      reason: /^contains a character beyond ASCII/
    }
  ))
]

describe("TokenRequest", () => {
  test.each(unsendable)(
    "a request fails for an id or a secret that cannot be sent, with the variable it was read from: %j",
    function*({ reason, request, value }) {
      for (const field of ["clientId", "clientSecret"] as const) {
        const values = { clientId, clientSecret, [field]: value }
        const environment = {
          MY_STORE_CLIENT_ID: values.clientId,
          MY_STORE_CLIENT_SECRET: values.clientSecret
        }
        const credentials = yield* ClientCredentials.fromConfig("MY_STORE").pipe(
          Effect.provide(
            Layer.setConfigProvider(
              ConfigProvider.fromMap(new Map(Object.entries(environment)))
            )
          )
        )
        const error = yield* Effect.flip(request.request(credentials))
        assert.instanceOf(error, AccessTokenError.CredentialsError)
        assert.strictEqual(error.field, field)
        assert.match(error.reason, reason)
        const variable = field === "clientId" ? "MY_STORE_CLIENT_ID" : "MY_STORE_CLIENT_SECRET"
        assert.strictEqual(error.variable, variable)
        assert.isFalse(shows(error, "canary"))
      }
    }
  )

  describe("specification", () => {
    test("names no variable for credentials that come from elsewhere", function*() {
      assert.isUndefined((yield* Effect.flip(make(specification, "an-id", "a&b"))).variable)
    })

    prop("carries each sendable value byte for byte, in the order of the specification", [
      sendable,
      sendable
    ], (
      [id, secret]
    ) => {
      const { basic, method, text } = contentOf(specification, id, secret)
      deepStrictEqual([method, basic], ["POST", undefined])
      assert.strictEqual(
        text,
        `grant_type=client_credentials&client_id=${id}&client_secret=${secret}`
      )
    })

    prop("accepts no other character at any position", [
      sendable,
      character.filter((unit) => !printable.includes(unit)),
      FC.nat()
    ], ([value, unit, position]) => {
      const at = position % (value.length + 1)
      const error = Effect.runSync(
        Effect.flip(make(specification, "an-id", value.slice(0, at) + unit + value.slice(at)))
      )
      assert.strictEqual(error.field, "clientSecret")
    })
  })

  const parameters = {
    scope: "orders:read orders:write",
    resource: ["https://a.example/?b=c&d", "urn:\u00fc"]
  }
  const sent = [
    ["scope", parameters.scope],
    ...parameters.resource.map((value) => ["resource", value])
  ]

  prop("clientSecretPost: any text arrives as it is after form decoding", [
    secretText,
    secretText
  ], ([id, secret]) => {
    const { basic, fields, text } = contentOf(clientSecretPost(parameters), id, secret)
    assert.isUndefined(basic)
    deepStrictEqual(fields, [
      ["grant_type", "client_credentials"],
      ...sent,
      ["client_id", id],
      ["client_secret", secret]
    ])
    assert.notInclude(text, "+", "not every server reads it as a space")
  })

  prop("clientSecretBasic: any text arrives as it is after form decoding", [
    secretText,
    secretText
  ], ([id, secret]) => {
    const { basic = "", fields } = contentOf(clientSecretBasic(parameters), id, secret)
    deepStrictEqual(
      fields,
      [["grant_type", "client_credentials"], ...sent],
      "no credentials in the body"
    )
    const colon = basic.indexOf(":")
    const decoded = [basic.slice(0, colon), basic.slice(colon + 1)].map((text) =>
      decodeURIComponent(text.replaceAll("+", " "))
    )
    deepStrictEqual(decoded, [id, secret])
    if (!/[%+]|[^\x20-\x7e]/.test(id + secret) && !id.includes(":")) {
      assert.strictEqual(basic, `${id}:${secret}`)
    }
  })

  it.each(Object.entries({ clientSecretPost, clientSecretBasic }))(
    "a request omits empty parameters: %s",
    (_name, request) => {
      const { fields } = contentOf(request({
        scope: "",
        audience: undefined,
        secret: Redacted.make(""),
        resource: ["", "r"],
        key: Redacted.make("k")
      }))
      const expected = [["grant_type", "client_credentials"], ["resource", "r"], ["key", "k"]]
      deepStrictEqual(fields.filter(([name]) => !name.startsWith("client_")), expected)
    }
  )

  it.each(Object.entries({ clientSecretPost, clientSecretBasic }))(
    "a request sends the given grant_type instead of the default: %s",
    (_name, request) => {
      const { fields } = contentOf(request({ grant_type: "urn:x" }))
      deepStrictEqual(fields[0], ["grant_type", "urn:x"])
    }
  )

  const identityOf = (parameters: Parameters, request = clientSecretPost) => {
    const { identity } = request(parameters)
    return Redacted.isRedacted(identity) ? Redacted.value(identity) : identity
  }

  it("identity does not depend on the method of authentication", () => {
    const parameters = { a: Redacted.make("1"), b: ["2", "3"] }
    assert.strictEqual(identityOf(parameters), identityOf(parameters, clientSecretBasic))
  })

  it("identity does not depend on the order of the parameters", () => {
    assert.strictEqual(
      identityOf({ a: "1", b: ["2", "3"] }),
      identityOf({ b: ["2", "3"], a: Redacted.make("1") })
    )
  })

  it("identity does not depend on empty parameters", () => {
    assert.strictEqual(identityOf({ grant_type: "" }), identityOf({ scope: [] }))
  })

  it("identity differs between different parameters", () => {
    const different = [
      {},
      { scope: "a b" },
      { scope: "ab" },
      { scope: ["a", "b"] },
      { scope: "a", b: "" },
      { audience: "a" },
      { scope: "a\",\"b" },
      { grant_type: "x" }
    ]
    const identities = different.map((parameters) => identityOf(parameters))
    assert.strictEqual(new Set(identities).size, different.length)
  })

  it("identity is a plain text without a secret parameter", () => {
    assert.strictEqual(specification.identity, "")
    assert.isString(clientSecretPost({ scope: "a" }).identity)
  })

  it("a request shows no secret parameter when it or a copy is printed, although its identity contains it", () => {
    for (const request of [clientSecretPost, clientSecretBasic]) {
      const printed = request({ child_secret: Redacted.make("invented-canary") })
      const { identity } = { ...printed }
      assert(Redacted.isRedacted(identity))
      assert.include(Redacted.value(identity), "invented-canary", "control")
      deepStrictEqual(leaksIn(renderings([printed, { ...printed }]), ["invented-canary"]), [])
    }
  })

  describe("at an endpoint", () => {
    const acquire = (client: FakeClient.FakeClient, options: Partial<TokenEndpoint.Options>) =>
      FakeClient.acquire(client, { authUrl: "https://auth.shop.example/base/", ...options })

    test.each([
      [undefined, "https://auth.shop.example/base/v1/oauth/accesstoken"],
      ["", "https://auth.shop.example/base/"],
      ["/o/token/", "https://auth.shop.example/base/o/token/"],
      ["token", "https://auth.shop.example/base/token"],
      ["e", "https://auth.shop.example/base/e"],
      ["//token", "https://auth.shop.example/base/token"],
      ["@other.example/token", "https://auth.shop.example/base/@other.example/token"]
    ])("the path %j leads to %s", function*([path, url]) {
      const client = FakeClient.make(FakeClient.token)
      yield* acquire(client, { path, request: clientSecretPost() })
      deepStrictEqual(client.requests.map((request) => request.url), [url])
    })

    test("a parameter may have a name that contains the name of a credential", function*() {
      const parameters = {
        my_client_id: "1",
        client_id_hint: "2",
        my_client_secret: "3",
        client_assertion_type: "4"
      }
      const client = FakeClient.make(FakeClient.token)
      yield* acquire(client, { request: clientSecretBasic(parameters) })
      deepStrictEqual(client.bodies, [
        `grant_type=client_credentials&${new URLSearchParams(parameters)}`
      ])
    })

    const control = "must not have control characters in its parameters"
    const among = "must not have client credentials among its parameters"
    const noTexts = "must have a record of texts as its parameters"
    const noPath = "must be a path, without a query or a fragment"
    const tooShort = "must be greater than zero"

    test.each([
      ...[
        "/token?a=canary",
        "/token#canary",
        "https://canary.example/",
        " ",
        "/canary\n",
        "/canary\u00f6"
      ].map(
        (path) => [{ path }, "endpoint.path", noPath] as const
      ),
      ...["token", "/token", "/token/"].map((path) => {
        const reason = `must be the base URL, without ${path.replace(/^\/*/, "/")}`
        return [
          { authUrl: "https://auth.shop.example/token/", path },
          "authUrl",
          reason
        ] as const
      }),
      ...["/v1/oauth/accesstoken", "/base/v1/oauth/accesstoken/"].map((path) => {
        const reason = "must be the base URL, without /v1/oauth/accesstoken"
        return [{ authUrl: `https://auth.shop.example${path}` }, "authUrl", reason] as const
      }),
      [{ request: clientSecretPost({ client_id: "canary" }) }, "endpoint.request", among],
      [
        { request: clientSecretBasic({ client_secret: Redacted.make("canary") }) },
        "endpoint.request",
        among
      ],
      [
        { request: clientSecretPost({ client_assertion: "canary" }) },
        "endpoint.request",
        among
      ],
      // A call that was forgotten, which only a compiler would notice.
      [
        { request: clientSecretBasic as unknown as TokenRequest.TokenRequest },
        "endpoint.request",
        "must come from TokenRequest"
      ],
      // Callers without types.
      ...[5, true, { a: "canary" }, [["canary"]], Redacted.make(5)].map(
        (scope) =>
          [
            { request: clientSecretPost({ scope } as unknown as Parameters) },
            "endpoint.request",
            noTexts
          ] as const
      ),
      ...["scope=canary", ["canary"], null, new Map(), new URLSearchParams(), { scope: 0 }, {
        scope: null
      }].map(
        (parameters) =>
          [
            { request: clientSecretBasic(parameters as unknown as Parameters) },
            "endpoint.request",
            noTexts
          ] as const
      ),
      [{ request: clientSecretPost({ scope: "canary\n" }) }, "endpoint.request", control],
      [{ request: clientSecretPost({ scope: "canary\ud800" }) }, "endpoint.request", control],
      [
        {
          request: {
            ...clientSecretPost({ client_id: "canary" }),
            request: specification.request
          }
        },
        "endpoint.request",
        among
      ],
      [
        { request: TokenRequest.make({ ...specification, problem: "must have a scope" }) },
        "endpoint.request",
        "must have a scope"
      ],
      [
        { request: TokenRequest.make({ ...specification, maxLifetime: 0 }) },
        "endpoint.maxLifetime",
        tooShort
      ],
      ...[5, ""].map((problem) =>
        [
          { request: TokenRequest.make({ ...specification, problem: problem as string }) },
          "endpoint.request",
          "must have a text as its problem"
        ] as const
      ),
      ...[null, 5, {}].map((check) =>
        [
          {
            request: TokenRequest.make({
              ...specification,
              checkCredentials: check as unknown as () => Effect.Effect<void>
            })
          },
          "endpoint.request.checkCredentials",
          "must be a function"
        ] as const
      ),
      [
        {
          request: TokenRequest.make({
            ...specification,
            authentication: 5 as unknown as string
          })
        },
        "endpoint.request.authentication",
        "must be a text"
      ],
      ...[undefined, null, 5].map((identity) =>
        [
          {
            request: TokenRequest.make({
              ...specification,
              identity: identity as unknown as string
            })
          },
          "endpoint.request",
          "must come from TokenRequest"
        ] as const
      )
    ])(
      "a wrong request fails with a ConfigurationError when the layer is built: %j",
      function*([options, option, reason]) {
        const client = FakeClient.make(FakeClient.token)
        const error = yield* Effect.flip(acquire(client, options))
        deepStrictEqual(client.times, [])
        assert.instanceOf(error, AccessTokenError.ConfigurationError)
        deepStrictEqual([error.option, error.reason], [option, reason])
        assert.isFalse(shows(error, "canary"))
      }
    )

    const day = 24 * 3600

    test.each([
      [specification, undefined, day, 3600],
      [specification, "2 hours", day, 7200],
      [clientSecretPost(), undefined, day, day],
      [clientSecretBasic(), undefined, 2 * day, day],
      [clientSecretPost(), "10 minutes", day, 600],
      [clientSecretPost(), "1 second", undefined, 1],
      [clientSecretPost(), undefined, undefined, 3600],
      [clientSecretPost(), Infinity, Number.MAX_SAFE_INTEGER, 365 * day],
      [
        TokenRequest.make({ identity: "x", request: specification.request }),
        undefined,
        2 * day,
        day
      ],
      [TokenRequest.make({ ...specification, identity: "x" }), undefined, day, 3600],
      [TokenRequest.make({ ...specification, maxLifetime: "2 hours" }), undefined, day, 7200],
      [TokenRequest.make({ ...specification, maxLifetime: "2 hours" }), "3 hours", day, 10_800]
    ])(
      "the lifetime of a token is expires_in, up to maxLifetime: %#",
      function*([request, longest, sent, kept]) {
        const client = FakeClient.make(
          FakeClient.reply(200, tokenBody({ expires_in: sent }))
        )
        const token = yield* acquire(client, { request, maxLifetime: longest })
        assert(token instanceof AccessToken.AccessToken)
        assert.strictEqual(
          (token.expiresAt.epochMillis - token.acquiredAt.epochMillis) / 1000,
          kept
        )
      }
    )

    test.each([
      [
        "as URL parameters",
        HttpClientRequest.get("").pipe(HttpClientRequest.setUrlParam("key", "a b&c"))
      ],
      [
        "in a URL",
        HttpClientRequest.get(new URL("https://elsewhere.example/token?key=a%20b%26c"))
      ],
      [
        "in a text",
        HttpClientRequest.get("https://elsewhere.example/token?key=a%20b%26c#fragment?no")
      ],
      [
        "beside a fragment",
        HttpClientRequest.get("#fragment?no").pipe(
          HttpClientRequest.setUrlParam("key", "a b&c")
        )
      ]
    ])("the query of a request is sent: %s", function*([, request]) {
      const client = FakeClient.make(FakeClient.token)
      const ofShop = TokenRequest.make({
        identity: "shop",
        request: () => Effect.succeed(request)
      })
      yield* acquire(client, { path: "token", request: ofShop })
      deepStrictEqual(
        client.requests.map((request) =>
          String(Option.getOrThrow(HttpClientRequest.toUrl(request)))
        ),
        ["https://auth.shop.example/base/token?key=a+b%26c"]
      )
    })

    test("each attempt makes its request anew", function*() {
      const client = FakeClient.make(FakeClient.reply(503), FakeClient.token)
      let count = 0
      const request = TokenRequest.make({
        identity: "an assertion",
        request: () =>
          Effect.sync(() =>
            HttpClientRequest.setHeader(
              HttpClientRequest.post(""),
              "x-assertion",
              String(++count)
            )
          )
      })
      const fiber = yield* Effect.fork(acquire(client, { request }))
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)
      deepStrictEqual(client.requests.map(({ headers }) => headers["x-assertion"]), ["1", "2"])
    })

    test("a request of TokenRequest.make gets the URL, Accept and User-Agent of the endpoint", function*() {
      const client = FakeClient.make(FakeClient.token)
      const request = TokenRequest.make({
        identity: "elsewhere",
        request: () =>
          Effect.succeed(
            HttpClientRequest.post("https://elsewhere.example/token").pipe(
              HttpClientRequest.setHeader("accept", "*/*")
            )
          )
      })
      yield* acquire(client, { request })
      deepStrictEqual(
        client.requests.map(({ headers, url }) => [
          url,
          headers["accept"],
          headers["user-agent"]
        ]),
        [[
          "https://auth.shop.example/base/v1/oauth/accesstoken",
          "application/json",
          "store-api"
        ]]
      )
    })
  })
})
