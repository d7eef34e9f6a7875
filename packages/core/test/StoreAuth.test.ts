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
  AccessTokenError,
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth,
  TokenRequest,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { httpReason } from "@store-api/testing/effectLine"
import { renderings, shows } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import {
  Cause,
  Config,
  ConfigProvider,
  Context,
  type Duration,
  Effect,
  Exit,
  Layer,
  Option,
  Redacted,
  Ref,
  TestClock
} from "effect"
import * as FakeClient from "./support/fakeClient.js"
import { makeSource, outcomeOf, settle, token } from "./support/scriptedSource.js"
import { clientId, clientSecret } from "./support/wire.js"

/** A client that returns a token to token requests and an empty object to all others, and records both. */
const store = Effect.gen(function*() {
  const sent = yield* Ref.make<ReadonlyArray<HttpClientRequest.HttpClientRequest>>([])
  const client = HttpClient.make((request) =>
    Effect.map(
      Ref.updateAndGet(sent, (all) => [...all, request]),
      (all) =>
        HttpClientResponse.fromWeb(
          request,
          request.url.endsWith("/v1/oauth/accesstoken")
            ? Response.json({ access_token: `token-${all.length}`, token_type: "bearer" })
            : Response.json({})
        )
    )
  )
  return { sent: Ref.get(sent), http: Layer.succeed(HttpClient.HttpClient, client) }
})

const secretOptions = {
  authUrl: "https://auth.store.example",
  apiUrl: "https://api.store.example",
  clientId: "demo-client",
  clientSecret: Redacted.make("an invented secret")
}

const call = Effect.flatMap(
  AuthorizedHttpClient.AuthorizedHttpClient,
  (client) => client.get("/orders")
)

const errorTag = <A, E extends { readonly _tag: string }>(exit: Exit.Exit<A, E>) =>
  Option.map(
    Exit.isFailure(exit) ? Cause.failureOption(exit.cause) : Option.none(),
    ({ _tag }) => _tag
  )

/** Makes one call with these options; returns its exit and the requests. */
const calling = (options: StoreAuth.Options) =>
  Effect.gen(function*() {
    const { http, sent } = yield* store
    const exit = yield* Effect.exit(
      Effect.provide(call, Layer.provide(StoreAuth.layer(options), http))
    )
    return { exit, sent: yield* sent }
  })

