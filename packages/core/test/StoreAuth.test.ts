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
import { httpReason } from "@store-api/testing/effectMajor"
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
const callWith = (options: StoreAuth.Options) =>
  Effect.gen(function*() {
    const { http, sent } = yield* store
    const exit = yield* Effect.exit(
      Effect.provide(call, Layer.provide(StoreAuth.layer(options), http))
    )
    return { exit, sent: yield* sent }
  })

describe("StoreAuth", () => {
  test("sends the call with the token of its own token request", function*() {
    const { sent } = yield* callWith(secretOptions)
    deepStrictEqual(
      sent.map(({ headers, method, url }) => [method, url, headers["authorization"]]),
      [
        ["POST", "https://auth.store.example/v1/oauth/accesstoken", undefined],
        ["GET", "https://api.store.example/orders", "Bearer token-1"]
      ]
    )
  })

  test("passes on the options of the client", function*() {
    const client = { header: { name: "x-store-token" } }
    const { sent } = yield* callWith({ ...secretOptions, client })
    assert.strictEqual(sent[1]?.headers["x-store-token"], "Bearer token-1")
  })

  test("passes on the options of the endpoint", function*() {
    const { exit } = yield* callWith({ ...secretOptions, endpoint: { maxResponseBytes: 3 } })
    const error = yield* Effect.flip(exit)
    assert.strictEqual(error._tag === "TokenRequestError" && error.reason, "TooLarge")
  })

  const { clientSecretBasic, clientSecretPost, specification } = TokenRequest

  test.each([
    ["a secret that clientSecretPost can send", clientSecretPost(), "a&b", Option.none()],
    ["a secret with &", specification, "a&b", Option.some("CredentialsError")],
    ["a line break in a secret", clientSecretBasic(), "a\nb", Option.some("CredentialsError")],
    [
      "a wrong parameter",
      clientSecretPost({ scope: "\ud800" }),
      "a",
      Option.some("ConfigurationError")
    ],
    [
      "a secret with & in a copy of the specification's request",
      { ...specification, identity: "a copy" },
      "a&b",
      Option.some("CredentialsError")
    ]
  ])(
    "the layer checks a token request before it sends it: %s",
    function*([, request, secret, tag]) {
      const clientSecret = Redacted.make(secret)
      const options = { ...secretOptions, clientSecret, endpoint: { request } }
      const { exit, sent } = yield* callWith(options)
      deepStrictEqual([errorTag(exit), sent.length], [tag, Option.isNone(tag) ? 2 : 0])
    }
  )

  describe("a request of your own, when the layer is built", () => {
    const { apiUrl, authUrl } = secretOptions

    /** Builds the layer without a token request. Returns the tag of its error. */
    const buildLayer = (
      credentials:
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
        const layer = StoreAuth.layer({
          authUrl,
          apiUrl,
          ...credentials,
          endpoint: { request }
        })
        const exit = yield* Effect.exit(Layer.build(Layer.provide(layer, http)))
        return { made: yield* Ref.get(made), tag: errorTag(exit) }
      })

    const refused = new AccessTokenError.CredentialsError({
      field: "clientSecret",
      reason: "is not a private key"
    })
    const refusing = { checkCredentials: () => Effect.fail(refused) }

    test("a request of your own is not made when the layer is built, because it may sign", function*() {
      deepStrictEqual(yield* buildLayer(secretOptions, {}), { made: 0, tag: Option.none() })
    })

    test("checkCredentials of a request checks a constant secret when the layer is built", function*() {
      deepStrictEqual(yield* buildLayer(secretOptions, refusing), {
        made: 0,
        tag: Option.some("CredentialsError")
      })
    })

    test("credentials that are an effect are not checked when the layer is built", function*() {
      const credentials = ClientCredentials.make({
        clientId,
        clientSecret: Redacted.make(clientSecret)
      })
      deepStrictEqual(yield* buildLayer({ credentials }, refusing), {
        made: 0,
        tag: Option.none()
      })
    })
  })

  test("two results of make in one program share no token, acquisition or cooldown", function*() {
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
  const sharedStore = Effect.gen(function*() {
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
    return { leases, over, sent }
  })

  test.each<readonly [string, Partial<StoreAuth.SecretOptions>, requests: number]>([
    ["share a token", {}, 3],
    [
      "share no token if their scopes differ",
      { endpoint: { request: clientSecretPost({ scope: "orders" }) } },
      4
    ]
  ])("two layers that layerShared returns for one store %s", function*([, other, requests]) {
    const { over, sent } = yield* sharedStore
    yield* over(StoreAuth.layerShared(secretOptions))
    yield* over(StoreAuth.layerShared({ ...secretOptions, ...other }))
    assert.lengthOf(yield* sent, requests)
  })

  test("with layerShared, a process that starts accepts no stored token with less than the provider's leeway left", function*() {
    const { over, sent } = yield* sharedStore
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

  const withLease = { ...secretOptions, shared: { lease: "7 seconds" } } as const

  test.each([
    ["layerShared", StoreAuth.layerShared(withLease)],
    ["layerSharedConfig", StoreAuth.layerSharedConfig(Config.succeed(withLease))]
  ])("%s passes on the options for sharing", function*([, layer]) {
    const { leases, over } = yield* sharedStore
    yield* over(layer)
    deepStrictEqual(leases, [7000])
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
    const transformClient = HttpClient.mapRequest(
      HttpClientRequest.setHeader("user-agent", "my-shop/1.0")
    )

    test("applies to token requests and API requests alike", function*() {
      const { sent } = yield* callWith({ ...secretOptions, transformClient })
      deepStrictEqual(
        sent.map(({ headers, method }) => `${method} ${headers["user-agent"]}`),
        ["POST my-shop/1.0", "GET my-shop/1.0"]
      )
    })

    test("applies to the API requests of layerFromSource", function*() {
      const { sent } = yield* fromSource({ transformClient })
      deepStrictEqual(sent.map(({ headers }) => headers["user-agent"]), ["my-shop/1.0"])
    })

    const elsewhere = HttpClientRequest.setUrl("https://elsewhere.example/orders")

    const redirections: ReadonlyArray<
      readonly [string, (client: HttpClient.HttpClient) => HttpClient.HttpClient]
    > = [
      ["changes the URL of the original request", HttpClient.mapRequestInput(elsewhere)],
      ["changes the URL", HttpClient.mapRequest(elsewhere)],
      [
        "sends another request",
        (client) => HttpClient.make((request) => client.execute(elsewhere(request)))
      ]
    ]

    test.each(redirections)(
      "sends no secret to another origin when it %s",
      function*([, transformClient]) {
        const { http, sent } = yield* store
        const { provider } = yield* Effect.provide(
          StoreAuth.make({ ...secretOptions, transformClient }),
          http
        )
        assert.strictEqual(yield* outcomeOf(provider.get), "Redirect")
        deepStrictEqual(yield* sent, [])
      }
    )

    test.each(redirections)(
      "sends no token to another origin when it %s",
      function*([, transformClient]) {
        const { exit, sent } = yield* fromSource({ transformClient })
        assert.strictEqual((yield* Effect.flip(exit))._tag, "UntrustedOriginError")
        deepStrictEqual(sent, [])
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

    test.each([
      ["https://cdn.store.example/a", 2],
      ["https://elsewhere.example/a", 1]
    ])("follows redirects only to trusted origins: %s", function*([location, visited]) {
      const { exit, sent } = yield* fromSource(
        {
          client: { trustedOrigins: ["https://cdn.store.example"] },
          transformClient: HttpClient.followRedirects(3)
        },
        (_, number) => number === 1 ? { status: 302, headers: { location } } : { status: 200 }
      )
      deepStrictEqual([sent.length, Exit.isSuccess(exit)], [visited, visited === 2])
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

  test("allowInsecure applies to the endpoint as well as to the client", function*() {
    const { sent } = yield* callWith({
      ...secretOptions,
      authUrl: "http://auth.store.example",
      apiUrl: "http://api.store.example",
      allowInsecure: true
    })
    assert.lengthOf(sent, 2)
  })

  const { apiUrl, authUrl } = secretOptions
  const whole: Config.Config<StoreAuth.Options> = Config.succeed(secretOptions)
  const credentials = ClientCredentials.make(secretOptions)
  const urls = { authUrl: Config.succeed(authUrl), apiUrl: Config.succeed(apiUrl) }
  const secrets = {
    clientId: Config.succeed(secretOptions.clientId),
    clientSecret: Config.succeed(secretOptions.clientSecret)
  }

  test.each([
    ["a Config of the options", StoreAuth.layerConfig(whole)],
    ["a record of Configs", StoreAuth.layerConfig({ ...urls, ...secrets })],
    [
      "a Config of options with credentials",
      StoreAuth.layerConfig(Config.succeed({ authUrl, apiUrl, credentials }))
    ],
    [
      "a record of Configs with credentials",
      StoreAuth.layerConfig({ ...urls, credentials: Config.succeed(credentials) })
    ]
  ])("layerConfig accepts %s", function*([, layer]) {
    const { http, sent } = yield* store
    yield* Effect.provide(call, Layer.provide(layer, http))
    assert.lengthOf(yield* sent, 2)
  })

  it("names the service when no source is provided", () => {
    assert.throws(
      () => Context.unsafeGet(Context.empty(), TokenSource.TokenSource),
      /: @store-api\/core\/TokenSource\b/
    )
  })

  test("layerConfig of the client works over layerConfig of the provider", function*() {
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

  const { STORE_API_CLIENT_SECRET, STORE_API_URL, ...missing } = complete
  const present = { STORE_API_CLIENT_SECRET, STORE_API_URL }

  test("names only the missing variables", function*() {
    const text = renderings(yield* buildError(present))
    for (const name of Object.keys(missing)) assert.include(text, name)
    for (const name of Object.keys(present)) assert.notInclude(text, name)
  })

  test("shows no value of the other variables when some are missing", function*() {
    const error = yield* buildError(present)
    for (const value of Object.values(present)) assert.isFalse(shows(error, value))
  })

  test("builds the layer from a complete environment without a request", function*() {
    yield* build(complete)
  })

  const variables = [
    ["STORE_API_AUTH_URL", "authUrl", "http://canary.shop.example"],
    ["STORE_API_URL", "apiUrl", "https://:canary@api.shop.example"],
    ["STORE_API_CLIENT_ID", "clientId", "canary&"],
    ["STORE_API_CLIENT_SECRET", "clientSecret", "canary\n"]
  ] as const

  /** The name in an error of the option or the field, and its reason. */
  const subjectOf = (error: Effect.Effect.Success<ReturnType<typeof buildError>>) => {
    if (error._tag === "ConfigurationError") return [error.option, error.reason]
    return error._tag === "CredentialsError" ? [error.field, error.reason] : assert.fail()
  }

  test.each(variables)("fails when the layer is built with an empty %s", function*(
    [name, key]
  ) {
    for (const value of key.endsWith("Url") ? ["", "  "] : [""]) {
      const [subject, reason] = subjectOf(yield* buildError({ ...complete, [name]: value }))
      assert.strictEqual(subject, key)
      assert.match(reason ?? "", /^is empty/)
    }
  })

  test.each(variables)("fails when the layer is built with an invalid %s", function*(
    [name, key, invalid]
  ) {
    const [subject, reason] = subjectOf(yield* buildError({ ...complete, [name]: invalid }))
    assert.strictEqual(subject, key)
    assert.notMatch(reason ?? "", /^is empty/)
  })

  test.each(variables)("shows no value when %s is invalid", function*([name, , invalid]) {
    const error = yield* buildError({ ...complete, [name]: invalid })
    for (const text of ["canary", clientSecret, clientId]) assert.isFalse(shows(error, text))
  })
})
