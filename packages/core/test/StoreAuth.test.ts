import type { HttpClientRequest } from "@effect/platform"
import { HttpClient, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessToken,
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth,
  TokenEndpoint,
  TokenSource
} from "@store-api/core"
import { Config, Context, Effect, Layer, Redacted, Ref, TestClock } from "effect"
import { answering, settle, token } from "./support/scriptedSource.js"
import { stubApi } from "./support/stubApi.js"

/** Answers token requests with a token of an hour, all others with an empty object; keeps both. */
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

/** What a call sends under these options. */
const calling = (options: StoreAuth.Options) =>
  Effect.gen(function*() {
    const { http, sent } = yield* store
    const exit = yield* Effect.exit(Effect.provide(call, Layer.provide(StoreAuth.layer(options), http)))
    return { exit, sent: yield* sent }
  })

describe("StoreAuth", () => {
  it.effect("composes the endpoint, the provider and the client", () =>
    Effect.gen(function*() {
      const { sent } = yield* calling(secretOptions)
      deepStrictEqual(sent.map(({ method, url }) => `${method} ${url}`), [
        "POST https://auth.store.example/v1/oauth/accesstoken",
        "GET https://api.store.example/orders"
      ])
      assert.strictEqual(sent[1]?.headers["authorization"], "Bearer token-1")
    }))

  it.effect("takes credentials that are checked, or read at each acquisition", () =>
    Effect.gen(function*() {
      const { apiUrl, authUrl } = secretOptions
      const checked = yield* ClientCredentials.make(secretOptions)
      for (const credentials of [checked, Effect.succeed(checked)]) {
        const { sent } = yield* calling({ authUrl, apiUrl, credentials })
        assert.strictEqual(sent.length, 2)
      }
    }))

  it.effect("hands the client's options on", () =>
    Effect.gen(function*() {
      const { sent } = yield* calling({ ...secretOptions, client: { header: { name: "x-store-token" } } })
      assert.strictEqual(sent[1]?.headers["x-store-token"], "Bearer token-1")
    }))

  it.effect("hands the endpoint's options on", () =>
    Effect.gen(function*() {
      const { exit } = yield* calling({ ...secretOptions, endpoint: { maxResponseBytes: 3 } })
      const error = yield* Effect.flip(exit)
      assert.strictEqual(error._tag === "TokenRequestError" && error.reason, "TooLarge")
    }))

  it.effect("hands the provider's options on", () =>
    Effect.gen(function*() {
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
    }))

  it.effect("allowInsecure is for the endpoint and the client alike", () =>
    Effect.gen(function*() {
      const insecure = { ...secretOptions, authUrl: "http://auth.store.example", apiUrl: "http://api.store.example" }
      assert.strictEqual((yield* calling({ ...insecure, allowInsecure: true })).sent.length, 2)
      for (const url of ["authUrl", "apiUrl"] as const) {
        const { exit, sent } = yield* calling({ ...secretOptions, [url]: insecure[url] })
        const error = yield* Effect.flip(exit)
        assert.strictEqual(error._tag === "ConfigurationError" && error.option, url)
        assert.strictEqual(sent.length, 0)
      }
    }))

  it.effect("layerConfig takes a Config of the options, a record of Configs, or either form's", () =>
    Effect.gen(function*() {
      const { http, sent } = yield* store
      const { apiUrl, authUrl, clientId, clientSecret } = secretOptions
      const whole: Config.Config<StoreAuth.Options> = Config.succeed(secretOptions)
      const checked = yield* ClientCredentials.make(secretOptions)
      const layers = [
        StoreAuth.layerConfig(whole),
        StoreAuth.layerConfig({
          authUrl: Config.succeed(authUrl),
          apiUrl: Config.succeed(apiUrl),
          clientId: Config.succeed(clientId),
          clientSecret: Config.succeed(clientSecret)
        }),
        StoreAuth.layerConfig(Config.succeed({ authUrl, apiUrl, credentials: checked }))
      ]
      for (const layer of layers) yield* Effect.provide(call, Layer.provide(layer, http))
      assert.strictEqual((yield* sent).length, 6)
    }))

  it("a source that is missing is named", () => {
    assert.throws(() => Context.unsafeGet(Context.empty(), TokenSource.TokenSource), /: @store-api\/core\/TokenSource /)
  })

  it.effect("the provider's and the client's own layerConfig read their options too", () =>
    Effect.gen(function*() {
      const source = yield* answering((n) => token(`token-${n}`))
      const api = yield* stubApi()
      const layer = AuthorizedHttpClient.layerConfig({ apiUrl: Config.succeed("https://api.store.example") }).pipe(
        Layer.provideMerge(AccessTokenProvider.layerConfig({ leeway: Config.succeed("10 seconds") })),
        Layer.provide(source.layer),
        Layer.provide(Layer.succeed(HttpClient.HttpClient, api.client))
      )
      yield* Effect.provide(call, layer)
      assert.strictEqual((yield* api.sent)[0]?.headers["authorization"], "Bearer token-1")
    }))
})