describe("StoreAuth", () => {
  test("composes the endpoint, the provider and the client, and passes on their options", function*() {
    for (
      const [client, header, maxResponseBytes, requests] of [
        [{}, "authorization", undefined, 2],
        [{ header: { name: "x-store-token" } }, "x-store-token", undefined, 2],
        [{}, "authorization", 3, 1]
      ] as const
    ) {
      const { exit, sent } = yield* calling({
        ...secretOptions,
        client,
        endpoint: { maxResponseBytes }
      })
      deepStrictEqual(
        sent.map(({ headers, method, url }) => `${method} ${url} ${headers[header] ?? ""}`),
        [
          "POST https://auth.store.example/v1/oauth/accesstoken ",
          "GET https://api.store.example/orders Bearer token-1"
        ].slice(0, requests)
      )
      if (Exit.isSuccess(exit)) continue
      const error = yield* Effect.flip(exit)
      assert.strictEqual(error._tag === "TokenRequestError" && error.reason, "TooLarge")
    }
  })

  test("checks the credentials and the parameters of another request when the layer is built", function*() {
    const { clientSecretBasic, clientSecretPost, specification } = TokenRequest
    const tagOf = (request: TokenRequest.TokenRequest, secret = "a&b") =>
      Effect.map(
        calling({
          ...secretOptions,
          clientSecret: Redacted.make(secret),
          endpoint: { request }
        }),
        ({ exit, sent }) =>
          Exit.isSuccess(exit)
            ? "a response"
            : `${Option.getOrThrow(errorTag(exit))} ${sent.length}`
      )
    assert.strictEqual(yield* tagOf(clientSecretPost()), "a response")
    assert.strictEqual(yield* tagOf(specification), "CredentialsError 0")
    assert.strictEqual(yield* tagOf(clientSecretBasic(), "a\nb"), "CredentialsError 0")
    assert.strictEqual(
      yield* tagOf(clientSecretPost({ scope: "\ud800" })),
      "ConfigurationError 0"
    )
    assert.strictEqual(
      yield* tagOf({ ...specification, identity: "a copy" }),
      "CredentialsError 0"
    )
  })

  describe("a request of your own, when the layer is built", () => {
    const { apiUrl, authUrl } = secretOptions

    /** Builds the layer without a token request. Returns the tag of its error. */
    const build = (
      given:
        | Pick<StoreAuth.CredentialsOptions, "credentials">
        | Pick<StoreAuth.SecretOptions, "clientId" | "clientSecret">,
      change: Partial<TokenRequest.TokenRequest>
    ) =>
      Effect.gen(function*() {
        const { http } = yield* store
        const made = yield* Ref.make(0)
        const request = TokenRequest.make({
          identity: "signed",
          request: () =>
            Effect.as(Ref.update(made, (count) => count + 1), HttpClientRequest.post("")),
          ...change
        })
        const layer = StoreAuth.layer({ authUrl, apiUrl, ...given, endpoint: { request } })
        const exit = yield* Effect.exit(Layer.build(Layer.provide(layer, http)))
        return { made: yield* Ref.get(made), tag: errorTag(exit) }
      })

    const refused = new AccessTokenError.CredentialsError({
      field: "clientSecret",
      reason: "is not a private key"
    })
    const refusing = { checkCredentials: () => Effect.fail(refused) }

    test("is not made, because it may sign an assertion", function*() {
      deepStrictEqual(yield* build(secretOptions, {}), { made: 0, tag: Option.none() })
    })

    test("checks a client id and secret by its checkCredentials", function*() {
      deepStrictEqual(yield* build(secretOptions, refusing), {
        made: 0,
        tag: Option.some("CredentialsError")
      })
    })

    test("does not check credentials that are given as an effect", function*() {
      const credentials = ClientCredentials.make({
        clientId,
        clientSecret: Redacted.make(clientSecret)
      })
      deepStrictEqual(yield* build({ credentials }, refusing), { made: 0, tag: Option.none() })
    })
  })

  test("make: two stores in one program share no token, acquisition or cooldown", function*() {
    const { http, sent } = yield* store
    const down = yield* FakeClient.stubApi(() => ({ status: 503 }))
    const north = yield* Effect.provide(StoreAuth.make(secretOptions), http)
    const south = yield* Effect.provide(
      StoreAuth.make({ ...secretOptions, endpoint: { deadline: "1 millis" } }),
      Layer.succeed(HttpClient.HttpClient, down.client)
    )
    yield* north.client.get("/orders")
    assert.strictEqual(
      (yield* Effect.flip(south.client.get("/orders")))._tag,
      "TokenRefusedError"
    )
    assert.isTrue(Option.isSome((yield* south.provider.status).cooldown))
    const { cooldown, state } = yield* north.provider.status
    deepStrictEqual([cooldown, state], [Option.none(), "Fresh"])
    deepStrictEqual([(yield* sent).length, (yield* down.sent).length], [2, 1])
  })

  /** A layer over a common store of tokens, which records the leases that are asked for. */
  const sharing = Effect.gen(function*() {
    const { http, sent } = yield* store
    const memory = yield* TokenStore.makeMemory
    const leases: Array<Duration.DurationInput> = []
    const tokens = Layer.succeed(TokenStore.TokenStore, {
      ...memory,
      lease: (key: string, duration: Duration.DurationInput) => {
        leases.push(duration)
        return memory.lease(key, duration)
      }
    })
    const over = (layer: ReturnType<typeof StoreAuth.layerSharedConfig>) =>
      Effect.provide(call, Layer.fresh(Layer.provide(layer, [http, tokens])))
    return { http, leases, over, sent }
  })

  test("layerShared: two layers over one store send one token request, but one of another scope its own", function*() {
    const { http, over, sent } = yield* sharing
    const endpoint = { request: TokenRequest.clientSecretPost({ scope: "orders" }) }
    for (const other of [{}, {}, { endpoint }]) {
      yield* over(StoreAuth.layerShared({ ...secretOptions, ...other }))
    }
    deepStrictEqual((yield* sent).map(({ method }) => method), [
      "POST",
      "GET",
      "GET",
      "POST",
      "GET"
    ])
    yield* Effect.provide(call, Layer.provide(StoreAuth.layer(secretOptions), http))
    assert.strictEqual(
      (yield* sent).length,
      7,
      "control: without the store there are two token requests"
    )
  })

  test("layerShared: a process that starts accepts no stored token with less than the provider's leeway left", function*() {
    const { over, sent } = yield* sharing
    const process = StoreAuth.layerShared({
      ...secretOptions,
      provider: { leeway: "2 minutes" }
    })
    for (const [age, requests] of [["58 minutes", 3], ["1 millis", 6]] as const) {
      yield* over(process)
      yield* TestClock.adjust(age)
      yield* over(process)
      assert.strictEqual((yield* sent).length, requests)
    }
  })

  test("layerShared and layerSharedConfig pass on the options for sharing", function*() {
    const { leases, over } = yield* sharing
    const shared = { lease: "7 seconds" } as const
    yield* over(StoreAuth.layerShared({ ...secretOptions, shared }))
    yield* over(
      StoreAuth.layerSharedConfig(
        Config.succeed({ ...secretOptions, clientId: "another-client", shared })
      )
    )
    deepStrictEqual(leases, [7000, 7000])
  })

  /** Makes one call with a layer over a source of tokens; returns its exit and the requests. */
  const fromSource = (
    options: Partial<StoreAuth.SourceOptions>,
    respond?: Parameters<typeof FakeClient.stubApi>[0]
  ) =>
    Effect.gen(function*() {
      const api = yield* FakeClient.stubApi(respond)
      const source = yield* makeSource(() => token("token-1"))
      const http = Layer.succeed(HttpClient.HttpClient, api.client)
      const layer = StoreAuth.layerFromSource({ apiUrl: secretOptions.apiUrl, ...options })
      const exit = yield* Effect.exit(
        Effect.provide(call, Layer.provide(layer, [http, source.layer]))
      )
      return { exit, sent: yield* api.sent }
    })

  describe("transformClient", () => {
    test("applies to token requests and API requests, and to the latter of layerFromSource", function*() {
      const transformClient = HttpClient.mapRequest(
        HttpClientRequest.setHeader("user-agent", "my-shop/1.0")
      )
      const { sent } = yield* calling({ ...secretOptions, transformClient })
      const all = [...sent, ...(yield* fromSource({ transformClient })).sent]
      deepStrictEqual(
        all.map(({ headers, method }) => `${method} ${headers["user-agent"]}`),
        ["POST my-shop/1.0", "GET my-shop/1.0", "GET my-shop/1.0"]
      )
    })

    const elsewhere = HttpClientRequest.setUrl("https://elsewhere.example/orders")

    test.each<readonly [string, (client: HttpClient.HttpClient) => HttpClient.HttpClient]>([
      ["changes the URL of the original request", HttpClient.mapRequestInput(elsewhere)],
      ["changes the URL", HttpClient.mapRequest(elsewhere)],
      [
        "sends another request",
        (client) => HttpClient.make((request) => client.execute(elsewhere(request)))
      ]
    ])(
      "sends no secret and no token to another origin when it %s",
      function*([, transformClient]) {
        const { http, sent } = yield* store
        const { provider } = yield* Effect.provide(
          StoreAuth.make({ ...secretOptions, transformClient }),
          http
        )
        assert.strictEqual(yield* outcomeOf(provider.get), "Redirect")
        const api = yield* fromSource({ transformClient })
        assert.strictEqual((yield* Effect.flip(api.exit))._tag, "UntrustedOriginError")
        deepStrictEqual([...yield* sent, ...api.sent], [])
      }
    )

    test("receives the error of a request to another origin, with its cause", function*() {
      const { http } = yield* store
      const errors: Array<HttpClientError.HttpClientError> = []
      const transformClient = (client: HttpClient.HttpClient) =>
        HttpClient.tapError(
          HttpClient.mapRequest(client, elsewhere),
          (error) => Effect.sync(() => errors.push(error))
        )
      const { provider } = yield* Effect.provide(
        StoreAuth.make({ ...secretOptions, transformClient }),
        http
      )
      yield* Effect.flip(provider.get)
      const [error] = errors
      assert(
        error?._tag === "RequestError" &&
          error.cause instanceof AccessTokenError.UntrustedOriginError
      )
      assert.strictEqual(httpReason(error), "InvalidUrl")
      assert.include(error.message, error.cause.message)
      const { origin, trusted } = error.cause
      deepStrictEqual([origin, trusted], ["https://elsewhere.example", [
        secretOptions.authUrl
      ]])
    })

    test("does not send the secret along a redirect of the endpoint, not even to a trusted origin", function*() {
      const endpoint = yield* FakeClient.stubApi(() => ({
        status: 307,
        headers: { location: secretOptions.apiUrl }
      }))
      const { provider } = yield* Effect.provide(
        StoreAuth.make({ ...secretOptions, transformClient: HttpClient.followRedirects(3) }),
        Layer.succeed(HttpClient.HttpClient, endpoint.client)
      )
      deepStrictEqual([yield* outcomeOf(provider.get), (yield* endpoint.sent).length], [
        "Redirect",
        1
      ])
    })

    test("stops fetch from following redirects, whatever RequestInit it provides", function*() {
      const inits: Array<RequestInit | undefined> = []
      const fetch: typeof globalThis.fetch = (_, init) => {
        inits.push(init)
        return Promise.resolve(
          Response.json({ access_token: "token-1", token_type: "bearer" })
        )
      }
      const { client } = yield* StoreAuth.make({
        ...secretOptions,
        transformClient: HttpClient.transformResponse(
          Effect.provideService(FetchHttpClient.RequestInit, {
            redirect: "follow",
            cache: "no-store"
          })
        )
      }).pipe(
        Effect.provide(
          Layer.provide(FetchHttpClient.layer, Layer.succeed(FetchHttpClient.Fetch, fetch))
        )
      )
      yield* client.get("/orders")
      const seen = inits.map((init) => [init?.redirect, init?.cache])
      deepStrictEqual(seen, [["manual", "no-store"], ["manual", "no-store"]])
    })

    test("follows redirects to trusted origins only", function*() {
      const targets = [["https://cdn.store.example/a", 2], [
        "https://elsewhere.example/a",
        1
      ]] as const
      for (const [location, visited] of targets) {
        const { exit, sent } = yield* fromSource(
          {
            client: { trustedOrigins: ["https://cdn.store.example"] },
            transformClient: HttpClient.followRedirects(3)
          },
          (_, number) =>
            number === 1 ? { status: 302, headers: { location } } : { status: 200 }
        )
        deepStrictEqual(
          [sent.length, Exit.isSuccess(exit)],
          [visited, visited === 2],
          location
        )
      }
    })
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
      }).pipe(
        Effect.provide(
          Layer.provide(
            StoreAuth.layer({ ...secretOptions, provider: { refreshAhead } }),
            http
          )
        )
      )
      assert.strictEqual((yield* sent).length, requests, refreshAhead)
    }
  })

  test("allowInsecure applies to both the endpoint and the client", function*() {
    const insecure = {
      ...secretOptions,
      authUrl: "http://auth.store.example",
      apiUrl: "http://api.store.example"
    }
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
    const secrets = {
      clientId: Config.succeed(clientId),
      clientSecret: Config.succeed(clientSecret)
    }
    const layers = [
      StoreAuth.layerConfig(whole),
      StoreAuth.layerConfig({ ...urls, ...secrets }),
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
    const source = yield* makeSource((n) => token(`token-${n}`))
    const api = yield* FakeClient.stubApi()
    const layer = AuthorizedHttpClient.layerConfig({
      apiUrl: Config.succeed("https://api.store.example")
    }).pipe(
      Layer.provideMerge(
        AccessTokenProvider.layerConfig({ leeway: Config.succeed("10 seconds") })
      ),
      Layer.provide(source.layer),
      Layer.provide(Layer.succeed(HttpClient.HttpClient, api.client))
    )
    yield* Effect.provide(call, layer)
    assert.strictEqual((yield* api.sent)[0]?.headers["authorization"], "Bearer token-1")
  })
})

