import { FetchHttpClient, Headers, HttpBody, HttpClient, HttpClientError, HttpClientRequest } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { Effect, Exit, FiberRef, Layer, Option, Redacted, Stream } from "effect"
import { answering, token } from "./support/scriptedSource.js"
import { rejecting, stubApi } from "./support/stubApi.js"

const apiUrl = "https://api.store.example/v1"

/** An authorized client over a stub API and a source of numbered tokens: `token-1`, `token-2`, … */
const make = (
  options: Partial<AuthorizedHttpClient.Options> = {},
  answer?: Parameters<typeof stubApi>[0],
  decorate: (client: HttpClient.HttpClient) => HttpClient.HttpClient = (client) => client
) =>
  Effect.gen(function*() {
    const api = yield* stubApi(answer)
    const source = yield* answering((n) => token(`token-${n}`))
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
  describe("attaches the token", () => {
    it.scoped("on every request, as the literal Bearer", () =>
      Effect.gen(function*() {
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
      }))

    it.scoped("joins relative URLs to apiUrl with exactly one slash", () =>
      Effect.gen(function*() {
        for (const base of [apiUrl, `${apiUrl}/`]) {
          const { client, sent } = yield* make({ apiUrl: base })
          yield* client.get("/orders")
          yield* client.get("orders")
          deepStrictEqual((yield* sent).map(({ url }) => url), [
            "https://api.store.example/v1/orders",
            "https://api.store.example/v1/orders"
          ])
        }
      }))

    it.scoped("joins a relative URL also when it is empty, a query or a fragment, or holds a colon", () =>
      Effect.gen(function*() {
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
      }))

    it.scoped("under another name and format, which is kept out of logs and spans", () =>
      Effect.gen(function*() {
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
      }))

    it.scoped("under another name lets fetch follow no redirect, since fetch drops only Authorization", () =>
      Effect.gen(function*() {
        const seen: Array<RequestInit["redirect"]> = []
        const watching = HttpClient.tapRequest(() =>
          Effect.map(Effect.serviceOption(FetchHttpClient.RequestInit), (init) => {
            seen.push(Option.getOrUndefined(init)?.redirect)
          })
        )
        for (const options of [{}, { header: { name: "Authorization" } }, { header: { name: "x-store-token" } }]) {
          const { client } = yield* make(options, undefined, watching)
          yield* client.get("/orders")
        }
        deepStrictEqual(seen, [undefined, undefined, "manual"])
      }))

    it.scoped("formats a token once, and sends also a value of one character", () =>
      Effect.gen(function*() {
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
      }))

    it.scoped("not on a request that already carries the header, which is never repeated", () =>
      Effect.gen(function*() {
        const { client, sent, tokenRequests } = yield* make({}, () => ({ status: 401 }))
        const headers = { authorization: "Basic an-invented-value" }
        const response = yield* client.get("/orders", { headers })
        assert.strictEqual(response.status, 401)
        assert.strictEqual(response.request.headers["authorization"], "Basic an-invented-value")
        deepStrictEqual(authorizations(yield* sent), ["Basic an-invented-value"])
        assert.strictEqual(yield* tokenRequests, 0)
      }))

    it.scoped("not on a request that already carries the header, and leaves that header in its errors", () =>
      Effect.gen(function*() {
        const failing = HttpClient.transformResponse(() => Effect.fail(transport))
        const transport = new HttpClientError.RequestError({
          request: HttpClientRequest.get("/", { headers: { authorization: "Basic an-invented-value" } }),
          reason: "Transport"
        })
        for (const decorate of [HttpClient.filterStatusOk, failing]) {
          const { client } = yield* make({}, () => ({ status: 401 }), decorate)
          const headers = { authorization: "Basic an-invented-value" }
          const error = yield* Effect.flip(client.get("/orders", { headers }))
          if (!HttpClientError.isHttpClientError(error)) return assert.fail(`not an HttpClientError: ${error._tag}`)
          assert.strictEqual(error.request.headers["authorization"], "Basic an-invented-value")
        }
      }))

    it.scoped("passes on every error of the given client that is not an HttpClientError", () =>
      Effect.gen(function*() {
        const { client: base } = yield* stubApi()
        for (const own of [undefined, "an invented error", new Error("an invented error")]) {
          const client = yield* AuthorizedHttpClient.withAccessToken(
            HttpClient.transformResponse(base, () => Effect.fail(own)),
            { apiUrl }
          ).pipe(Effect.provide(AccessTokenProvider.layerTest(token("token-1"))))
          assert.strictEqual(yield* Effect.flip(client.get("/orders")), own)
        }
      }))

    it.scoped("a format that throws, or makes what no header can carry, is named", () =>
      Effect.gen(function*() {
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
      }))

    it.scoped("over a client that prepends a URL of its own", () =>
      Effect.gen(function*() {
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
      }))

    it.scoped("a token that could break the header is refused, typed and without its value", () =>
      Effect.gen(function*() {
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
      }))
  })

  describe("keeps to its origins", () => {
    it.scoped("another origin, port or scheme fails with UntrustedOriginError; nothing is sent, no token is asked for", () =>
      Effect.gen(function*() {
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
        // A header of the caller's own lets nothing out either: it may be ours, copied from a request that was sent.
        const own = yield* Effect.flip(
          client.get("https://evil.example/", { headers: { authorization: "Bearer own" } })
        )
        assert.instanceOf(own, AccessTokenError.UntrustedOriginError)
        assert.strictEqual((yield* sent).length, 0)
        assert.strictEqual(yield* tokenRequests, 0)
      }))

    it.scoped("UntrustedOriginError names the origin, or says what the URL is that has none", () =>
      Effect.gen(function*() {
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
      }))

    it.scoped("allowInsecure lets http in, for apiUrl and trustedOrigins", () =>
      Effect.gen(function*() {
        const { client, sent } = yield* make({
          apiUrl: "http://api.store.example/v1",
          trustedOrigins: ["http://files.store.example"],
          allowInsecure: true
        })
        yield* client.get("/orders")
        yield* client.get("HTTP://API.store.example/v1/orders")
        yield* client.get("http://files.store.example/a")
        deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Bearer token-1", "Bearer token-1"])
      }))

    it.scoped("the same origin in other words is the same origin", () =>
      Effect.gen(function*() {
        const { client, sent } = yield* make()
        yield* client.get("HTTPS://API.store.example:443/v1/orders")
        yield* client.get("https://api.store.example/elsewhere")
        deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Bearer token-1"])
      }))

    it.scoped("an IPv6 host and an international name, however they are written", () =>
      Effect.gen(function*() {
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
      }))

    it.scoped("trustedOrigins lets further ones in", () =>
      Effect.gen(function*() {
        const { client, sent } = yield* make({ trustedOrigins: ["https://files.store.example"] })
        yield* client.get("https://files.store.example/a")
        deepStrictEqual(authorizations(yield* sent), ["Bearer token-1"])
        assert.instanceOf(
          yield* Effect.flip(client.get("https://other.store.example/a")),
          AccessTokenError.UntrustedOriginError
        )
      }))

    it.scoped("the origin is checked on the request as it leaves, behind the client's own mapRequest", () =>
      Effect.gen(function*() {
        const { client, sent } = yield* make(
          {},
          undefined,
          HttpClient.mapRequest(HttpClientRequest.setUrl("https://evil.example/"))
        )
        const error = yield* Effect.flip(client.get("/orders"))
        assert.instanceOf(error, AccessTokenError.UntrustedOriginError)
        assert.strictEqual((yield* sent).length, 0)
      }))

    it.scoped("followRedirects over the client cannot carry the token elsewhere", () =>
      Effect.gen(function*() {
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
      }))

    it.effect("options that cannot be used are named when the client is made", () =>
      Effect.gen(function*() {
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
      }))
  })

  describe("recovers from a 401", () => {
    it.scoped("with another token, once, and the caller sees the second answer", () =>
      Effect.gen(function*() {
        const { client, sent, tokenRequests } = yield* make({}, rejecting("token-1"))
        const response = yield* client.get("/orders")
        assert.strictEqual(response.status, 200)
        deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Bearer token-2"])
        assert.strictEqual(yield* tokenRequests, 2)
      }))

    it.scoped("a second 401 is the caller's, after two requests and one new token", () =>
      Effect.gen(function*() {
        const { client, sent, tokenRequests } = yield* make({}, () => ({ status: 401 }))
        assert.strictEqual((yield* client.get("/orders")).status, 401)
        assert.strictEqual((yield* sent).length, 2)
        assert.strictEqual(yield* tokenRequests, 2)
      }))

    it.scoped("a second 401 rejects the other token too, also when the given client makes it an error", () =>
      Effect.gen(function*() {
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
      }))

    it.scoped("a second response rejects nothing unless it is a 401 that another token could help with", () =>
      Effect.gen(function*() {
        const challenge = { "www-authenticate": "Bearer error=\"insufficient_scope\"" }
        for (const second of [{ status: 200 }, { status: 403 }, { status: 401, headers: challenge }]) {
          const { client, rejected } = yield* make({}, (_, n) => n === 1 ? { status: 401 } : second)
          assert.strictEqual((yield* client.get("/orders")).status, second.status)
          deepStrictEqual(rejected, ["token-1"])
        }
      }))

    it.scoped("not with a header of the request's own, also after an attempt that had the token", () =>
      Effect.gen(function*() {
        /** The first attempt gets a 503, the second brings its own header and gets a 401. */
        const answer = (_: unknown, n: number) => ({ status: n === 1 ? 503 : 401 })
        const ownHeaderAtSecond = () => {
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
          (client) => HttpClient.retryTransient(ownHeaderAtSecond()(client), { times: 1 })
        )
        const over = yield* make({}, answer)
        const retried = HttpClient.retryTransient(ownHeaderAtSecond()(over.client), { times: 1 })
        for (const [client, { rejected, sent }] of [[under.client, under], [retried, over]] as const) {
          assert.strictEqual((yield* client.get("/orders")).status, 401)
          deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Basic an-invented-value"])
          deepStrictEqual(rejected, [])
        }
      }))

    it.scoped("not with the same token again: an endpoint that repeats it leaves the 401 to the caller, after one request", () =>
      Effect.gen(function*() {
        const api = yield* stubApi(() => ({ status: 401 }))
        const same = yield* token("same")
        const source = yield* answering(() => Effect.succeed(same))
        const provider = yield* Layer.build(Layer.provide(AccessTokenProvider.layer(), source.layer))
        const client = yield* AuthorizedHttpClient.withAccessToken(api.client, { apiUrl }).pipe(
          Effect.provide(provider)
        )
        assert.strictEqual((yield* client.get("/orders")).status, 401)
        assert.strictEqual((yield* api.sent).length, 1)
      }))

    it.scoped("a hundred 401s at once on one token bring one new token", () =>
      Effect.gen(function*() {
        const { client, tokenRequests } = yield* make({}, rejecting("token-1"))
        const responses = yield* Effect.all(Array.from({ length: 100 }, () => client.get("/orders")), {
          concurrency: "unbounded"
        })
        assert.isTrue(responses.every(({ status }) => status === 200))
        assert.strictEqual(yield* tokenRequests, 2)
      }))

    it.scoped("repeats a body that can be sent again, and not one that cannot", () =>
      Effect.gen(function*() {
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
            "the rejected one is not used again"
          )
          assert.strictEqual(yield* tokenRequests, 2)
        }
      }))

    it.scoped("not where the challenge says that no token will help, nor for a 403", () =>
      Effect.gen(function*() {
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
      }))

    it.scoped("the option switches it off for a client, RetryUnauthorized for one request, either way", () =>
      Effect.gen(function*() {
        const off = yield* make({ retryUnauthorized: false }, rejecting("token-1"))
        assert.strictEqual((yield* off.client.get("/orders")).status, 401)
        assert.strictEqual((yield* off.client.get("/orders")).status, 200, "the next request has a new token")
        const on = yield* make({}, rejecting("token-1"))
        const once = on.client.get("/orders").pipe(
          Effect.provideService(AuthorizedHttpClient.RetryUnauthorized, false)
        )
        assert.strictEqual((yield* once).status, 401)
        const back = yield* make({ retryUnauthorized: false }, rejecting("token-1"))
        const again = back.client.get("/orders").pipe(
          Effect.provideService(AuthorizedHttpClient.RetryUnauthorized, true)
        )
        assert.strictEqual((yield* again).status, 200)
        const open = yield* make({ retryUnauthorized: false }, rejecting("token-1"))
        const undecided = open.client.get("/orders").pipe(
          Effect.provideService(AuthorizedHttpClient.RetryUnauthorized, undefined)
        )
        assert.strictEqual((yield* undecided).status, 401, "the option counts")
      }))

    it.scoped.each<readonly [string, Effect.Effect<never, AccessTokenError.AccessTokenError>]>([
      ["a failure", Effect.fail(new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 }))],
      ["a defect", Effect.die("an invented defect")]
    ])(
      "when no other token is available (%s), the caller gets the 401 and its body",
      ([, fault]) =>
        Effect.gen(function*() {
          const api = yield* stubApi(() => ({ status: 401 }))
          const source = yield* answering((n) => n === 1 ? token("token-1") : fault)
          const provider = yield* Layer.build(Layer.provide(AccessTokenProvider.layer(), source.layer))
          const client = yield* AuthorizedHttpClient.withAccessToken(api.client, { apiUrl }).pipe(
            Effect.provide(provider)
          )
          const response = yield* client.get("/orders")
          assert.strictEqual(response.status, 401)
          assert.strictEqual(yield* response.text, "{}")
          assert.strictEqual((yield* api.sent).length, 1)
        })
    )

    it.scoped("over and under retry, retryTransient, followRedirects and filterStatusOk", () =>
      Effect.gen(function*() {
        const decorations: ReadonlyArray<readonly [string, (client: HttpClient.HttpClient) => HttpClient.HttpClient]> =
          [
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
          const hopeless = yield* make({}, () => ({ status: 401 }), decorate)
          const exit = yield* Effect.exit(hopeless.client.get("/orders"))
          assert.strictEqual(Exit.isFailure(exit), name === "filterStatusOk", `a lasting 401 under ${name}`)
        }
      }))

    it.scoped("an outer retry asks for the token again", () =>
      Effect.gen(function*() {
        const { client, sent } = yield* make({}, (_, n) => ({ status: n === 1 ? 503 : n === 2 ? 401 : 200 }))
        const response = yield* HttpClient.retryTransient(client, { times: 2 }).get("/orders")
        assert.strictEqual(response.status, 200)
        deepStrictEqual(authorizations(yield* sent), ["Bearer token-1", "Bearer token-1", "Bearer token-2"])
      }))
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

    it.effect("is the authorized client behind the plain tag", () =>
      Effect.gen(function*() {
        const { sent } = yield* run(AccessTokenProvider.layerTest(token("token-1")))
        deepStrictEqual(authorizations(sent), ["Bearer token-1"])
      }))

    it.effect("turns its errors into RequestErrors that hold the request without the header", () =>
      Effect.gen(function*() {
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
          assert.strictEqual(error.reason, reason)
          assert.isUndefined(error.request.headers["authorization"])
          assert.strictEqual((error.cause as { readonly _tag?: string })._tag, cause)
          assert.include(error.message, (error.cause as Error).message)
        }
      }))

    it.effect("passes on the errors of the HTTP client", () =>
      Effect.gen(function*() {
        const { exit } = yield* run(AccessTokenProvider.layerTest(token("token-1")), "/orders", (client) =>
          HttpClient.transform(client, (_, request) =>
            Effect.fail(new HttpClientError.RequestError({ request, reason: "Transport", description: "invented" }))))
        const error = yield* Effect.flip(exit)
        assert.strictEqual(error.message, "Transport: invented (GET https://api.store.example/v1/orders)")
        assert.isUndefined(error.cause)
      }))
  })
})
