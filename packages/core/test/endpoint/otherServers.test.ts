/** Habits of token endpoints that the specification does not mention. */
import { gzipSync } from "node:zlib"
import { HttpClientRequest } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  type AccessToken,
  AccessTokenError,
  type TokenEndpoint,
  TokenRequest
} from "@store-api/core"
import { shows } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Effect, Equal, Option, Redacted } from "effect"
import * as FakeClient from "../support/fakeClient.js"
import { clientSecret, tokenBody } from "../support/wire.js"

const post = TokenRequest.clientSecretPost()

const extraOf = (token: AccessToken.AccessToken) => Redacted.value(token.extra)

describe("compression", () => {
  const compressed = FakeClient.reply(200, gzipSync(tokenBody()), {
    "content-encoding": "gzip"
  })

  test("a token request asks for an uncompressed response", function*() {
    const client = FakeClient.make(FakeClient.token)
    yield* FakeClient.acquire(client)
    assert.strictEqual(client.requests[0]?.headers["accept-encoding"], "identity")
  })

  test("a request of one's own keeps its Accept-Encoding", function*() {
    const client = FakeClient.make(FakeClient.token)
    const request: TokenRequest.TokenRequest = {
      ...post,
      request: (credentials) =>
        Effect.map(
          post.request(credentials),
          HttpClientRequest.setHeader("accept-encoding", "gzip")
        )
    }
    yield* FakeClient.acquire(client, { request })
    assert.strictEqual(client.requests[0]?.headers["accept-encoding"], "gzip")
  })

  test("the error for a response that the client does not decode says that it is compressed", function*() {
    const error = yield* Effect.flip(FakeClient.acquire(FakeClient.make(compressed)))
    assert.match(error.message, /the body must be uncompressed/)
  })

  test("a client that decodes a response may keep its Content-Encoding", function*() {
    const decoded = FakeClient.reply(200, tokenBody(), { "content-encoding": "gzip" })
    const token = yield* FakeClient.acquire(FakeClient.make(decoded))
    assert.strictEqual(Redacted.value(token.value), "invented-token-0001")
  })
})

describe("the query of the token URL", () => {
  const urlOf = (options: Partial<TokenEndpoint.Options>) =>
    Effect.gen(function*() {
      const client = FakeClient.make(FakeClient.token)
      yield* FakeClient.acquire(client, { request: post, ...options })
      const [request] = client.requests
      assert.isDefined(request)
      return Option.getOrThrow(HttpClientRequest.toUrl(request)).href
    })

  it.effect.each<readonly [url: string, options: Partial<TokenEndpoint.Options>]>([
    ["https://login.example/token?p=sign-in", {
      authUrl: "https://login.example/token?p=sign-in",
      path: ""
    }],
    ["https://login.example/a/token?p=sign-in", {
      authUrl: "https://login.example/a/?p=sign-in",
      path: "/token"
    }],
    ["https://login.example/token?p=sign-in", {
      authUrl: "https://login.example",
      path: "token?p=sign-in"
    }],
    ["https://login.example/token?tenant=a&p=sign-in", {
      authUrl: "https://login.example?tenant=a",
      path: "/token?p=sign-in"
    }],
    ["https://login.example/token?to=https://a.example/b", {
      authUrl: "https://login.example",
      path: "/token?to=https://a.example/b"
    }],
    ["https://login.example//b.example/token", {
      authUrl: "https://login.example//b.example",
      path: "/token"
    }]
  ])(
    "is kept: %s",
    ([url, options]) => Effect.map(urlOf(options), (href) => assert.strictEqual(href, url))
  )

  test("precedes the query of a request of one's own", function*() {
    const request = TokenRequest.make({
      identity: "query",
      request: () => Effect.succeed(HttpClientRequest.get("?grant_type=client_credentials"))
    })
    const href = yield* urlOf({
      authUrl: "https://login.example?p=sign-in",
      path: "",
      request
    })
    assert.strictEqual(href, "https://login.example/?p=sign-in&grant_type=client_credentials")
  })

  it.effect.each<readonly [option: string, options: Partial<TokenEndpoint.Options>]>([
    ["authUrl", { authUrl: "https://auth.shop.example?p=sign-in" }],
    ["authUrl", { authUrl: "https://auth.shop.example/?" }],
    ["endpoint.path", { path: "/token?p=sign-in" }]
  ])(
    "is refused in %s for the request of the specification",
    ([option, options]) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(
          FakeClient.source(FakeClient.make(FakeClient.token), options)
        )
        deepStrictEqual([error._tag, error.option], ["ConfigurationError", option])
      })
  )

  test("is dropped from the text of an error that repeats it", function*() {
    const client = FakeClient.make(
      FakeClient.reply(
        400,
        `{"error":"invalid_request","error_description":"no invented-policy"}`
      )
    )
    const error = yield* Effect.flip(FakeClient.acquire(client, {
      authUrl: "https://login.example?p=invented-policy",
      request: post
    }))
    assert.notMatch(error.message, /invented-policy/)
  })
})