describe("options that make no sense are named while the layer is built", () => {
  const building = (options: Partial<TokenEndpoint.Options>) =>
    Effect.gen(function*() {
      const { http } = yield* store
      const credentials = yield* ClientCredentials.make(secretOptions)
      return yield* Effect.flip(
        Effect.provide(TokenEndpoint.make({ authUrl: "https://auth.store.example", credentials, ...options }), http)
      )
    })

  const positive = "must be greater than zero"
  const atLeastOne = "must be a whole number of bytes, at least 1"
  const withoutPath = "must be the base URL, without /v1/oauth/accesstoken"

  for (
    const [option, reason, options] of [
      ["deadline", positive, { deadline: 0 }],
      ["deadline", positive, { deadline: NaN }],
      ["attemptTimeout", positive, { attemptTimeout: "-1 seconds" as "1 seconds" }],
      ["maxResponseBytes", atLeastOne, { maxResponseBytes: 0 }],
      ["maxResponseBytes", atLeastOne, { maxResponseBytes: NaN }],
      ["maxResponseBytes", atLeastOne, { maxResponseBytes: Infinity }],
      ["authUrl", withoutPath, { authUrl: "https://auth.store.example/v1/oauth/accesstoken" }],
      ["authUrl", withoutPath, { authUrl: "https://auth.store.example/base/v1/oauth/accesstoken/" }]
    ] as const
  ) {
    it.effect(`${option}: ${String(Object.values(options)[0])}`, () =>
      Effect.gen(function*() {
        const error = yield* building(options)
        deepStrictEqual([error.option, error.reason], [option, reason])
      }))
  }

  it.effect("a cool-down of nothing is no loop of requests: at least 100 ms", () =>
    Effect.gen(function*() {
      const source = yield* answering(() => Effect.die("an invented defect"))
      const layer = Layer.provide(AccessTokenProvider.layer({ cooldown: { base: 0, max: 0 } }), source.layer)
      yield* Effect.gen(function*() {
        const { get } = Context.get(
          yield* Effect.context<AccessTokenProvider.AccessTokenProvider>(),
          AccessTokenProvider.AccessTokenProvider
        )
        for (let call = 0; call < 100; call++) yield* Effect.exit(get)
        assert.strictEqual(yield* source.calls, 1)
        yield* TestClock.adjust("100 millis")
        yield* Effect.exit(get)
        assert.strictEqual(yield* source.calls, 2)
      }).pipe(Effect.provide(layer))
    }))
})

describe("layerTest keeps the rules that cost nothing", () => {
  it.effect("current and status know an expired token, invalidate compares", () =>
    Effect.gen(function*() {
      const fixed = yield* token("fixed")
      yield* Effect.gen(function*() {
        const provider = yield* AccessTokenProvider.AccessTokenProvider
        yield* provider.invalidate(new AccessToken.AccessToken({ ...fixed, value: Redacted.make("another") }))
        assert.strictEqual((yield* provider.status).zone, "Fresh")
        yield* TestClock.adjust("60 minutes")
        assert.strictEqual((yield* provider.status).zone, "Expired")
        assert.strictEqual((yield* Effect.flip(provider.current))._tag, "TokenExpiredError")
      }).pipe(Effect.provide(AccessTokenProvider.layerTest(fixed)))
    }))
})
