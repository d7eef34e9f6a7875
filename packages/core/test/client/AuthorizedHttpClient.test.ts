import {
  FetchHttpClient,
  Headers,
  HttpBody,
  HttpClient,
  HttpClientError,
  HttpClientRequest
} from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { failuresOf, httpReason } from "@store-api/testing/effectMajor"
import { test } from "@store-api/testing/test"
import { Effect, Exit, FiberRef, Layer, Option, Redacted, Scope, Stream } from "effect"
import { rejecting, stubApi } from "../support/fakeClient.js"
import { makeSource, token } from "../support/scriptedSource.js"

const apiUrl = "https://api.store.example/v1"

type Decorate = (client: HttpClient.HttpClient) => HttpClient.HttpClient

interface Settings extends Partial<AuthorizedHttpClient.Options> {
  /** The response of the API to a request, by its number. By default 200. */
  readonly answer?: Parameters<typeof stubApi>[0]
  /** Changes the given client, as an application may. */
  readonly decorate?: Decorate | undefined
  /** By default, the source returns `token-1`, `token-2`, … */
  readonly acquire?: Parameters<typeof makeSource>[0]
}

/** An authorized client over a stub API and a scripted source, and what they have observed. */
const make = (
  { acquire = (n) => token(`token-${n}`), answer, decorate = (client) => client, ...options }:
    Settings = {}
) =>
  Effect.gen(function*() {
    const api = yield* stubApi(answer)
    const source = yield* makeSource(acquire)
    const provider = yield* Effect.provide(AccessTokenProvider.make(), source.layer)
    const rejected: Array<string> = []
    const client = yield* AuthorizedHttpClient.withAccessToken(decorate(api.client), {
      apiUrl,
      ...options
    }).pipe(
      Effect.provideService(AccessTokenProvider.AccessTokenProvider, {
        ...provider,
        invalidate: (token) => {
          rejected.push(Redacted.value(token.value))
          return provider.invalidate(token)
        }
      })
    )
    return {
      client,
      rejected,
      sent: api.sent,
      urls: Effect.map(api.sent, (sent) => sent.map(({ url }) => url)),
      authorizations: Effect.map(api.sent, (sent) =>
        sent.map(({ headers }) => headers["authorization"])),
      tokenRequests: source.calls
    }
  })

/** The outcome of calls one after another: their statuses, or the tags of their errors. */
const outcomesOf = <E extends { readonly _tag: string }>(
  client: HttpClient.HttpClient.With<E>,
  ...urls: ReadonlyArray<string>
) =>
  Effect.forEach(urls, (url) =>
    Effect.match(client.get(url), {
      onFailure: ({ _tag }): string | number => _tag,
      onSuccess: ({ status }) => status
    }))

/** Calls of one client: their outcomes, the authorizations and the number of token requests. */
const observe = (settings: Settings, ...urls: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const { authorizations, client, rejected, tokenRequests } = yield* make(settings)
    const outcomes = yield* outcomesOf(client, ...urls)
    return {
      outcomes,
      authorizations: yield* authorizations,
      tokenRequests: yield* tokenRequests,
      rejected
    }
  })

const bearers = (...values: ReadonlyArray<string>) => values.map((value) => `Bearer ${value}`)

const ownHeader = { headers: { authorization: "Basic an-invented-value" } }
const insufficientScope = { "www-authenticate": "Bearer error=\"insufficient_scope\"" }

const httpErrorOf = (error: unknown) =>
  HttpClientError.isHttpClientError(error)
    ? error
    : assert.fail(`not an HttpClientError: ${String(error)}`)

