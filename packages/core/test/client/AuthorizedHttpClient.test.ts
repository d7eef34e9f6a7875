import { FetchHttpClient, Headers, HttpBody, HttpClient, HttpClientError, HttpClientRequest } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { Array as Arr, Effect, Exit, FiberRef, Layer, Option, Redacted, Scope, Stream } from "effect"
import { failuresOf, httpReason } from "../support/effectLine.js"
import { rejecting, stubApi } from "../support/fakeClient.js"
import { answering, token } from "../support/scriptedSource.js"
import { test } from "../support/test.js"

const apiUrl = "https://api.store.example/v1"

/** An authorized client over a stub API and a source that returns `token-1`, `token-2`, … */
const make = (
  options: Partial<AuthorizedHttpClient.Options> = {},
  answer?: Parameters<typeof stubApi>[0],
  decorate: (client: HttpClient.HttpClient) => HttpClient.HttpClient = (client) => client,
  acquire: Parameters<typeof answering>[0] = (n) => token(`token-${n}`)
) =>
  Effect.gen(function*() {
    const api = yield* stubApi(answer)
    const source = yield* answering(acquire)
    const provider = yield* Effect.provide(AccessTokenProvider.make(), source.layer)
    const rejected: Array<string> = []
    const client = yield* AuthorizedHttpClient.withAccessToken(decorate(api.client), { apiUrl, ...options }).pipe(
      Effect.provideService(AccessTokenProvider.AccessTokenProvider, {
        ...provider,
        invalidate: (token) => {
          rejected.push(Redacted.value(token.value))
          return provider.invalidate(token)
        }
      })
    )
    return { client, sent: api.sent, tokenRequests: source.calls, rejected }
  })

const authorizations = (sent: ReadonlyArray<HttpClientRequest.HttpClientRequest>) =>
  sent.map(({ headers }) => headers["authorization"])

