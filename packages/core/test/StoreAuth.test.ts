import {
  FetchHttpClient,
  HttpClient,
  type HttpClientError,
  HttpClientRequest,
  HttpClientResponse
} from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth,
  TokenEndpoint,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { UntrustedOriginError } from "@store-api/core/AccessTokenError"
import { Config, Context, type Duration, Effect, Exit, Layer, Option, Redacted, Ref, TestClock } from "effect"
import { httpReason } from "./support/effectLine.js"
import { stubApi } from "./support/fakeClient.js"
import { answering, outcomeOf, settle, token } from "./support/scriptedSource.js"
import { test } from "./support/test.js"

/** A client that returns a token to token requests and an empty object to all others, and records both. */
const store = Effect.gen(function*() {
  const sent = yield* Ref.make<ReadonlyArray<HttpClientRequest.HttpClientRequest>>([])
  const client = HttpClient.make((request) =>
    Effect.map(Ref.updateAndGet(sent, (all) => [...all, request]), (all) =>
      HttpClientResponse.fromWeb(
        request,
        request.url.endsWith("/v1/oauth/accesstoken")
          ? Response.json({ access_token: `token-${all.length}`, token_type: "bearer" })
          : Response.json({})
      ))
  )
  return { sent: Ref.get(sent), http: Layer.succeed(HttpClient.HttpClient, client) }
})

const secretOptions = {
  authUrl: "https://auth.store.example",
  apiUrl: "https://api.store.example",
  clientId: "demo-client",
  clientSecret: Redacted.make("an invented secret")
}

const call = Effect.flatMap(AuthorizedHttpClient.AuthorizedHttpClient, (client) => client.get("/orders"))

/** Makes one call with these options; returns its exit and the requests. */
const calling = (options: StoreAuth.Options) =>
  Effect.gen(function*() {
    const { http, sent } = yield* store
    const exit = yield* Effect.exit(Effect.provide(call, Layer.provide(StoreAuth.layer(options), http)))
    return { exit, sent: yield* sent }
  })

