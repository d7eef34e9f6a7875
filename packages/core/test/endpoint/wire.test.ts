import { FetchHttpClient, HttpClient, HttpClientRequest, type HttpClientResponse } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, ClientCredentials, TokenEndpoint, TokenSource } from "@store-api/core"
import { Effect, Either, FastCheck as FC, Fiber, Layer, Option, Redacted, Schedule } from "effect"
import * as CaptureServer from "../support/captureServer.js"
import { type ClientLayer, onEachClient } from "../support/clients.js"
import * as FakeClient from "../support/fakeClient.js"
import { renderings, shows } from "../support/renderings.js"
import { test } from "../support/test.js"
import { clientId, clientSecret, credentialsOf, printable, sendable, tokenBody } from "../support/wire.js"

const token = CaptureServer.answer(200, tokenBody())

/** One acquisition over a real HTTP client that stays open until the test ends. Only the library closes its sockets. */
const acquire = (
  client: ClientLayer,
  authUrl: string,
  options: Partial<TokenEndpoint.Options> = {}
) =>
  Effect.gen(function*() {
    const context = yield* Layer.build(client)
    const source = yield* TokenEndpoint.make({
      authUrl,
      credentials: Effect.succeed(credentialsOf(clientId, clientSecret)),
      ...options
    }).pipe(Effect.provide(context))
    return yield* source.acquire(Option.none())
  })

/** The client of a layer, changed as an application may change it. */
const changed = (client: ClientLayer, change: (client: HttpClient.HttpClient) => HttpClient.HttpClient): ClientLayer =>
  Layer.provide(Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, change)), client)

const isRequestError = (
  error: unknown,
  reason: AccessTokenError.TokenRequestError["reason"],
  attempts?: number
): void => {
  assert.instanceOf(error, AccessTokenError.TokenRequestError)
  assert.strictEqual(error.reason, reason)
  if (attempts !== undefined) assert.strictEqual(error.attempts, attempts)
}