describe("further fields of the response", () => {
  const response = FakeClient.reply(
    200,
    tokenBody({ instance_url: "https://shop-7.example", limits: { calls: [10, null] } })
  )

  test("are in extra", function*() {
    const token = yield* FakeClient.acquire(FakeClient.make(response))
    deepStrictEqual({ ...extraOf(token) }, {
      instance_url: "https://shop-7.example",
      limits: { calls: [10, null] }
    })
  })

  test("are none for the response of the specification", function*() {
    const token = yield* FakeClient.acquire(FakeClient.make(FakeClient.token))
    deepStrictEqual({ ...extraOf(token) }, {})
  })

  test("are not compared for tokens that have none", function*() {
    const [first, second] = yield* Effect.all([
      FakeClient.acquire(FakeClient.make(FakeClient.token)),
      FakeClient.acquire(FakeClient.make(FakeClient.token))
    ])
    assert.isTrue(Equal.equals(first, second))
  })

  test("are in no rendering of the token", function*() {
    const token = yield* FakeClient.acquire(FakeClient.make(response))
    assert.isFalse(shows(token, "shop-7"))
    assert.isTrue(shows(extraOf(token), "shop-7"), "control")
  })
})

it.effect.each<readonly [scope: unknown, words: string]>([
  [["orders:read", "orders:write"], "orders:read orders:write"],
  [["orders:read"], "orders:read"],
  [[], ""],
  ["orders:read orders:write", "orders:read orders:write"]
])("the scope %j of a response is %j", ([scope, words]) =>
  Effect.gen(function*() {
    const client = FakeClient.make(FakeClient.reply(200, tokenBody({ scope })))
    const token = yield* FakeClient.acquire(client)
    assert.strictEqual(token.scope, words)
  }))

describe("errors under other names", () => {
  it.effect.each<
    readonly [status: number, body: unknown, code: string | undefined, text: string]
  >([
    [200, { errcode: 40013, errmsg: "invalid appid" }, "40013", "invalid appid"],
    [200, { code: 99991663, msg: "app secret invalid" }, "99991663", "app secret invalid"],
    [200, { status: 401, message: "wrong key" }, undefined, "wrong key"],
    [
      200,
      { status: { code: 7 }, status_message: "no such key", status_code: 7, code: 7 },
      "7",
      "no such key"
    ],
    [400, { errCode: "E-7", errMsg: "no such app" }, "E-7", "no such app"],
    [400, { err_code: "E-7", err_msg: "no such app" }, "E-7", "no such app"],
    [400, { error_code: "E-7", error_message: "no such app" }, "E-7", "no such app"],
    [400, { statusMessage: "no such app" }, undefined, "no such app"],
    [400, { errorMessage: "no such app" }, undefined, "no such app"]
  ])(
    "status %i, %j is a refusal with the server's text",
    ([status, body, code, text]) =>
      Effect.gen(function*() {
        const client = FakeClient.make(FakeClient.reply(status, JSON.stringify(body)))
        const error = yield* Effect.flip(FakeClient.acquire(client))
        assert.instanceOf(error, AccessTokenError.TokenRefusedError)
        deepStrictEqual([error.code, error.description], [code, text])
      })
  )

  it.effect.each([
    { code: 0, msg: "ok", tenant_token: "an invented token" },
    { message: "Welcome" },
    { type: "bearer", token: "an invented token" },
    { status: 200 }
  ])(
    "a 200 without an error is a response without a token: %j",
    (body) =>
      Effect.gen(function*() {
        const client = FakeClient.make(FakeClient.reply(200, JSON.stringify(body)))
        const error = yield* Effect.flip(FakeClient.acquire(client))
        assert.instanceOf(error, AccessTokenError.TokenResponseError)
      })
  )

  test("a text that repeats the secret is dropped", function*() {
    const client = FakeClient.make(
      FakeClient.reply(200, JSON.stringify({ errcode: 1, errmsg: `bad ${clientSecret}` }))
    )
    const error = yield* Effect.flip(FakeClient.acquire(client))
    assert.instanceOf(error, AccessTokenError.TokenRefusedError)
    assert.isUndefined(error.description)
  })
})