const withEnvironment = (entries: Readonly<Record<string, string>>) =>
  Effect.provide(
    Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(entries))))
  )

const complete = {
  STORE_API_AUTH_URL: "https://auth.shop.example",
  STORE_API_URL: "https://api.shop.example",
  STORE_API_CLIENT_ID: clientId,
  STORE_API_CLIENT_SECRET: clientSecret
}

const names = Object.keys(complete)

/** Builds the layer from an environment and checks that no request is sent. */
const build = (entries: Readonly<Record<string, string>>) =>
  Effect.gen(function*() {
    const client = FakeClient.make(FakeClient.token)
    const exit = yield* Layer.build(StoreAuth.layerConfig()).pipe(
      Effect.provide(client.layer),
      withEnvironment(entries),
      Effect.exit
    )
    assert.lengthOf(client.times, 0)
    return yield* exit
  })

/** The error of a layer that cannot be built from an environment. */
const buildError = (entries: Readonly<Record<string, string>>) => Effect.flip(build(entries))

describe("StoreAuth.config", () => {
  test("reads the four variables, also with another prefix", function*() {
    for (
      const [prefix, other] of [["STORE_API", undefined], [
        "OTHER_STORE",
        "OTHER_STORE"
      ]] as const
    ) {
      const prefixed = Object.entries(complete).map((
        [name, value]
      ) => [name.replace("STORE_API", prefix), value])
      const options = yield* StoreAuth.config(other).pipe(
        withEnvironment({
          STORE_API_CLIENT_ID: "another",
          ...(Object.fromEntries(prefixed) as Record<string, string>)
        })
      )
      deepStrictEqual(
        { ...options, clientSecret: Redacted.value(options.clientSecret) },
        {
          authUrl: "https://auth.shop.example",
          apiUrl: "https://api.shop.example",
          clientId,
          clientSecret
        }
      )
      assert.isFalse(shows(options, clientSecret))
    }
  })

  test("names all missing variables at once", function*() {
    for (const prefix of ["STORE_API", "OTHER"]) {
      const error = yield* Effect.flip(
        Effect.provide(StoreAuth.config(prefix), Layer.empty).pipe(withEnvironment({}))
      )
      for (const name of names) {
        assert.include(renderings(error), name.replace("STORE_API", prefix))
      }
    }
  })

  test("names only the missing variables, and shows no value of the others", function*() {
    const { STORE_API_CLIENT_SECRET, STORE_API_URL, ...missing } = complete
    const error = yield* buildError({ STORE_API_CLIENT_SECRET, STORE_API_URL })
    for (const name of Object.keys(missing)) assert.include(renderings(error), name)
    for (const name of ["STORE_API_CLIENT_SECRET", "STORE_API_URL"]) {
      assert.notInclude(renderings(error), name)
    }
    for (const value of [STORE_API_CLIENT_SECRET, STORE_API_URL]) {
      assert.isFalse(shows(error, value))
    }
  })

  test("builds the layer from a complete environment without a request", function*() {
    yield* build(complete)
  })

  test.each([
    ["STORE_API_AUTH_URL", "authUrl", "http://canary.shop.example"],
    ["STORE_API_URL", "apiUrl", "https://:canary@api.shop.example"],
    ["STORE_API_CLIENT_ID", "clientId", "canary&"],
    ["STORE_API_CLIENT_SECRET", "clientSecret", "canary\n"]
  ])(
    "fails when the layer is built with an invalid or empty %s, and shows no value",
    function*([name, key, invalid]) {
      for (const value of key.endsWith("Url") ? ["", "  ", invalid] : ["", invalid]) {
        const error = yield* buildError({ ...complete, [name]: value })
        if (key === "authUrl" || key === "apiUrl") {
          assert.instanceOf(error, AccessTokenError.ConfigurationError)
          assert.strictEqual(error.option, key)
        } else {
          assert.instanceOf(error, AccessTokenError.CredentialsError)
          assert.strictEqual(error.field, key)
        }
        // Not as if it were missing.
        assert.strictEqual(error.reason.startsWith("is empty"), value !== invalid)
        for (const text of ["canary", clientSecret, clientId]) {
          assert.isFalse(
            shows(error, text)
          )
        }
      }
    }
  )
})