describe("AuthorizedHttpClient", () => {
  describe("attaching the token", () => {
    test("the client attaches the token to every request, with the scheme Bearer", function*() {
      const { authorizations, client, sent, tokenRequests } = yield* make()
      yield* client.get("/orders")
      yield* client.post("/orders", { body: HttpBody.unsafeJson({ a: 1 }) })
      yield* client.execute(HttpClientRequest.del("/orders/1"))
      deepStrictEqual(yield* authorizations, bearers("token-1", "token-1", "token-1"))
      deepStrictEqual((yield* sent).map(({ method, url }) => `${method} ${url}`), [
        "GET https://api.store.example/v1/orders",
        "POST https://api.store.example/v1/orders",
        "DELETE https://api.store.example/v1/orders/1"
      ])
      assert.strictEqual(yield* tokenRequests, 1)
    })

    test("the client joins relative URLs to apiUrl with exactly one slash, whatever they contain", function*() {
      const plain = { "/orders": "/orders", orders: "/orders", "orders/7": "/orders/7" }
      const special = {
        "": "",
        "?page=2": "?page=2",
        "#top": "#top",
        "1a:b": "/1a:b",
        "/a?at=10:30": "/a?at=10:30"
      }
      const likeHosts = {
        "//evil.example/a": "//evil.example/a",
        "@evil.example/a": "/@evil.example/a"
      }
      for (
        const [base, paths] of [[`${apiUrl}/`, plain], [apiUrl, {
          ...plain,
          ...special,
          ...likeHosts
        }]] as const
      ) {
        const { client, urls } = yield* make({ apiUrl: base })
        for (const url of Object.keys(paths)) {
          yield* client.execute(HttpClientRequest.setUrl(HttpClientRequest.get("/"), url))
        }
        deepStrictEqual(yield* urls, Object.values(paths).map((path) => apiUrl + path))
      }
    })

    test("the client attaches the token under another name in another format", function*() {
      const { client, sent } = yield* make({
        header: { name: "X-Store-Token", format: (value) => `Token ${value}` }
      })
      yield* client.get("/orders")
      const [request] = yield* sent
      assert.strictEqual(request?.headers["x-store-token"], "Token token-1")
      assert.isUndefined(request?.headers["authorization"])
    })

    test("the client redacts a header of another name in logs", function*() {
      const redacted: Array<ReadonlyArray<string | RegExp>> = []
      const { client } = yield* make({
        header: { name: "X-Store-Token" },
        decorate: HttpClient.tap(() =>
          Effect.map(
            FiberRef.get(Headers.currentRedactedNames),
            (names) => void redacted.push(names)
          )
        )
      })
      yield* client.get("/orders")
      assert.isTrue(redacted[0]?.includes("x-store-token"))
      assert.isFalse(
        (yield* FiberRef.get(Headers.currentRedactedNames)).includes("x-store-token")
      )
    })

    test("the client stops fetch from following redirects under another name, because fetch removes only Authorization", function*() {
      const seen: Array<RequestInit["redirect"]> = []
      const decorate = HttpClient.tapRequest(() =>
        Effect.map(Effect.serviceOption(FetchHttpClient.RequestInit), (init) => {
          seen.push(Option.getOrUndefined(init)?.redirect)
        })
      )
      for (
        const options of [{}, { header: { name: "Authorization" } }, {
          header: { name: "x-store-token" }
        }]
      ) {
        yield* observe({ ...options, decorate }, "/orders")
      }
      deepStrictEqual(seen, [undefined, undefined, "manual"])
    })

    test("the client sends a formatted token of one character", function*() {
      const { client, sent } = yield* make({ header: { name: "x-token", format: () => "x" } })
      yield* client.get("/orders")
      deepStrictEqual((yield* sent).map(({ headers }) => headers["x-token"]), ["x"])
    })

    test("the client formats each token once", function*() {
      const formatted: Array<string> = []
      const format = (accessToken: string) => {
        formatted.push(accessToken)
        return accessToken
      }
      yield* observe({ header: { name: "x-store-token", format } }, "/orders", "/orders")
      deepStrictEqual(formatted, ["token-1"])
    })

    test("the client sends a request that already has the header unchanged", function*() {
      const { authorizations, client, tokenRequests } = yield* make({
        answer: () => ({ status: 401 })
      })
      const { request } = yield* client.get("/orders", ownHeader)
      const expected = ownHeader.headers.authorization
      assert.strictEqual(request.headers["authorization"], expected)
      deepStrictEqual([yield* authorizations, yield* tokenRequests], [[expected], 0])
    })

    test("the client keeps a header that the request already had in the errors of that request", function*() {
      const transport = new HttpClientError.RequestError({
        request: HttpClientRequest.get("/", ownHeader),
        reason: "Transport"
      })
      const failing: Decorate = (client) =>
        HttpClient.transformResponse(client, () => Effect.fail(transport))
      for (
        const decorate of [
          (client: HttpClient.HttpClient) => HttpClient.filterStatusOk(client),
          failing
        ]
      ) {
        const { client } = yield* make({ answer: () => ({ status: 401 }), decorate })
        const error = httpErrorOf(yield* Effect.flip(client.get("/orders", ownHeader)))
        assert.strictEqual(error.request.headers["authorization"], "Basic an-invented-value")
      }
    })

    test("the client passes on errors of the given client that are not an HttpClientError", function*() {
      const { client: base } = yield* stubApi()
      for (const failure of [undefined, "an invented error", new Error("an invented error")]) {
        const failing = HttpClient.transformResponse(base, () => Effect.fail(failure))
        const client = yield* AuthorizedHttpClient.withAccessToken(failing, { apiUrl }).pipe(
          Effect.provide(AccessTokenProvider.layerTest(token("token-1")))
        )
        assert.strictEqual(yield* Effect.flip(client.get("/orders")), failure)
      }
    })

    test("the error names client.header.format when it throws or returns an invalid header value", function*() {
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
        deepStrictEqual(error.problems.map(({ path }) => path), ["client.header.format"])
        assert.strictEqual((yield* sent).length, 0)
      }
    })

    test("the client works over a client that prepends its own URL", function*() {
      const expected = {
        "https://api.store.example/v2": "https://api.store.example/v2/orders",
        "/v2": "https://api.store.example/v1/v2/orders"
      }
      for (const [prefix, url] of Object.entries(expected)) {
        const { client, urls } = yield* make({
          decorate: HttpClient.mapRequest(HttpClientRequest.prependUrl(prefix))
        })
        yield* client.get("/orders")
        deepStrictEqual(yield* urls, [url])
      }
    })

    test("the client fails for a token that is not a valid header value, without showing it", function*() {
      const { client, sent } = yield* make({ acquire: () => token("broken\r\nx-injected: 1") })
      const error = yield* Effect.flip(client.get("/orders"))
      assert.instanceOf(error, AccessTokenError.TokenResponseError)
      deepStrictEqual(error.problems, [{ path: "access_token", expected: "printable ASCII" }])
      assert.notInclude(error.message, "broken")
      assert.strictEqual((yield* sent).length, 0)
    })
  })

  describe("trusted origins", () => {
    test("the client fails with UntrustedOriginError for another origin, port or scheme, without any request", function*() {
      const { client, sent, tokenRequests } = yield* make()
      const urls = [
        "https://evil.example/orders",
        "http://api.store.example/v1/orders",
        "https://api.store.example:8443/v1",
        "https://api.store.example.evil.example/",
        "https://api.store.example@evil.example/",
        "https:\\\\evil.example/",
        "https://[::1]/",
        "https://0x7f.1/",
        "https://user:invented@evil.example/",
        "data:text/plain,x",
        "https://evil.example/?https://api.store.example/",
        "ftp://api.store.example/",
        "https:api.store.example/v1/orders",
        "blob:https://api.store.example/1",
        "s3://api.store.example/"
      ]
      for (const url of urls) {
        // Also with a header of the caller: it may be the header of an earlier request, copied with its token.
        for (const options of [{}, ownHeader]) {
          const error = yield* Effect.flip(client.get(url, options))
          assert.instanceOf(error, AccessTokenError.UntrustedOriginError, url)
          deepStrictEqual(error.trusted, ["https://api.store.example"])
          assert.notInclude(error.message, "invented")
        }
      }
      deepStrictEqual([(yield* sent).length, yield* tokenRequests], [0, 0])
    })

    test("UntrustedOriginError names the origin, or the kind of URL that has none", function*() {
      const { client } = yield* make()
      const origins = {
        "https://evil.example/orders?token=invented": "https://evil.example",
        "javascript:alert(1)": "a javascript: URL",
        "https://a b.example/": "an invalid URL"
      }
      for (const [url, origin] of Object.entries(origins)) {
        const error = yield* Effect.flip(client.get(url))
        assert.strictEqual(error._tag === "UntrustedOriginError" && error.origin, origin)
      }
    })

    const files = "https://files.store.example"
    const insecure = [
      "/orders",
      "HTTP://API.store.example/v1/orders",
      "http://files.store.example/a"
    ]

    test.each<
      readonly [
        what: string,
        settings: Settings,
        trusted: ReadonlyArray<string>,
        other: string
      ]
    >([
      [
        "http, with allowInsecure",
        {
          apiUrl: "http://api.store.example/v1",
          trustedOrigins: ["http://files.store.example"],
          allowInsecure: true
        },
        insecure,
        "http://other.store.example/a"
      ],
      [
        "further origins",
        { trustedOrigins: [files] },
        [`${files}/a`],
        "https://other.store.example/a"
      ],
      ["a host in another notation", {}, ["HTTPS://API.store.example:443/x"], files],
      [
        "an IPv6 host in another notation",
        { apiUrl: "https://[2001:db8::1]:8443/v1" },
        ["https://[2001:DB8:0:0::1]:8443/x", "/orders"],
        "https://[2001:db8::2]:8443"
      ],
      [
        "a name in ASCII",
        { apiUrl: "https://b\u00fccher.example/v1" },
        ["https://xn--bcher-kva.example/x", "/orders"],
        "https://bucher.example"
      ],
      [
        "a name beyond ASCII",
        { apiUrl: "https://xn--bcher-kva.example/v1" },
        ["https://B\u00dcCHER.example/x", "/orders"],
        "https://b\u00fccher.example.com"
      ]
    ])("the client trusts only %s", function*([, settings, trusted, other]) {
      const { authorizations, outcomes } = yield* observe(settings, ...trusted, other)
      deepStrictEqual(outcomes, [...trusted.map(() => 200), "UntrustedOriginError"])
      deepStrictEqual(authorizations, trusted.map(() => "Bearer token-1"))
    })

    /** Redirects `/orders` within the API, and from there to another origin. */
    const redirecting = (_: unknown, n: number) => ({
      status: n > 2 ? 200 : 302,
      headers: { location: n === 1 ? "/v1/moved" : "https://evil.example/" }
    })

    test("followRedirects over the client sends the token only within the API", function*() {
      const { authorizations, client, urls } = yield* make({ answer: redirecting })
      const error = yield* Effect.flip(HttpClient.followRedirects(client).get("/orders"))
      assert.instanceOf(error, AccessTokenError.UntrustedOriginError)
      deepStrictEqual(yield* urls, ["/orders", "/moved"].map((path) => apiUrl + path))
      deepStrictEqual(yield* authorizations, bearers("token-1", "token-1"))
    })

    test("limitation of the security model: a given client that follows redirects sends the token with them", function*() {
      const { authorizations, client, urls } = yield* make({
        answer: redirecting,
        decorate: HttpClient.followRedirects(3)
      })
      yield* client.get("/orders")
      assert.strictEqual((yield* urls).at(-1), "https://evil.example/")
      deepStrictEqual(yield* authorizations, bearers("token-1", "token-1", "token-1"))
    })
  })

  describe("recovery from a 401", () => {
    test("the client repeats the request with another token, whose response the caller gets", function*() {
      deepStrictEqual(yield* observe({ answer: rejecting("token-1") }, "/orders"), {
        outcomes: [200],
        authorizations: bearers("token-1", "token-2"),
        tokenRequests: 2,
        rejected: ["token-1"]
      })
    })

    test("the client rejects the second token too after a second 401, even if the given client fails on it", function*() {
      for (const decorate of [undefined, HttpClient.filterStatusOk]) {
        const answer = () => ({ status: 401 })
        const { authorizations, outcomes, rejected, tokenRequests } = yield* observe({
          answer,
          decorate
        }, "/orders")
        if (decorate === undefined) deepStrictEqual(outcomes, [401])
        deepStrictEqual([authorizations, rejected, tokenRequests], [
          bearers("token-1", "token-2"),
          ["token-1", "token-2"],
          2
        ])
      }
    })

    test("the client rejects the second token only after a 401 that another token can resolve", function*() {
      for (
        const second of [{ status: 200 }, { status: 403 }, {
          status: 401,
          headers: insufficientScope
        }]
      ) {
        const answer = (_: unknown, n: number) => n === 1 ? { status: 401 } : second
        const { outcomes, rejected } = yield* observe({ answer }, "/orders")
        deepStrictEqual([outcomes, rejected], [[second.status], ["token-1"]])
      }
    })

    test("the client does not recover a request with its own header, even if an earlier attempt had the token", function*() {
      /** The first attempt gets a 503. The second attempt has its own header and gets a 401. */
      const answer = (_: unknown, n: number) => ({ status: n === 1 ? 503 : 401 })
      const ownHeaderAtSecondAttempt: Decorate = (client) => {
        let attempts = 0
        return HttpClient.mapRequest(
          client,
          (request) =>
            ++attempts === 1
              ? request
              : HttpClientRequest.setHeaders(request, ownHeader.headers)
        ).pipe(
          HttpClient.retryTransient({ times: 1 })
        )
      }
      const under = yield* make({ answer, decorate: ownHeaderAtSecondAttempt })
      const over = yield* make({ answer })
      const retried = ownHeaderAtSecondAttempt(over.client as HttpClient.HttpClient)
      for (
        const [client, { authorizations, rejected }] of [[under.client, under], [
          retried,
          over
        ]] as const
      ) {
        assert.strictEqual((yield* client.get("/orders")).status, 401)
        deepStrictEqual(yield* authorizations, ["Bearer token-1", "Basic an-invented-value"])
        deepStrictEqual(rejected, [])
      }
    })

    test("the client repeats the request once, even if the endpoint returns the same token again", function*() {
      for (const [second, rejected] of [[200, ["same"]], [401, ["same", "same"]]] as const) {
        const answer = (_: unknown, n: number) => ({ status: n === 1 ? 401 : second })
        const observed = yield* observe({ answer, acquire: () => token("same") }, "/orders")
        deepStrictEqual(observed.outcomes, [second])
        deepStrictEqual(observed.authorizations, bearers("same", "same"))
        deepStrictEqual<ReadonlyArray<string>>(observed.rejected, rejected)
      }
    })

    test("the client repeats a request only if its body can be sent again", function*() {
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
        const { authorizations, client, tokenRequests } = yield* make({
          answer: rejecting("token-1")
        })
        const response = yield* client.post("/orders", { body })
        assert.strictEqual(response.status, requests === 2 ? 200 : 401, body._tag)
        yield* client.get("/orders")
        const next = (yield* authorizations).slice(requests)
        deepStrictEqual(next, ["Bearer token-2"], "the rejected token is not sent again")
        assert.strictEqual(yield* tokenRequests, 2)
      }
    })

    const noProduct = "keymanagement.service.InvalidAPICallAsNoApiProductMatchFound"
    const challenges = [
      insufficientScope["www-authenticate"],
      `Bearer realm="null",error="invalid_token",error_description="${noProduct}"`,
      `Bearer error_description="Invalid API call as no api product match found"`,
      `Bearer error_description="Invalid API call as no apiproduct match found"`
    ]

    test("the client does not recover from a 403, or from a challenge that no token can resolve", function*() {
      const unauthorized = challenges.map((value) => ({
        status: 401,
        headers: { "www-authenticate": value }
      }))
      for (const answer of [...unauthorized, { status: 403 }]) {
        deepStrictEqual(yield* observe({ answer: () => answer }, "/orders", "/orders"), {
          outcomes: [answer.status, answer.status],
          authorizations: bearers("token-1", "token-1"),
          tokenRequests: 1,
          rejected: []
        })
      }
    })

    test.each(
      [
        [false, undefined, 401],
        [true, false, 401],
        [undefined, false, 401],
        [false, true, 200],
        [undefined, undefined, 200]
      ] as const
    )(
      "retryUnauthorized of the client is %s, RetryUnauthorized of the request is %s: status %i",
      function*([retryUnauthorized, ofRequest, status]) {
        const { client } = yield* make({ retryUnauthorized, answer: rejecting("token-1") })
        const response = yield* client.get("/orders").pipe(
          Effect.provideService(AuthorizedHttpClient.RetryUnauthorized, ofRequest)
        )
        assert.strictEqual(response.status, status)
      }
    )

    test("the client rejects the token of a request that is not repeated", function*() {
      const settings = { retryUnauthorized: false, answer: rejecting("token-1") }
      const { outcomes } = yield* observe(settings, "/orders", "/orders")
      deepStrictEqual(outcomes, [401, 200])
    })

    test("the client fails with the error of the acquisition when no other token can be acquired, as the next request does", function*() {
      const failures = [
        new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 }),
        new AccessTokenError.TokenRefusedError({ reason: "InvalidClient", httpStatus: 401 })
      ]
      for (const failure of failures) {
        for (const decorate of [undefined, HttpClient.filterStatusOk]) {
          const { client, sent } = yield* make({
            answer: () => ({ status: 401 }),
            decorate,
            acquire: (n) => n === 1 ? token("token-1") : Effect.fail(failure)
          })
          const [error, next] = [
            yield* Effect.flip(client.get("/orders")),
            yield* Effect.flip(client.get("/orders"))
          ]
          deepStrictEqual([error, error.message], [next, next.message])
          assert.strictEqual(error._tag, failure._tag)
          const isTransient = AccessTokenError.isTransient(failure)
          assert.strictEqual(Option.isSome(AccessTokenError.retryAt(error)), isTransient)
          assert.strictEqual((yield* sent).length, 1)
        }
      }
    })

    const unauthorized = () => ({ status: 401 })

    test("the client fails with a defect of the source", function*() {
      const acquire = (n: number) =>
        n === 1 ? token("token-1") : Effect.die("an invented defect")
      const { client } = yield* make({ answer: unauthorized, acquire })
      const exit = yield* Effect.exit(client.get("/orders"))
      deepStrictEqual(Exit.isFailure(exit) ? failuresOf(exit.cause) : [], [
        "an invented defect"
      ])
    })

    test("the client fails with Closed after the scope has closed", function*() {
      const scope = yield* Scope.make()
      const decorate = HttpClient.tap(() => Scope.close(scope, Exit.void))
      const { client } = yield* Scope.extend(make({ answer: unauthorized, decorate }), scope)
      const error = yield* Effect.flip(client.get("/orders"))
      assert.strictEqual(error._tag === "TokenRequestError" && error.reason, "Closed")
    })

    const combinators: ReadonlyArray<readonly [string, Decorate]> = [
      ["retry", HttpClient.retry({ times: 1 })],
      ["retryTransient", HttpClient.retryTransient({ times: 1 })],
      ["followRedirects", HttpClient.followRedirects(3)],
      ["filterStatusOk", HttpClient.filterStatusOk]
    ]

    test.each(combinators)("the client works over a client with %s", function*([, decorate]) {
      const { outcomes } = yield* observe(
        { answer: rejecting("token-1"), decorate },
        "/orders"
      )
      deepStrictEqual(outcomes, [200])
    })

    test.each(combinators)("the client works under %s", function*([, decorate]) {
      const { client } = yield* make({ answer: rejecting("token-1") })
      deepStrictEqual(
        yield* outcomesOf(decorate(client as HttpClient.HttpClient), "/orders"),
        [200]
      )
    })

    test("the client recovers in each attempt of an outer retry", function*() {
      const { authorizations, client } = yield* make({
        answer: (_, n) => ({ status: [503, 401][n - 1] ?? 200 })
      })
      const response = yield* HttpClient.retryTransient(client, { times: 2 }).get("/orders")
      assert.strictEqual(response.status, 200)
      deepStrictEqual(yield* authorizations, bearers("token-1", "token-1", "token-2"))
    })
  })

  describe("layerHttpClient", () => {
    const run = (
      token: Parameters<typeof AccessTokenProvider.layerTest>[0],
      url = "/orders",
      decorate: Decorate = (client) => client
    ) =>
      Effect.gen(function*() {
        const api = yield* stubApi()
        const layer = AuthorizedHttpClient.layerHttpClient({ apiUrl }).pipe(
          Layer.provide(AccessTokenProvider.layerTest(token)),
          Layer.provide(Layer.succeed(HttpClient.HttpClient, decorate(api.client)))
        )
        const exit = yield* Effect.exit(HttpClient.get(url).pipe(Effect.provide(layer)))
        return { exit, sent: yield* api.sent }
      })

    test("provides the authorized client as HttpClient", function*() {
      const { sent } = yield* run(token("token-1"))
      deepStrictEqual(sent.map(({ headers }) => headers["authorization"]), ["Bearer token-1"])
    })

    test("converts its errors to RequestErrors whose request lacks the header", function*() {
      const timeout = new AccessTokenError.TokenRequestError({
        reason: "Timeout",
        attempts: 1
      })
      const empty = new AccessTokenError.CredentialsError({
        field: "clientId",
        reason: "is empty"
      })
      for (
        const [reason, acquired, url, cause] of [
          ["InvalidUrl", token("token-1"), "https://evil.example/", "UntrustedOriginError"],
          ["Transport", Effect.fail(timeout), "/orders", "TokenRequestError"],
          ["Encode", Effect.fail(empty), "/orders", "CredentialsError"]
        ] as const
      ) {
        const error = httpErrorOf(yield* Effect.flip((yield* run(acquired, url)).exit))
        assert.strictEqual(httpReason(error), reason)
        assert.isUndefined(error.request.headers["authorization"])
        assert.strictEqual((error.cause as { readonly _tag?: string })._tag, cause)
        assert.include(error.message, (error.cause as Error).message)
      }
    })

    test("passes on the errors of the HTTP client", function*() {
      const decorate: Decorate = HttpClient.transform((_, request) =>
        Effect.fail(
          new HttpClientError.RequestError({
            request,
            reason: "Transport",
            description: "invented"
          })
        )
      )
      const error = yield* Effect.flip(
        (yield* run(token("token-1"), "/orders", decorate)).exit
      )
      assert.strictEqual(
        error.message,
        "Transport: invented (GET https://api.store.example/v1/orders)"
      )
      assert.isUndefined(error.cause)
    })
  })
})