describe("StoreAuth", () => {
  test("composes the endpoint, the provider and the client", function*() {
    const { sent } = yield* calling(secretOptions)
    deepStrictEqual(sent.map(({ method, url }) => `${method} ${url}`), [
      "POST https://auth.store.example/v1/oauth/accesstoken",
      "GET https://api.store.example/orders"
    ])
    assert.strictEqual(sent[1]?.headers["authorization"], "Bearer token-1")
  })

  test("make: two stores in one program share no token, acquisition or cooldown", function*() {
    const { http, sent } = yield* store
    const down = yield* stubApi(() => ({ status: 503 }))
    const north = yield* Effect.provide(StoreAuth.make(secretOptions), http)
    const south = yield* Effect.provide(
      StoreAuth.make({ ...secretOptions, endpoint: { deadline: "1 millis" } }),
      Layer.succeed(HttpClient.HttpClient, down.client)
    )
    yield* north.client.get("/orders")
    assert.strictEqual((yield* Effect.flip(south.client.get("/orders")))._tag, "TokenRefusedError")
    assert.isTrue(Option.isSome((yield* south.provider.status).cooldown))
    assert.isTrue(Option.isNone((yield* north.provider.status).cooldown))
    assert.strictEqual((yield* north.provider.status).state, "Fresh")
    deepStrictEqual([(yield* sent).length, (yield* down.sent).length], [2, 1])
  })

  test("layerShared: two layers over one store send one token request", function*() {
    const { http, sent } = yield* store
    const tokens = Layer.succeed(TokenStore.TokenStore, yield* TokenStore.makeMemory)
    const process = () => Layer.provide(StoreAuth.layerShared(secretOptions), [http, tokens])
    yield* Effect.provide(call, process())
    yield* Effect.provide(call, process())
    deepStrictEqual((yield* sent).map(({ method }) => method), ["POST", "GET", "GET"])
    yield* Effect.provide(call, Layer.provide(StoreAuth.layer(secretOptions), http))
    assert.strictEqual((yield* sent).length, 5, "control: without the store there are two token requests")
  })

  test("layerShared: a process that starts accepts no stored token with less than the provider's leeway left", function*() {
    const { http, sent } = yield* store
    const tokens = Layer.succeed(TokenStore.TokenStore, yield* TokenStore.makeMemory)
    const process = Layer.fresh(
      Layer.provide(StoreAuth.layerShared({ ...secretOptions, provider: { leeway: "2 minutes" } }), [http, tokens])
    )
    for (const [age, requests] of [["58 minutes", 3], ["1 millis", 6]] as const) {
      yield* Effect.provide(call, process)
      yield* TestClock.adjust(age)
      yield* Effect.provide(call, process)
      assert.strictEqual((yield* sent).length, requests)
    }
  })

  test("layerShared and layerSharedConfig pass on the options for sharing", function*() {
    const { http } = yield* store
    const memory = yield* TokenStore.makeMemory
    const leases = yield* Ref.make<ReadonlyArray<Duration.DurationInput>>([])
    const tokens = Layer.succeed(TokenStore.TokenStore, {
      ...memory,
      lease: (key: string, duration: Duration.DurationInput) =>
        Effect.zipRight(Ref.update(leases, (all) => [...all, duration]), memory.lease(`${key}-`, duration))
    })
    const shared = { lease: "7 seconds" } as const
    yield* Effect.provide(call, Layer.provide(StoreAuth.layerShared({ ...secretOptions, shared }), [http, tokens]))
    const config = Config.succeed({ ...secretOptions, clientId: "another-client", shared })
    yield* Effect.provide(call, Layer.provide(StoreAuth.layerSharedConfig(config), [http, tokens]))
    deepStrictEqual(yield* Ref.get(leases), [7000, 7000])
  })

  describe("transformClient", () => {
    const userAgent = HttpClient.mapRequest(HttpClientRequest.setHeader("user-agent", "my-shop/1.0"))

    test("applies to token requests and API requests, and to the latter of layerFromSource", function*() {
      const { sent } = yield* calling({ ...secretOptions, transformClient: userAgent })
      const { http, sent: sentFromSource } = yield* store
      const source = yield* answering(() => token("token-1"))
      const layer = StoreAuth.layerFromSource({ apiUrl: secretOptions.apiUrl, transformClient: userAgent })
      yield* Effect.provide(call, Layer.provide(layer, [http, source.layer]))
      const all = [...sent, ...yield* sentFromSource]
      deepStrictEqual(all.map(({ headers, method }) => [method, headers["user-agent"]]), [
        ["POST", "my-shop/1.0"],
        ["GET", "my-shop/1.0"],
        ["GET", "my-shop/1.0"]
      ])
    })

    const elsewhere = HttpClientRequest.setUrl("https://elsewhere.example/orders")

    it.effect.each<readonly [string, (client: HttpClient.HttpClient) => HttpClient.HttpClient]>([
      ["changes the URL of the original request", HttpClient.mapRequestInput(elsewhere)],
      ["changes the URL", HttpClient.mapRequest(elsewhere)],
      [
        "sends another request",
        (client: HttpClient.HttpClient) => HttpClient.make((request) => client.execute(elsewhere(request)))
      ]
    ])("sends no secret and no token to another origin when it %s", ([, transformClient]) =>
      Effect.gen(function*() {
        const { http, sent } = yield* store
        const { provider } = yield* Effect.provide(StoreAuth.make({ ...secretOptions, transformClient }), http)
        assert.strictEqual(yield* outcomeOf(provider.get), "Redirect")
        const source = yield* answering(() => token("token-1"))
        const layer = StoreAuth.layerFromSource({ apiUrl: secretOptions.apiUrl, transformClient })
        const error = yield* Effect.flip(Effect.provide(call, Layer.provide(layer, [http, source.layer])))
        assert.strictEqual(error._tag, "UntrustedOriginError")
        assert.strictEqual((yield* sent).length, 0)
      }).pipe(Effect.scoped))

    test("receives the error of a request to another origin, with its cause", function*() {
      const { http } = yield* store
      const errors: Array<HttpClientError.HttpClientError> = []
      const transformClient = (client: HttpClient.HttpClient) =>
        HttpClient.tapError(HttpClient.mapRequest(client, elsewhere), (error) => Effect.sync(() => errors.push(error)))
      const { provider } = yield* Effect.provide(StoreAuth.make({ ...secretOptions, transformClient }), http)
      yield* Effect.flip(provider.get)
      const [error] = errors
      assert(error?._tag === "RequestError" && error.cause instanceof UntrustedOriginError)
      assert.strictEqual(httpReason(error), "InvalidUrl")
      assert.include(error.message, error.cause.message)
      const { origin, trusted } = error.cause
      deepStrictEqual([origin, trusted], ["https://elsewhere.example", [secretOptions.authUrl]])
    })

    test("does not send the secret along a redirect of the endpoint, not even to a trusted origin", function*() {
      const endpoint = yield* stubApi(() => ({ status: 307, headers: { location: secretOptions.apiUrl } }))
      const { provider } = yield* Effect.provide(
        StoreAuth.make({ ...secretOptions, transformClient: HttpClient.followRedirects(3) }),
        Layer.succeed(HttpClient.HttpClient, endpoint.client)
      )
      assert.strictEqual(yield* outcomeOf(provider.get), "Redirect")
      assert.strictEqual((yield* endpoint.sent).length, 1)
    })

    test("stops fetch from following redirects, whatever RequestInit it provides", function*() {
      const inits: Array<RequestInit | undefined> = []
      const fetch: typeof globalThis.fetch = (_, init) => {
        inits.push(init)
        return Promise.resolve(Response.json({ access_token: "token-1", token_type: "bearer" }))
      }
      const { client } = yield* StoreAuth.make({
        ...secretOptions,
        transformClient: HttpClient.transformResponse(
          Effect.provideService(FetchHttpClient.RequestInit, { redirect: "follow", cache: "no-store" })
        )
      }).pipe(Effect.provide(Layer.provide(FetchHttpClient.layer, Layer.succeed(FetchHttpClient.Fetch, fetch))))
      yield* client.get("/orders")
      const seen = inits.map((init) => [init?.redirect, init?.cache])
      deepStrictEqual(seen, [["manual", "no-store"], ["manual", "no-store"]])
    })

    test("follows redirects to trusted origins only", function*() {
      const source = yield* answering(() => token("token-1"))
      for (
        const [location, visited] of [["https://cdn.store.example/a", 2], ["https://elsewhere.example/a", 1]] as const
      ) {
        const api = yield* stubApi((_, number) =>
          number === 1 ? { status: 302, headers: { location } } : { status: 200 }
        )
        const layer = StoreAuth.layerFromSource({
          apiUrl: secretOptions.apiUrl,
          client: { trustedOrigins: ["https://cdn.store.example"] },
          transformClient: HttpClient.followRedirects(3)
        })
        const exit = yield* Effect.exit(
          Effect.provide(call, Layer.provide(layer, [Layer.succeed(HttpClient.HttpClient, api.client), source.layer]))
        )
        assert.strictEqual((yield* api.sent).length, visited, location)
        assert.strictEqual(Exit.isSuccess(exit), visited === 2)
      }
    })
  })

  test("passes on the options of the client and of the endpoint", function*() {
    const { sent } = yield* calling({ ...secretOptions, client: { header: { name: "x-store-token" } } })
    assert.strictEqual(sent[1]?.headers["x-store-token"], "Bearer token-1")
    const { exit } = yield* calling({ ...secretOptions, endpoint: { maxResponseBytes: 3 } })
    const error = yield* Effect.flip(exit)
    assert.strictEqual(error._tag === "TokenRequestError" && error.reason, "TooLarge")
  })

  test("passes on the options of the provider", function*() {
    for (const [refreshAhead, requests] of [["1 minute", 1], ["10 minutes", 2]] as const) {
      const { http, sent } = yield* store
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        yield* provider.get
        yield* TestClock.adjust("53 minutes")
        yield* provider.get
        yield* settle
      }).pipe(Effect.provide(Layer.provide(StoreAuth.layer({ ...secretOptions, provider: { refreshAhead } }), http)))
      assert.strictEqual((yield* sent).length, requests, refreshAhead)
    }
  })

  test("allowInsecure applies to both the endpoint and the client", function*() {
    const insecure = { ...secretOptions, authUrl: "http://auth.store.example", apiUrl: "http://api.store.example" }
    assert.strictEqual((yield* calling({ ...insecure, allowInsecure: true })).sent.length, 2)
    for (const url of ["authUrl", "apiUrl"] as const) {
      const { exit, sent } = yield* calling({ ...secretOptions, [url]: insecure[url] })
      const error = yield* Effect.flip(exit)
      assert.strictEqual(error._tag === "ConfigurationError" && error.option, url)
      assert.strictEqual(sent.length, 0)
    }
  })

  test("layerConfig accepts a Config of the options or a record of Configs, with or without credentials", function*() {
    const { http, sent } = yield* store
    const { apiUrl, authUrl, clientId, clientSecret } = secretOptions
    const whole: Config.Config<StoreAuth.Options> = Config.succeed(secretOptions)
    const credentials = ClientCredentials.make(secretOptions)
    const urls = { authUrl: Config.succeed(authUrl), apiUrl: Config.succeed(apiUrl) }
    const layers = [
      StoreAuth.layerConfig(whole),
      StoreAuth.layerConfig({
        ...urls,
        clientId: Config.succeed(clientId),
        clientSecret: Config.succeed(clientSecret)
      }),
      StoreAuth.layerConfig(Config.succeed({ authUrl, apiUrl, credentials })),
      StoreAuth.layerConfig({ ...urls, credentials: Config.succeed(credentials) })
    ]
    for (const layer of layers) yield* Effect.provide(call, Layer.provide(layer, http))
    assert.strictEqual((yield* sent).length, 8)
  })

  it("names the service when no source is provided", () => {
    assert.throws(
      () => Context.unsafeGet(Context.empty(), TokenSource.TokenSource),
      /: @store-api\/core\/TokenSource\b/
    )
  })

  test("layerConfig of the provider and of the client read their options", function*() {
    const source = yield* answering((n) => token(`token-${n}`))
    const api = yield* stubApi()
    const layer = AuthorizedHttpClient.layerConfig({ apiUrl: Config.succeed("https://api.store.example") }).pipe(
      Layer.provideMerge(AccessTokenProvider.layerConfig({ leeway: Config.succeed("10 seconds") })),
      Layer.provide(source.layer),
      Layer.provide(Layer.succeed(HttpClient.HttpClient, api.client))
    )
    yield* Effect.provide(call, layer)
    assert.strictEqual((yield* api.sent)[0]?.headers["authorization"], "Bearer token-1")
  })
})

describe("an invalid option is named when the layer is built", () => {
  const positive = "must be greater than zero"
  const atLeastOne = "must be a whole number of bytes, at least 1"
  const withoutPath = "must be the base URL, without /v1/oauth/accesstoken"

  it.effect.each<[keyof TokenEndpoint.Options, unknown, string]>([
    ["deadline", 0, positive],
    ["deadline", NaN, positive],
    ["attemptTimeout", "-1 seconds", positive],
    ["maxResponseBytes", 0, atLeastOne],
    ["maxResponseBytes", NaN, atLeastOne],
    ["maxResponseBytes", Infinity, atLeastOne],
    ["authUrl", "https://auth.store.example/v1/oauth/accesstoken", withoutPath],
    ["authUrl", "https://auth.store.example/base/v1/oauth/accesstoken/", withoutPath]
  ])("%s: %s", ([option, value, reason]) =>
    Effect.gen(function*() {
      const { http } = yield* store
      const { authUrl } = secretOptions
      const options = { authUrl, credentials: ClientCredentials.make(secretOptions), [option]: value }
      const error = yield* Effect.flip(Effect.provide(TokenEndpoint.make(options), http))
      deepStrictEqual([error.option, error.reason], [option, reason])
    }))
})