describe("TokenEndpoint", () => {
  onEachClient((client, clientName) => {
    describe("the token request", () => {
      const secrets = [
        "plain",
        "a+b",
        "a/b",
        "a=b",
        "a%b",
        "a%2Bb",
        "a~b",
        "a b",
        " a ",
        "\"a\"",
        "a?b#c",
        printable.join("")
      ]

      test.live.each(secrets)("matches the specification byte for byte with the secret %s", function*(secret) {
        const server = yield* CaptureServer.make(token)
        yield* acquire(client, server.url, { credentials: Effect.succeed(credentialsOf("an-id", secret)) })
        const [request, ...more] = yield* server.requests
        assert.lengthOf(more, 0)
        assert.strictEqual(request?.requestLine, "POST /v1/oauth/accesstoken HTTP/1.1")
        deepStrictEqual(CaptureServer.valuesOf(request, "content-type"), [
          "application/x-www-form-urlencoded"
        ])
        const body = `grant_type=client_credentials&client_id=an-id&client_secret=${secret}`
        assert.strictEqual(request?.body.toString("latin1"), body)
        deepStrictEqual(CaptureServer.valuesOf(request, "content-length"), [String(body.length)])
        deepStrictEqual(CaptureServer.valuesOf(request, "authorization"), [])
      })

      test.live("matches the specification for any id and secret of printable ASCII without an ampersand", function*() {
        const server = yield* CaptureServer.make(token)
        const property = FC.asyncProperty(
          sendable,
          sendable,
          (id, secret) =>
            Effect.runPromise(
              Effect.gen(function*() {
                yield* acquire(client, server.url, { credentials: Effect.succeed(credentialsOf(id, secret)) })
                const request = (yield* server.requests).at(-1)
                assert.strictEqual(
                  request?.body.toString("latin1"),
                  `grant_type=client_credentials&client_id=${id}&client_secret=${secret}`
                )
                assert.strictEqual(request?.requestLine, "POST /v1/oauth/accesstoken HTTP/1.1")
                deepStrictEqual(
                  CaptureServer.valuesOf(request, "content-type"),
                  ["application/x-www-form-urlencoded"]
                )
              }).pipe(Effect.scoped)
            )
        )
        yield* Effect.promise(() => FC.assert(property, { numRuns: 50 }))
        assert.isAtLeast(yield* server.count, 50)
      })

      test.live.each(
        [
          ["", "/v1/oauth/accesstoken"],
          ["/", "/v1/oauth/accesstoken"],
          ["//", "/v1/oauth/accesstoken"],
          ["/base", "/base/v1/oauth/accesstoken"],
          ["/base/", "/base/v1/oauth/accesstoken"],
          ["/base//", "/base/v1/oauth/accesstoken"],
          ["/two/levels/", "/two/levels/v1/oauth/accesstoken"],
          ["/with%20blank", "/with%20blank/v1/oauth/accesstoken"]
        ] as const
      )("goes to {auth_url}/v1/oauth/accesstoken when auth_url ends with \"%s\"", function*([path, expected]) {
        const server = yield* CaptureServer.make(token)
        yield* acquire(client, server.url + path)
        yield* TokenEndpoint.make({
          authUrl: new URL(server.url + path),
          credentials: Effect.succeed(credentialsOf(clientId, clientSecret))
        }).pipe(Effect.flatMap((source) => source.acquire(Option.none())), Effect.provide(client))
        const requests = yield* server.requests
        deepStrictEqual(
          requests.map(({ requestLine }) => requestLine),
          [`POST ${expected} HTTP/1.1`, `POST ${expected} HTTP/1.1`]
        )
      })

      test.live("carries no trace headers, even if the client adds them to other requests", function*() {
        const server = yield* CaptureServer.make(token)
        yield* HttpClient.get(`${server.url}/control`).pipe(
          Effect.flatMap(({ text }) => text),
          Effect.withSpan("caller"),
          Effect.provide(client)
        )
        yield* Effect.withSpan(acquire(client, server.url), "caller")
        const [control, request] = yield* server.requests
        const names = (captured: CaptureServer.CapturedRequest | undefined) =>
          captured?.headers.map(([name]) => name) ?? []
        assert.includeMembers(names(control), ["traceparent", "b3"])
        assert.include(names(request), "content-type")
        assert.notIncludeMembers(names(request), ["traceparent"])
        assert.notIncludeMembers(names(request), ["b3"])
      })

      test.live("is not sent with credentials that cannot be sent unencoded", function*() {
        const server = yield* CaptureServer.make(token)
        for (const secret of ["a&b", "a\nb", "a\n", "a\u0000b", "a\u007fb", "\u00e9", "\ud800", ""]) {
          const error = yield* Effect.flip(
            acquire(client, server.url, {
              credentials: ClientCredentials.make({ clientId, clientSecret: Redacted.make(secret) })
            })
          )
          assert.instanceOf(error, AccessTokenError.CredentialsError)
        }
        assert.strictEqual(yield* server.count, 0)
        yield* acquire(client, server.url)
        assert.strictEqual(yield* server.count, 1, "control: other credentials are sent")
      })
    })

    describe("redirects", () => {
      test.live.each([301, 302, 303, 307, 308])(
        "status %d fails with Redirect, and no request reaches the other origin",
        function*(status) {
          const other = yield* CaptureServer.make(token)
          const server = yield* CaptureServer.make(
            CaptureServer.answer(status, "", { location: `${other.url}/v1/oauth/accesstoken` })
          )
          isRequestError(yield* Effect.flip(acquire(client, server.url)), "Redirect", 1)
          assert.strictEqual(yield* server.count, 1)
          assert.strictEqual(yield* other.count, 0)
          yield* Effect.promise(() =>
            fetch(server.url, { method: "POST", body: "x" }).then((response) => response.text())
          )
          assert.strictEqual(yield* other.count, 1, "control: a fetch that follows the redirect reaches it")
        }
      )

      test.live.each(
        [
          ["to the same path", { location: "/v1/oauth/accesstoken" }],
          ["without a location", {}],
          ["with an invalid location", { location: "http://" }]
        ] as const
      )("a redirect %s fails with Redirect", function*([, headers]) {
        const server = yield* CaptureServer.make(CaptureServer.answer(302, "", headers))
        isRequestError(yield* Effect.flip(acquire(client, server.url)), "Redirect", 1)
        assert.strictEqual(yield* server.count, 1)
      })

      test.live("a token from another origin is not accepted when the given client follows redirects", function*() {
        const other = yield* CaptureServer.make(token)
        const server = yield* CaptureServer.make(CaptureServer.answer(302, "", { location: other.url }))
        const following = Layer.effect(
          HttpClient.HttpClient,
          Effect.map(HttpClient.HttpClient, HttpClient.followRedirects(3))
        )
        const error = yield* Effect.flip(acquire(Layer.provide(following, client), server.url))
        isRequestError(error, "Redirect", 1)
        assert.strictEqual(yield* other.count, 1, "the credentials are sent there, as the security model says")
      })

      test.live("the endless body of a redirect is not read, and its socket is closed", function*() {
        const server = yield* CaptureServer.make(CaptureServer.endless(307))
        isRequestError(yield* Effect.flip(acquire(client, server.url)), "Redirect", 1)
        yield* server.allClosed
      })
    })

    describe("a response body", () => {
      const megabyte = "x".repeat(1024 * 1024)

      test.live.each(
        [
          ["of a megabyte", CaptureServer.answer(200, megabyte)],
          ["without an end", CaptureServer.endless(200)]
        ] as const
      )("%s fails with TooLarge, and its socket is closed", function*([, answer]) {
        const server = yield* CaptureServer.make(answer)
        isRequestError(yield* Effect.flip(acquire(client, server.url)), "TooLarge", 1)
        assert.strictEqual(yield* server.count, 1)
        yield* server.allClosed
      })

      test.live.each(
        [
          ["of a megabyte with status 400", 400, CaptureServer.answer(400, megabyte)],
          ["without an end with status 400", 400, CaptureServer.endless(400)],
          ["of a megabyte with status 500", 500, CaptureServer.answer(500, megabyte)],
          ["without an end with status 500", 500, CaptureServer.endless(500)]
        ] as const
      )("%s fails with TokenRefusedError, and its socket is closed", function*([, status, answer]) {
        const server = yield* CaptureServer.make(answer)
        const error = yield* Effect.flip(acquire(client, server.url))
        assert.instanceOf(error, AccessTokenError.TokenRefusedError)
        assert.strictEqual(error.status, status)
        assert.strictEqual(yield* server.count, status === 400 ? 1 : 6)
        yield* server.allClosed
      })

      test.live("of exactly 64 KiB is read, and one byte more fails with TooLarge", function*() {
        const body = tokenBody({ padding: "" })
        const full = tokenBody({ padding: "x".repeat(64 * 1024 - body.length) })
        const server = yield* CaptureServer.make(CaptureServer.answer(200, full))
        assert.strictEqual(full.length, 64 * 1024)
        const acquired = yield* acquire(client, server.url)
        assert.strictEqual(Redacted.value(acquired.value), "invented-token-0001")
        const more = yield* CaptureServer.make(CaptureServer.answer(200, `${full} `))
        isRequestError(yield* Effect.flip(acquire(client, more.url)), "TooLarge", 1)
      })

      test.live("control: the check for closed sockets sees an open one", function*() {
        const server = yield* CaptureServer.make(CaptureServer.silence)
        const fiber = yield* Effect.fork(acquire(client, server.url))
        yield* server.count.pipe(
          Effect.repeat({ until: (count) => count === 1, schedule: Schedule.spaced("5 millis") })
        )
        assert.strictEqual(yield* server.openSockets, 1)
        yield* Fiber.interruptFork(fiber)
        yield* server.allClosed
      })
    })

    describe("a connection that fails", () => {
      const head = CaptureServer.head(200, { "content-type": "application/json", "content-length": "1000" })
      const faults: ReadonlyArray<readonly [name: string, answer: CaptureServer.Answer, code?: string | undefined]> = [
        [
          "reset before a response",
          CaptureServer.rawThenReset(),
          clientName === "node:http" ? "ECONNRESET" : undefined
        ],
        ["reset in the header", CaptureServer.rawThenReset("HTTP/1.1 200 OK\r\ncontent-")],
        ["reset in the body", CaptureServer.rawThenReset(`${head}{"access_token":"invented`)],
        ["closed before a response", CaptureServer.raw("")],
        ["closed in the header", CaptureServer.raw("HTTP/1.1 200 OK\r\ncontent-")],
        ["closed in the body", CaptureServer.raw(`${head}{"access_token":"invented`)],
        ["not HTTP", CaptureServer.raw("SSH-2.0-Invented_1.0\r\n")],
        ["bad chunks", CaptureServer.raw(`${CaptureServer.head(200, { "transfer-encoding": "chunked" })}zz\r\nx\r\n`)],
        [
          "contradicting lengths",
          CaptureServer.raw("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxy")
        ]
      ]

      test.live("fails with Transport after 6 attempts, with the error code of the system if there is one", function*() {
        const failures = yield* Effect.forEach(faults, ([name, answer, code]) =>
          Effect.gen(function*() {
            const server = yield* CaptureServer.make(answer)
            const error = yield* Effect.flip(acquire(client, server.url))
            return { name, error, code, count: yield* server.count, closed: yield* Effect.either(server.allClosed) }
          }), { concurrency: "unbounded" })
        for (const { closed, code, count, error, name } of failures) {
          assert.instanceOf(error, AccessTokenError.TokenRequestError, name)
          deepStrictEqual([name, error.reason, error.attempts, count], [name, "Transport", 6, 6])
          if (code !== undefined) deepStrictEqual(error.code, Option.some(code), name)
          assert.isTrue(Option.isNone(error.code) || /^[A-Z][A-Z0-9_]+$/.test(error.code.value), name)
          assert.isTrue(Either.isRight(closed), name)
          assert.isFalse(shows(error, clientSecret), name)
        }
      })

      test.live.each(faults)("is retried: %s once, then a token", function*([, answer]) {
        const server = yield* CaptureServer.make(answer, token)
        const acquired = yield* acquire(client, server.url)
        assert.strictEqual(Redacted.value(acquired.value), "invented-token-0001")
        assert.strictEqual(yield* server.count, 2)
      })

      test.live("fails with Transport and ECONNREFUSED when no server listens on the port", function*() {
        const error = yield* Effect.flip(acquire(client, CaptureServer.nothing))
        isRequestError(error, "Transport", 6)
        deepStrictEqual("code" in error ? error.code : undefined, Option.some("ECONNREFUSED"))
        assert.include(error.message, "ECONNREFUSED")
      })

      test.live.each(
        [
          ["sends nothing", CaptureServer.silence],
          ["stops in the header", CaptureServer.rawThenSilence("HTTP/1.1 200 OK\r\ncontent-")],
          ["stops in the body", CaptureServer.rawThenSilence(`${head}{"access_token":`)]
        ] as const
      )("fails with Timeout within the deadline when the server %s, and its sockets are closed", function*([, answer]) {
        const server = yield* CaptureServer.make(answer)
        const began = performance.now()
        const error = yield* Effect.flip(
          acquire(client, server.url, { attemptTimeout: "400 millis", deadline: "1 seconds" })
        )
        const took = performance.now() - began
        isRequestError(error, "Timeout")
        assert.isTrue(took >= 390 && took < 5000, `${took} ms`)
        yield* server.allClosed
      })
    })

    describe("an unusual body", () => {
      const length = (bytes: number) => ({ "content-type": "application/json", "content-length": String(bytes) })
      const chunked = { "content-type": "application/json", "transfer-encoding": "chunked", connection: "close" }
      const body = tokenBody()

      test.live.each(
        [
          ["with a byte order mark", CaptureServer.answer(200, `\ufeff${body}`)],
          ["with white space around it", CaptureServer.answer(200, ` \n${body}\r\n`)],
          [
            "in two chunks",
            CaptureServer.raw(
              CaptureServer.head(200, chunked) +
                [body.slice(0, 9), body.slice(9)].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join("") +
                "0\r\n\r\n"
            )
          ],
          ["without a content-length", CaptureServer.raw(CaptureServer.head(200, { connection: "close" }) + body)],
          [
            "with another content type",
            CaptureServer.answer(200, body, { "content-type": "text/plain; charset=utf-16" })
          ]
        ] as const
      )("%s is decoded", function*([, answer]) {
        const server = yield* CaptureServer.make(answer)
        const acquired = yield* acquire(client, server.url)
        assert.strictEqual(Redacted.value(acquired.value), "invented-token-0001")
      })

      test.live.each(
        [
          ["of no bytes", CaptureServer.answer(200, "")],
          ["of a status without a body", CaptureServer.raw(CaptureServer.head(204, { connection: "close" }))],
          ["of no chunks", CaptureServer.raw(`${CaptureServer.head(200, chunked)}0\r\n\r\n`)],
          [
            "cut short without a content-length",
            CaptureServer.raw(CaptureServer.head(200, { connection: "close" }) + body.slice(0, 40))
          ],
          [
            "longer than its content-length",
            CaptureServer.raw(CaptureServer.head(200, { ...length(40), connection: "close" }) + body)
          ]
        ] as const
      )("%s fails with TokenResponseError after one request", function*([, answer]) {
        const server = yield* CaptureServer.make(answer)
        const error = yield* Effect.flip(acquire(client, server.url))
        assert.strictEqual(error._tag, "TokenResponseError")
        assert.strictEqual(yield* server.count, 1)
      })

      test.live.each(
        [
          ["shorter than its content-length", CaptureServer.raw(CaptureServer.head(401, length(1000)) + "{")],
          ["reset", CaptureServer.rawThenReset(CaptureServer.head(401, length(1000)) + "{")],
          ["that stalls", CaptureServer.rawThenSilence(CaptureServer.head(401, length(1000)) + "{")]
        ] as const
      )(
        "%s with status 401 fails with InvalidClient after one request, and its socket is closed",
        function*([, answer]) {
          const server = yield* CaptureServer.make(answer)
          const error = yield* Effect.flip(acquire(client, server.url))
          assert.instanceOf(error, AccessTokenError.TokenRefusedError)
          deepStrictEqual([error.reason, error.status], ["InvalidClient", 401])
          assert.strictEqual(yield* server.count, 1)
          yield* server.allClosed
        }
      )
    })

    describe("a client that the application has changed", () => {
      test.live("with filterStatusOk: the error response of the endpoint is still read", function*() {
        const filtering = changed(client, HttpClient.filterStatusOk)
        const server = yield* CaptureServer.make(
          CaptureServer.answer(401, `{"error":"invalid_client","error_description":"Unknown client"}`),
          token
        )
        const error = yield* Effect.flip(acquire(filtering, server.url))
        assert.instanceOf(error, AccessTokenError.TokenRefusedError)
        deepStrictEqual(
          [error.status, error.reason, error.code, error.description],
          [401, "InvalidClient", Option.some("invalid_client"), Option.some("Unknown client")]
        )
        const acquired = yield* acquire(filtering, server.url)
        assert.strictEqual(Redacted.value(acquired.value), "invented-token-0001")
        const redirecting = yield* CaptureServer.make(CaptureServer.answer(302, "", { location: "/" }))
        isRequestError(yield* Effect.flip(acquire(filtering, redirecting.url)), "Redirect", 1)
      })

      test.live("with an additional header: it is sent, and the rest of the request is unchanged", function*() {
        const server = yield* CaptureServer.make(token)
        yield* acquire(
          changed(client, HttpClient.mapRequest(HttpClientRequest.setHeader("user-agent", "invented-shop/1"))),
          server.url
        )
        const [request] = yield* server.requests
        deepStrictEqual(CaptureServer.valuesOf(request, "user-agent"), ["invented-shop/1"])
        deepStrictEqual(CaptureServer.valuesOf(request, "content-type"), ["application/x-www-form-urlencoded"])
        assert.strictEqual(
          request?.body.toString(),
          `grant_type=client_credentials&client_id=${clientId}&client_secret=${clientSecret}`
        )
      })

      test.live("with retryTransient: its retries succeed within one attempt", function*() {
        const retrying = changed(client, HttpClient.retryTransient({ times: 3 }))
        const server = yield* CaptureServer.make(
          CaptureServer.answer(503, ""),
          CaptureServer.rawThenReset(),
          token
        )
        const acquired = yield* acquire(retrying, server.url)
        assert.strictEqual(Redacted.value(acquired.value), "invented-token-0001")
        assert.strictEqual(yield* server.count, 3)
      })

      test.live("with all three at once", function*() {
        const all = changed(client, (base) =>
          base.pipe(
            HttpClient.filterStatusOk,
            HttpClient.mapRequest(HttpClientRequest.setHeader("x-shop", "invented")),
            HttpClient.retryTransient({ times: 3 })
          ))
        const server = yield* CaptureServer.make(
          CaptureServer.answer(503, ""),
          CaptureServer.answer(403, `{"error":"access_denied"}`)
        )
        const error = yield* Effect.flip(acquire(all, server.url))
        assert.instanceOf(error, AccessTokenError.TokenRefusedError)
        deepStrictEqual([error.status, error.code], [403, Option.some("access_denied")])
        const requests = yield* server.requests
        deepStrictEqual(requests.flatMap((request) => CaptureServer.valuesOf(request, "x-shop")), [
          "invented",
          "invented"
        ])
      })
    })

    test.live("no error contains the secret, or anything of the response beyond its code and description", function*() {
      const echo = (status: number): CaptureServer.Answer => (socket) =>
        CaptureServer.answer(status, `<p>${clientSecret} server-canary</p>`, { "content-type": "text/html" })(socket)
      const control = yield* CaptureServer.make(echo(400))
      const leaking = yield* HttpClient.post(control.url).pipe(
        Effect.flatMap((response: HttpClientResponse.HttpClientResponse) => response.text),
        Effect.provide(client)
      )
      assert.isTrue(shows(leaking, clientSecret), "control: the search finds the secret")
      for (const status of [200, 400, 401, 403]) {
        const server = yield* CaptureServer.make(echo(status))
        const error = yield* Effect.flip(acquire(client, server.url))
        const all = renderings(error)
        assert.notInclude(all, clientSecret)
        assert.notInclude(all, "server-canary")
        assert.notInclude(all, [...Buffer.from(clientSecret)].join(", "), "as a list of bytes")
      }
    })
  })

  describe("fetch", () => {
    /** A fetch that records its options, sends nothing and resolves to a token. */
    const recording = () => {
      const inits: Array<RequestInit | undefined> = []
      const fetch: typeof globalThis.fetch = (_url, init) => {
        inits.push(init)
        return Promise.resolve(new Response(tokenBody()))
      }
      return { inits, layer: Layer.provide(FetchHttpClient.layer, Layer.succeed(FetchHttpClient.Fetch, fetch)) }
    }

    test("keeps the RequestInit of the caller, except for redirect", function*() {
      const { inits, layer } = recording()
      yield* acquire(layer, "https://auth.shop.example").pipe(
        Effect.provideService(FetchHttpClient.RequestInit, {
          redirect: "follow",
          credentials: "omit",
          cache: "no-store",
          keepalive: true
        })
      )
      const [init] = inits
      deepStrictEqual(
        [init?.redirect, init?.credentials, init?.cache, init?.keepalive, init?.method],
        ["manual", "omit", "no-store", true, "POST"]
      )
    })

    test("keeps the RequestInit that was provided when the layer was built", function*() {
      const { inits, layer } = recording()
      const source = TokenEndpoint.layer({
        authUrl: "https://auth.shop.example",
        credentials: Effect.succeed(credentialsOf(clientId, clientSecret))
      }).pipe(
        Layer.provide(layer),
        Layer.provide(Layer.succeed(FetchHttpClient.RequestInit, { credentials: "omit", redirect: "follow" }))
      )
      yield* Effect.flatMap(TokenSource.TokenSource, ({ acquire }) => acquire(Option.none())).pipe(
        Effect.provide(source)
      )
      deepStrictEqual(inits.map((init) => [init?.redirect, init?.credentials]), [["manual", "omit"]])
    })

    test("overrides a RequestInit of the fetch client alone, so that it cannot follow redirects", function*() {
      const { inits, layer } = recording()
      const init = Layer.succeed(FetchHttpClient.RequestInit, { credentials: "omit", redirect: "follow" })
      yield* acquire(Layer.provide(layer, init), "https://auth.shop.example")
      deepStrictEqual(inits.map((init) => init?.redirect), ["manual"])
    })
  })

  describe("authUrl", () => {
    const build = (authUrl: string | URL, allowInsecure?: boolean) =>
      TokenEndpoint.make({ authUrl, allowInsecure, credentials: Effect.succeed(credentialsOf(clientId, clientSecret)) })
        .pipe(
          Effect.provide(FakeClient.make(FakeClient.token).layer)
        )

    test("allowInsecure allows http and relaxes no other rule", function*() {
      yield* build("http://auth.shop.example", true)
      for (
        const authUrl of [
          "ftp://auth.shop.example",
          "http://auth.shop.example/?a",
          "http://auth.shop.example/#a",
          "http://user@auth.shop.example",
          ""
        ]
      ) {
        assert.strictEqual((yield* Effect.flip(build(authUrl, true)))._tag, "ConfigurationError", authUrl)
      }
      assert.strictEqual((yield* Effect.flip(build("http://auth.shop.example", false)))._tag, "ConfigurationError")
    })

    test("is checked when the layer is built, before any request", function*() {
      const client = FakeClient.make(FakeClient.token)
      const layer = TokenEndpoint.layer({
        authUrl: "http://auth.shop.example",
        credentials: Effect.succeed(credentialsOf(clientId, clientSecret))
      })
      const error = yield* Layer.build(layer).pipe(Effect.scoped, Effect.provide(client.layer), Effect.flip)
      assert.instanceOf(error, AccessTokenError.ConfigurationError)
      deepStrictEqual(client.times, [])
    })
  })
})