describe("AuthorizedHttpClient", () => {
  describe("attaching the token", () => {
    test("attaches the token to every request, with the scheme Bearer", function*() {
      const { client, sent, tokenRequests } = yield* make()
      yield* client.get("/orders")
      yield* client.post("/orders", { body: HttpBody.unsafeJson({ a: 1 }) })
      yield* client.execute(HttpClientRequest.del("/orders/1"))
      deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Bearer token-1", "Bearer token-1"])
      deepStrictEqual((yield* sent).map(({ method, url }) => `${method} ${url}`), [
        "GET https://api.store.example/v1/orders",
        "POST https://api.store.example/v1/orders",
        "DELETE https://api.store.example/v1/orders/1"
      ])
      assert.strictEqual(yield* tokenRequests, 1)
    })

    test("joins relative URLs to apiUrl with exactly one slash", function*() {
      for (const base of [apiUrl, `${apiUrl}/`]) {
        const { client, sent } = yield* make({ apiUrl: base })
        yield* client.get("/orders")
        yield* client.get("orders")
        yield* client.get("orders/7")
        deepStrictEqual((yield* sent).map(({ url }) => url), [
          "https://api.store.example/v1/orders",
          "https://api.store.example/v1/orders",
          "https://api.store.example/v1/orders/7"
        ])
      }
    })

    test("joins a relative URL that is empty, a query or a fragment, or contains a colon", function*() {
      const { client, sent } = yield* make()
      const urls = ["", "?page=2", "#top", "/orders?at=10:30", "orders/a:b", "1a:b"]
      for (const url of urls) yield* client.execute(HttpClientRequest.setUrl(HttpClientRequest.get("/"), url))
      deepStrictEqual((yield* sent).map(({ url }) => url.slice(apiUrl.length)), [
        "",
        "?page=2",
        "#top",
        "/orders?at=10:30",
        "/orders/a:b",
        "/1a:b"
      ])
    })

    test("attaches the token under another name and format, and redacts that header in logs and spans", function*() {
      const redacted: Array<ReadonlyArray<string | RegExp>> = []
      const { client, sent } = yield* make(
        { header: { name: "X-Store-Token", format: (value) => `Token ${value}` } },
        undefined,
        HttpClient.tap(() =>
          Effect.map(FiberRef.get(Headers.currentRedactedNames), (names) => {
            redacted.push(names)
          })
        )
      )
      yield* client.get("/orders")
      const [request] = yield* sent
      assert.strictEqual(request?.headers["x-store-token"], "Token token-1")
      assert.isUndefined(request?.headers["authorization"])
      assert.isTrue(redacted[0]?.includes("x-store-token"))
      assert.isFalse((yield* FiberRef.get(Headers.currentRedactedNames)).includes("x-store-token"))
    })

    test("stops fetch from following redirects under another name, because fetch removes only Authorization", function*() {
      const seen: Array<RequestInit["redirect"]> = []
      const recording = HttpClient.tapRequest(() =>
        Effect.map(Effect.serviceOption(FetchHttpClient.RequestInit), (init) => {
          seen.push(Option.getOrUndefined(init)?.redirect)
        })
      )
      for (const options of [{}, { header: { name: "Authorization" } }, { header: { name: "x-store-token" } }]) {
        const { client } = yield* make(options, undefined, recording)
        yield* client.get("/orders")
      }
      deepStrictEqual(seen, [undefined, undefined, "manual"])
    })

    test("formats each token once, and sends even a value of one character", function*() {
      const formatted: Array<string> = []
      const format = (accessToken: string) => {
        formatted.push(accessToken)
        return "x"
      }
      const { client, sent } = yield* make({ header: { name: "x-store-token", format } })
      yield* client.get("/orders")
      yield* client.get("/orders")
      deepStrictEqual((yield* sent).map(({ headers }) => headers["x-store-token"]), ["x", "x"])
      deepStrictEqual(formatted, ["token-1"])
    })

    test("does not replace a header that the request already has, and does not repeat that request", function*() {
      const { client, sent, tokenRequests } = yield* make({}, () => ({ status: 401 }))
      const headers = { authorization: "Basic an-invented-value" }
      const response = yield* client.get("/orders", { headers })
      assert.strictEqual(response.status, 401)
      assert.strictEqual(response.request.headers["authorization"], "Basic an-invented-value")
      deepStrictEqual(authorizations(yield* sent), ["Basic an-invented-value"])
      assert.strictEqual(yield* tokenRequests, 0)
    })

    test("keeps a header that the request already had in the errors of that request", function*() {
      const failing = (client: HttpClient.HttpClient) =>
        HttpClient.transformResponse(client, () => Effect.fail(transport))
      const transport = new HttpClientError.RequestError({
        request: HttpClientRequest.get("/", { headers: { authorization: "Basic an-invented-value" } }),
        reason: "Transport"
      })
      for (const decorate of [(client: HttpClient.HttpClient) => HttpClient.filterStatusOk(client), failing]) {
        const { client } = yield* make({}, () => ({ status: 401 }), decorate)
        const headers = { authorization: "Basic an-invented-value" }
        const error = yield* Effect.flip(client.get("/orders", { headers }))
        if (!HttpClientError.isHttpClientError(error)) return assert.fail(`not an HttpClientError: ${error._tag}`)
        assert.strictEqual(error.request.headers["authorization"], "Basic an-invented-value")
      }
    })

    test("passes on errors of the given client that are not an HttpClientError", function*() {
      const { client: base } = yield* stubApi()
      for (const failure of [undefined, "an invented error", new Error("an invented error")]) {
        const client = yield* AuthorizedHttpClient.withAccessToken(
          HttpClient.transformResponse(base, () => Effect.fail(failure)),
          { apiUrl }
        ).pipe(Effect.provide(AccessTokenProvider.layerTest(token("token-1"))))
        assert.strictEqual(yield* Effect.flip(client.get("/orders")), failure)
      }
    })

    test("names header.format when it throws or returns an invalid header value", function*() {
      const formats: ReadonlyArray<(accessToken: string) => string> = [
        (accessToken) => {
          throw new Error(accessToken)
        },
        () => "",
        (accessToken) => `${accessToken}\r\nx-injected: 1`,
        () => JSON.parse("null") as string
      ]
      for (const format of formats) {
        const { client, sent } = yield* make({ header: { name: "x-store-token", format } })
        const error = yield* Effect.flip(client.get("/orders"))
        assert.instanceOf(error, AccessTokenError.TokenResponseError)
        deepStrictEqual(error.problems.map(({ path }) => path), ["header.format"])
        assert.strictEqual((yield* sent).length, 0)
      }
    })

    test("works over a client that prepends its own URL", function*() {
      for (
        const [prefix, url] of [["https://api.store.example/v2", "https://api.store.example/v2/orders"], [
          "/v2",
          "https://api.store.example/v1/v2/orders"
        ]] as const
      ) {
        const { client, sent } = yield* make(
          {},
          undefined,
          HttpClient.mapRequest(HttpClientRequest.prependUrl(prefix))
        )
        yield* client.get("/orders")
        deepStrictEqual((yield* sent).map(({ url }) => url), [url])
      }
    })

    test("fails for a token that is not a valid header value, without showing it", function*() {
      const api = yield* stubApi()
      const client = yield* AuthorizedHttpClient.withAccessToken(api.client, { apiUrl }).pipe(
        Effect.provide(AccessTokenProvider.layerTest(token("broken\r\nx-injected: 1")))
      )
      const error = yield* Effect.flip(client.get("/orders"))
      assert.instanceOf(error, AccessTokenError.TokenResponseError)
      deepStrictEqual(error.problems, [
        { path: "access_token", expected: "printable ASCII, to be sent in a header" }
      ])
      assert.notInclude(error.message, "broken")
      assert.strictEqual((yield* api.sent).length, 0)
    })
  })

  describe("trusted origins", () => {
    test("fails with UntrustedOriginError for another origin, port or scheme, without any request", function*() {
      const { client, sent, tokenRequests } = yield* make()
      for (
        const url of [
          "https://evil.example/orders",
          "http://api.store.example/v1/orders",
          "https://api.store.example:8443/v1/orders",
          "https://api.store.example.evil.example/",
          "https://api.store.example@evil.example/",
          "https:\\\\evil.example/",
          "https://[::1]/",
          "https://evil.example/?https://api.store.example/",
          "https:api.store.example/v1/orders",
          "blob:https://api.store.example/1",
          "ftp://api.store.example/",
          "s3://api.store.example/"
        ]
      ) {
        const error = yield* Effect.flip(client.get(url))
        assert.instanceOf(error, AccessTokenError.UntrustedOriginError, url)
        deepStrictEqual(error.trusted, ["https://api.store.example"])
      }
      // Also with a header of the caller: it may be the header of an earlier request, copied with its token.
      const withHeader = yield* Effect.flip(
        client.get("https://evil.example/", { headers: { authorization: "Bearer own" } })
      )
      assert.instanceOf(withHeader, AccessTokenError.UntrustedOriginError)
      assert.strictEqual((yield* sent).length, 0)
      assert.strictEqual(yield* tokenRequests, 0)
    })

    test("UntrustedOriginError names the origin, or the kind of URL that has none", function*() {
      const { client } = yield* make()
      for (
        const [url, origin] of [
          ["https://evil.example/orders?token=invented", "https://evil.example"],
          ["javascript:alert(1)", "a javascript: URL"],
          ["https://a b.example/", "an invalid URL"]
        ] as const
      ) {
        const error = yield* Effect.flip(client.get(url))
        assert.strictEqual(error._tag === "UntrustedOriginError" && error.origin, origin)
      }
    })

    test("allowInsecure allows http for apiUrl and trustedOrigins", function*() {
      const { client, sent } = yield* make({
        apiUrl: "http://api.store.example/v1",
        trustedOrigins: ["http://files.store.example"],
        allowInsecure: true
      })
      yield* client.get("/orders")
      yield* client.get("HTTP://API.store.example/v1/orders")
      yield* client.get("http://files.store.example/a")
      deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Bearer token-1", "Bearer token-1"])
    })

    test("trusts the same origin in another notation", function*() {
      const { client, sent } = yield* make()
      yield* client.get("HTTPS://API.store.example:443/v1/orders")
      yield* client.get("https://api.store.example/elsewhere")
      deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Bearer token-1"])
    })

    test("trusts an IPv6 host and an internationalized name in every notation", function*() {
      for (
        const [api, same, other] of [
          ["https://[2001:db8::1]:8443/v1", "https://[2001:DB8:0:0::1]:8443/x", "https://[2001:db8::2]:8443/x"],
          ["https://b\u00fccher.example/v1", "https://xn--bcher-kva.example/x", "https://bucher.example/x"],
          [
            "https://xn--bcher-kva.example",
            "https://B\u00dcCHER.example/x",
            "https://b\u00fccher.example.evil.example/x"
          ]
        ] as const
      ) {
        const { client, sent } = yield* make({ apiUrl: api })
        yield* client.get(same)
        yield* client.get("/orders")
        assert.instanceOf(yield* Effect.flip(client.get(other)), AccessTokenError.UntrustedOriginError)
        deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Bearer token-1"])
      }
    })

    test("trustedOrigins adds further origins", function*() {
      const { client, sent } = yield* make({ trustedOrigins: ["https://files.store.example"] })
      yield* client.get("https://files.store.example/a")
      deepStrictEqual(authorizations(yield* sent), ["Bearer token-1"])
      assert.instanceOf(
        yield* Effect.flip(client.get("https://other.store.example/a")),
        AccessTokenError.UntrustedOriginError
      )
    })

    test("checks the origin after the mapRequest of the given client", function*() {
      const { client, sent } = yield* make(
        {},
        undefined,
        HttpClient.mapRequest(HttpClientRequest.setUrl("https://evil.example/"))
      )
      const error = yield* Effect.flip(client.get("/orders"))
      assert.instanceOf(error, AccessTokenError.UntrustedOriginError)
      assert.strictEqual((yield* sent).length, 0)
    })

    test("followRedirects over the client cannot send the token to another origin", function*() {
      const { client, sent } = yield* make({}, (_, n) =>
        n === 1
          ? { status: 302, headers: { location: "/v1/moved" } }
          : { status: 302, headers: { location: "https://evil.example/" } })
      const error = yield* Effect.flip(HttpClient.followRedirects(client).get("/orders"))
      assert.instanceOf(error, AccessTokenError.UntrustedOriginError)
      deepStrictEqual((yield* sent).map(({ url }) => url), [
        "https://api.store.example/v1/orders",
        "https://api.store.example/v1/moved"
      ])
    })

    test("names an invalid option when the client is created", function*() {
      const { client } = yield* stubApi()
      const provider = AccessTokenProvider.layerTest(token("unused"))
      const failing = (options: AuthorizedHttpClient.Options) =>
        Effect.flip(AuthorizedHttpClient.withAccessToken(client, options)).pipe(Effect.provide(provider))
      for (
        const [option, options, reason] of [
          ["apiUrl", { apiUrl: "http://api.store.example" }, "must be an https URL, or an http URL of this machine"],
          ["apiUrl", { apiUrl: "https://user:invented@api.store.example" }, "must not hold a user name or password"],
          ["apiUrl", { apiUrl: "https://api.store.example?x=1" }, "must not have a query"],
          ["trustedOrigins", { apiUrl, trustedOrigins: ["http://files.store.example"] }, "must be an https URL"],
          [
            "trustedOrigins",
            { apiUrl, trustedOrigins: ["https://files.store.example/path"] },
            "must hold origins, without a path"
          ],
          ["header.name", { apiUrl, header: { name: "x token" } }, "is not the name of an HTTP header"]
        ] as const
      ) {
        const error = yield* failing(options)
        assert.strictEqual(error.option, option)
        assert.include(error.reason, reason)
        assert.notInclude(error.message, "store.example")
      }
    })
  })

  describe("recovery from a 401", () => {
    test("repeats the request with another token, and returns the second response", function*() {
      const { client, sent, tokenRequests } = yield* make({}, rejecting("token-1"))
      const response = yield* client.get("/orders")
      assert.strictEqual(response.status, 200)
      deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Bearer token-2"])
      assert.strictEqual(yield* tokenRequests, 2)
    })

    test("returns a second 401 after two requests and one new token", function*() {
      const { client, sent, tokenRequests } = yield* make({}, () => ({ status: 401 }))
      assert.strictEqual((yield* client.get("/orders")).status, 401)
      assert.strictEqual((yield* sent).length, 2)
      assert.strictEqual(yield* tokenRequests, 2)
    })

    test("rejects the second token too after a second 401, even if the given client fails on it", function*() {
      const decorations: ReadonlyArray<(client: HttpClient.HttpClient) => HttpClient.HttpClient> = [
        (client) => client,
        HttpClient.filterStatusOk
      ]
      for (const decorate of decorations) {
        const { client, rejected, sent } = yield* make({}, () => ({ status: 401 }), decorate)
        yield* Effect.exit(client.get("/orders"))
        deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Bearer token-2"])
        deepStrictEqual(rejected, ["token-1", "token-2"])
      }
    })

    test("rejects the second token only after a 401 that another token can resolve", function*() {
      const challenge = { "www-authenticate": "Bearer error=\"insufficient_scope\"" }
      for (const second of [{ status: 200 }, { status: 403 }, { status: 401, headers: challenge }]) {
        const { client, rejected } = yield* make({}, (_, n) => n === 1 ? { status: 401 } : second)
        assert.strictEqual((yield* client.get("/orders")).status, second.status)
        deepStrictEqual(rejected, ["token-1"])
      }
    })

    test("does not recover a request with its own header, even if an earlier attempt had the token", function*() {
      /** The first attempt gets a 503. The second attempt has its own header and gets a 401. */
      const answer = (_: unknown, n: number) => ({ status: n === 1 ? 503 : 401 })
      const ownHeaderAtSecondAttempt = () => {
        let attempts = 0
        return HttpClient.mapRequest((request) =>
          ++attempts === 1
            ? request
            : HttpClientRequest.setHeader(request, "authorization", "Basic an-invented-value")
        )
      }
      const under = yield* make(
        {},
        answer,
        (client) => HttpClient.retryTransient(ownHeaderAtSecondAttempt()(client), { times: 1 })
      )
      const over = yield* make({}, answer)
      const retried = HttpClient.retryTransient(ownHeaderAtSecondAttempt()(over.client), { times: 1 })
      for (const [client, { rejected, sent }] of [[under.client, under], [retried, over]] as const) {
        assert.strictEqual((yield* client.get("/orders")).status, 401)
        deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Basic an-invented-value"])
        deepStrictEqual(rejected, [])
      }
    })

    test("repeats the request once, even if the endpoint returns the same token again", function*() {
      for (const [second, rejections] of [[200, 1], [401, 2]] as const) {
        const { client, rejected, sent } = yield* make(
          {},
          (_, n) => ({ status: n === 1 ? 401 : second }),
          undefined,
          () => token("same")
        )
        assert.strictEqual((yield* client.get("/orders")).status, second)
        deepStrictEqual(authorizations(yield* sent), ["Bearer same", "Bearer same"])
        deepStrictEqual(rejected, Arr.replicate("same", rejections))
      }
    })

    test("acquires one new token for a hundred simultaneous 401s", function*() {
      const { client, tokenRequests } = yield* make({}, rejecting("token-1"))
      const responses = yield* Effect.all(Array.from({ length: 100 }, () => client.get("/orders")), {
        concurrency: "unbounded"
      })
      assert.isTrue(responses.every(({ status }) => status === 200))
      assert.strictEqual(yield* tokenRequests, 2)
    })

    test("repeats a request only if its body can be sent again", function*() {
      const bytes = new Uint8Array([1])
      for (
        const [body, requests] of [
          [HttpBody.empty, 2],
          [HttpBody.uint8Array(bytes), 2],
          [HttpBody.formDataRecord({ a: "1" }), 2],
          [HttpBody.stream(Stream.make(bytes)), 1],
          [HttpBody.raw(bytes), 1]
        ] as const
      ) {
        const { client, sent, tokenRequests } = yield* make({}, rejecting("token-1"))
        const response = yield* client.post("/orders", { body })
        assert.strictEqual(response.status, requests === 2 ? 200 : 401, body._tag)
        assert.strictEqual((yield* sent).length, requests, body._tag)
        const before = (yield* sent).length
        yield* client.get("/orders")
        deepStrictEqual(
          authorizations((yield* sent).slice(before)),
          ["Bearer token-2"],
          "the rejected token is not sent again"
        )
        assert.strictEqual(yield* tokenRequests, 2)
      }
    })

    test("does not recover from a 403, or from a challenge that no token can resolve", function*() {
      for (
        const answer of [
          { status: 401, headers: { "www-authenticate": "Bearer error=\"insufficient_scope\"" } },
          {
            status: 401,
            headers: {
              "www-authenticate": "Bearer realm=\"null\",error=\"invalid_token\"," +
                "error_description=\"keymanagement.service.InvalidAPICallAsNoApiProductMatchFound\""
            }
          },
          ...["no api product match found", "no apiproduct match found"].map((phrase) => ({
            status: 401,
            headers: { "www-authenticate": `Bearer error_description="Invalid API call as ${phrase}"` }
          })),
          { status: 403 }
        ]
      ) {
        const { client, sent, tokenRequests } = yield* make({}, () => answer)
        assert.strictEqual((yield* client.get("/orders")).status, answer.status)
        yield* client.get("/orders")
        assert.strictEqual((yield* sent).length, 2)
        assert.strictEqual(yield* tokenRequests, 1)
      }
    })

    test("retryUnauthorized applies to a client, and RetryUnauthorized overrides it for one request", function*() {
      const off = yield* make({ retryUnauthorized: false }, rejecting("token-1"))
      assert.strictEqual((yield* off.client.get("/orders")).status, 401)
      assert.strictEqual((yield* off.client.get("/orders")).status, 200, "the next request has a new token")
      const on = yield* make({}, rejecting("token-1"))
      const withoutRetry = on.client.get("/orders").pipe(
        Effect.provideService(AuthorizedHttpClient.RetryUnauthorized, false)
      )
      assert.strictEqual((yield* withoutRetry).status, 401)
      const overridden = yield* make({ retryUnauthorized: false }, rejecting("token-1"))
      const withRetry = overridden.client.get("/orders").pipe(
        Effect.provideService(AuthorizedHttpClient.RetryUnauthorized, true)
      )
      assert.strictEqual((yield* withRetry).status, 200)
      const unset = yield* make({ retryUnauthorized: false }, rejecting("token-1"))
      const withoutOverride = unset.client.get("/orders").pipe(
        Effect.provideService(AuthorizedHttpClient.RetryUnauthorized, undefined)
      )
      assert.strictEqual((yield* withoutOverride).status, 401, "undefined overrides nothing")
    })

    test("fails with the error of the acquisition when no other token can be acquired, as the next request does", function*() {
      const failures = [
        new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 }),
        new AccessTokenError.TokenRefusedError({ reason: "InvalidClient", status: 401 })
      ]
      for (const failure of failures) {
        for (const decorate of [undefined, HttpClient.filterStatusOk]) {
          const { client, sent } = yield* make(
            {},
            () => ({ status: 401 }),
            decorate,
            (n) => n === 1 ? token("token-1") : Effect.fail(failure)
          )
          const [error, next] = [yield* Effect.flip(client.get("/orders")), yield* Effect.flip(client.get("/orders"))]
          deepStrictEqual([error, error.message], [next, next.message])
          assert.strictEqual(error._tag, failure._tag)
          const isTransient = AccessTokenError.isTransient(failure)
          assert.strictEqual(Option.isSome(AccessTokenError.retryAt(error)), isTransient)
          assert.strictEqual((yield* sent).length, 1)
        }
      }
    })

    test("fails with a defect of the source, and with Closed after the scope has closed", function*() {
      const defect = yield* make(
        {},
        () => ({ status: 401 }),
        undefined,
        (n) => n === 1 ? token("token-1") : Effect.die("an invented defect")
      )
      const exit = yield* Effect.exit(defect.client.get("/orders"))
      deepStrictEqual(Exit.isFailure(exit) ? failuresOf(exit.cause) : [], ["an invented defect"])
      const scope = yield* Scope.make()
      const closing = yield* make(
        {},
        () => ({ status: 401 }),
        HttpClient.tap(() => Scope.close(scope, Exit.void))
      ).pipe(Scope.extend(scope))
      const error = yield* Effect.flip(closing.client.get("/orders"))
      assert.strictEqual(error._tag === "TokenRequestError" && error.reason, "Closed")
    })

    test("works over and under retry, retryTransient, followRedirects and filterStatusOk", function*() {
      const decorations: ReadonlyArray<readonly [string, (client: HttpClient.HttpClient) => HttpClient.HttpClient]> = [
        ["retry", HttpClient.retry({ times: 1 })],
        ["retryTransient", HttpClient.retryTransient({ times: 1 })],
        ["followRedirects", HttpClient.followRedirects(3)],
        ["filterStatusOk", HttpClient.filterStatusOk]
      ]
      for (const [name, decorate] of decorations) {
        const under = yield* make({}, rejecting("token-1"), decorate)
        assert.strictEqual((yield* under.client.get("/orders")).status, 200, `under: ${name}`)
        const over = yield* make({}, rejecting("token-1"))
        const decorated = decorate(over.client as HttpClient.HttpClient)
        assert.strictEqual((yield* decorated.get("/orders")).status, 200, `over: ${name}`)
        const rejectsAll = yield* make({}, () => ({ status: 401 }), decorate)
        const exit = yield* Effect.exit(rejectsAll.client.get("/orders"))
        assert.strictEqual(Exit.isFailure(exit), name === "filterStatusOk", `401 to every token, under: ${name}`)
      }
    })

    test("each attempt of an outer retry attaches the current token and can recover", function*() {
      const { client, sent } = yield* make({}, (_, n) => ({ status: n === 1 ? 503 : n === 2 ? 401 : 200 }))
      const response = yield* HttpClient.retryTransient(client, { times: 2 }).get("/orders")
      assert.strictEqual(response.status, 200)
      deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Bearer token-1", "Bearer token-2"])
    })
  })

  describe("layerHttpClient", () => {
    const run = (
      provider: Layer.Layer<AccessTokenProvider.AccessTokenProvider>,
      url = "/orders",
      decorate: (client: HttpClient.HttpClient) => HttpClient.HttpClient = (client) => client
    ) =>
      Effect.gen(function*() {
        const api = yield* stubApi()
        const layer = AuthorizedHttpClient.layerHttpClient({ apiUrl }).pipe(
          Layer.provide(provider),
          Layer.provide(Layer.succeed(HttpClient.HttpClient, decorate(api.client)))
        )
        const exit = yield* Effect.exit(HttpClient.get(url).pipe(Effect.provide(layer)))
        return { exit, sent: yield* api.sent }
      })

    test("provides the authorized client as HttpClient", function*() {
      const { sent } = yield* run(AccessTokenProvider.layerTest(token("token-1")))
      deepStrictEqual(authorizations(sent), ["Bearer token-1"])
    })

    test("converts its errors to RequestErrors whose request lacks the header", function*() {
      const failing = (error: AccessTokenError.AccessTokenError) => AccessTokenProvider.layerTest(Effect.fail(error))
      for (
        const [reason, layer, url, cause] of [
          [
            "InvalidUrl",
            AccessTokenProvider.layerTest(token("token-1")),
            "https://evil.example/",
            "UntrustedOriginError"
          ],
          [
            "Transport",
            failing(new AccessTokenError.TokenRequestError({ reason: "Timeout", attempts: 1 })),
            "/orders",
            "TokenRequestError"
          ],
          [
            "Encode",
            failing(new AccessTokenError.CredentialsError({ field: "clientId", reason: "is empty" })),
            "/orders",
            "CredentialsError"
          ]
        ] as const
      ) {
        const { exit } = yield* run(layer, url)
        const error = yield* Effect.flip(exit)
        if (!HttpClientError.isHttpClientError(error)) return assert.fail(`not an HttpClientError: ${error._tag}`)
        assert.strictEqual(httpReason(error), reason)
        assert.isUndefined(error.request.headers["authorization"])
        assert.strictEqual((error.cause as { readonly _tag?: string })._tag, cause)
        assert.include(error.message, (error.cause as Error).message)
      }
    })

    test("passes on the errors of the HTTP client", function*() {
      const { exit } = yield* run(
        AccessTokenProvider.layerTest(token("token-1")),
        "/orders",
        (client) =>
          HttpClient.transform(
            client,
            (_, request) =>
              Effect.fail(new HttpClientError.RequestError({ request, reason: "Transport", description: "invented" }))
          )
      )
      const error = yield* Effect.flip(exit)
      assert.strictEqual(error.message, "Transport: invented (GET https://api.store.example/v1/orders)")
      assert.isUndefined(error.cause)
    })
  })
})
