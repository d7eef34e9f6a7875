import * as Http from "node:http"
import { HttpClient } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, AccessTokenProvider, AuthorizedHttpClient, ClientCredentials, TokenSource } from "@store-api/core"
import { Emulator } from "@store-api/emulator"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Cause, Config, ConfigError, ConfigProvider, DateTime, Effect, Exit, Layer, Option, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import { canMakeCertificates, selfSigned } from "./support/certificates.js"
import { at, authorized, call, listen, onThisMachine, startStore, startTlsStore } from "./utils.js"

onThisMachine()

/** The emulator, and the layer of an application that uses it. */
const application = (http?: NodeStoreAuth.Options["http"]) =>
  Layer.unwrapEffect(Effect.map(Emulator.Emulator, ({ url }) =>
    NodeStoreAuth.layer({
      authUrl: url,
      apiUrl: url,
      clientId: Emulator.demoClient.clientId,
      clientSecret: Emulator.demoClient.clientSecret,
      http
    }))).pipe(Layer.provideMerge(Emulator.layer()))

const setup = Effect.gen(function*() {
  const emulator = yield* Emulator.Emulator
  const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
  const ofKind = (kind: "token" | "api") =>
    Effect.map(emulator.requests, (requests) => requests.filter((request) => request.kind === kind))
  return {
    emulator,
    client,
    tokenRequests: ofKind("token"),
    apiRequests: ofKind("api"),
    statusOf: (path: string) =>
      Effect.scoped(Effect.map(HttpClient.withScope(client).get(path), ({ status }) => status))
  }
})

describe("layer", () => {
  it.live("adds the token to every request", () =>
    Effect.gen(function*() {
      const { apiRequests, emulator, statusOf } = yield* setup
      for (const path of ["/orders", "/orders/7", "/stock?of=7"]) assert.strictEqual(yield* statusOf(path), 200)
      const [token] = yield* emulator.tokens
      assert(token !== undefined)
      deepStrictEqual(
        (yield* apiRequests).map(({ authorization }) => Option.map(authorization, Redacted.value)),
        Array.from({ length: 3 }, () => Option.some(`Bearer ${Redacted.value(token.value)}`))
      )
    }).pipe(Effect.provide(application())))

  it.live("sends one token request for 100 concurrent calls", () =>
    Effect.gen(function*() {
      const { apiRequests, statusOf, tokenRequests } = yield* setup
      const statuses = yield* Effect.forEach(Array(100).keys(), (n) => statusOf(`/orders/${n}`), {
        concurrency: "unbounded"
      })
      deepStrictEqual(statuses, Array<number>(100).fill(200))
      assert.lengthOf(yield* apiRequests, 100)
      assert.lengthOf(yield* tokenRequests, 1)
    }).pipe(Effect.provide(application({ connections: 16 }))))

  it.live("recovers from a revoked token with one more token request", () =>
    Effect.gen(function*() {
      const { apiRequests, emulator, statusOf, tokenRequests } = yield* setup
      assert.strictEqual(yield* statusOf("/orders"), 200)
      assert.strictEqual(yield* emulator.revoke(), 1)
      assert.strictEqual(yield* statusOf("/orders"), 200)
      deepStrictEqual((yield* apiRequests).map(({ status }) => Option.getOrNull(status)), [200, 401, 200])
      assert.lengthOf(yield* tokenRequests, 2)
    }).pipe(Effect.provide(application())))

  /** A store that accepts every token except the first. */
  const rejectingFirst = (unauthorized: (response: Http.ServerResponse) => void) => {
    let tokens = 0
    const server = Http.createServer((request, response) => {
      request.resume()
      if (request.url === "/v1/oauth/accesstoken") {
        response.end(JSON.stringify({ access_token: `token-${++tokens}`, token_type: "Bearer", expires_in: 3599 }))
      } else if (request.headers.authorization === "Bearer token-1") {
        response.writeHead(401)
        unauthorized(response)
      } else response.end("{}")
    })
    return Effect.map(listen(server), ({ url }) => ({ url, tokenRequests: () => tokens }))
  }

  const bodies: ReadonlyArray<readonly [string, (response: Http.ServerResponse) => void]> = [
    ...[1_000, 70_000, 200_000, 5_000_000].map((bytes) =>
      [`${bytes} bytes`, (response: Http.ServerResponse) => void response.end(Buffer.alloc(bytes, "a"))] as const
    ),
    ["a body that stops", (response) => void response.write("a")]
  ]
  for (const [what, unauthorized] of bodies) {
    test.live(`recovers over a single connection from a 401 with ${what}`, function*() {
      const { tokenRequests, url } = yield* rejectingFirst(unauthorized)
      const status = yield* Effect.flatMap(
        AuthorizedHttpClient.AuthorizedHttpClient,
        (client) => client.get("/orders")
      ).pipe(
        Effect.map(({ status }) => status),
        Effect.timeout("4 seconds"),
        Effect.provide(NodeStoreAuth.layer({ ...at(url), http: { connections: 1 } }))
      )
      deepStrictEqual([status, tokenRequests()], [200, 2])
    })
  }

  it.scopedLive("sends nothing to another origin", () =>
    Effect.gen(function*() {
      const { client, statusOf } = yield* setup
      const elsewhere = yield* startStore
      assert.strictEqual(yield* statusOf("/orders"), 200)
      const error = yield* Effect.flip(client.get(`${elsewhere.url}/orders`))
      assert.strictEqual(error._tag, "UntrustedOriginError")
      assert.strictEqual(elsewhere.opened(), 0)
    }).pipe(Effect.provide(application())))

  test.live("accepts credentials that are read at each acquisition", function*() {
    const { url } = yield* startStore
    const { clientId, clientSecret } = Emulator.demoClient
    const live = NodeStoreAuth.layer({
      authUrl: url,
      apiUrl: url,
      credentials: ClientCredentials.make({ clientId, clientSecret })
    })
    deepStrictEqual(yield* Effect.provide(call(), live), authorized)
  })

  test.live("trusts a server with http.ca, and sends no credentials without it", function*() {
    const emulator = yield* Emulator.make({ tls: true })
    const refused = yield* Effect.flip(Effect.provide(call(), NodeStoreAuth.layer(at(emulator.url))))
    assert(refused._tag === "TokenRequestError")
    assert.strictEqual(refused.reason, "Certificate")
    deepStrictEqual(yield* emulator.requests, [])
    const http = { ca: Option.getOrThrow(emulator.ca) }
    const { clientId, clientSecret } = Emulator.demoClient
    yield* Effect.provide(call(), NodeStoreAuth.layer({ ...at(emulator.url), clientId, clientSecret, http }))
    deepStrictEqual((yield* emulator.requests).map(({ kind }) => kind), ["token", "api"])
  })

  test.live("fails to build if an option of http cannot be used", function*() {
    const error = yield* Effect.flip(
      Layer.launch(NodeStoreAuth.layer({ ...at("https://store.example"), http: { connections: 0 } }))
    )
    assert.strictEqual(error._tag, "ConfigurationError")
    assert.strictEqual(error.message, "The option connections must be a whole number from 1.")
  })
})

describe("layerFromSource", () => {
  test.live("adds the tokens of a custom source", function*() {
    const { url } = yield* startStore
    const source = TokenSource.layer(() =>
      Effect.map(DateTime.now, (acquiredAt) =>
        new AccessToken.AccessToken({
          value: Redacted.make("a-custom-token"),
          acquiredAt,
          expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
        }))
    )
    const live = Layer.provide(NodeStoreAuth.layerFromSource({ apiUrl: url }), source)
    deepStrictEqual(yield* Effect.provide(call(), live), { authorization: "Bearer a-custom-token" })
  })

  it.scopedLive.runIf(canMakeCertificates)("applies http", () =>
    Effect.gen(function*() {
      const identity = yield* selfSigned()
      const { url } = yield* startTlsStore(identity)
      const provider = TokenSource.layer(() => Effect.die("no token is needed"))
      const live = NodeStoreAuth.layerFromSource({ apiUrl: url, http: { ca: identity.cert } })
      const response = Effect.flatMap(AuthorizedHttpClient.AuthorizedHttpClient, (client) =>
        client.get("/", { headers: { Authorization: "Basic custom" } })).pipe(
          Effect.flatMap(({ json }) =>
            json
          )
        )
      deepStrictEqual(yield* Effect.provide(response, Layer.provide(live, provider)), {
        authorization: "Basic custom"
      })
    }))
})

describe("layerConfig", () => {
  const variables = (entries: Record<string, string>) =>
    Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(entries))))

  test.live("names all missing variables at once", function*() {
    const error = yield* Effect.flip(
      Layer.launch(
        NodeStoreAuth.layerConfig().pipe(Layer.provide(variables({ STORE_API_URL: "http://127.0.0.1:1" })))
      )
    )
    assert(ConfigError.isConfigError(error))
    const text = Cause.pretty(Cause.fail(error))
    for (const name of ["STORE_API_AUTH_URL", "STORE_API_CLIENT_ID", "STORE_API_CLIENT_SECRET"]) {
      assert.include(text, name)
    }
    assert.notInclude(text, "STORE_API_URL")
  })

  test.live("reads the variables of the specification's options", function*() {
    const { url } = yield* startStore
    const live = Layer.provide(
      NodeStoreAuth.layerConfig(),
      variables({
        STORE_API_AUTH_URL: url,
        STORE_API_URL: url,
        STORE_API_CLIENT_ID: "demo-client",
        STORE_API_CLIENT_SECRET: "an-invented-secret"
      })
    )
    deepStrictEqual(yield* Effect.provide(call(), live), authorized)
  })

  test.live("accepts a config for each option, including those of http", function*() {
    const { url } = yield* startStore
    const options = {
      authUrl: Config.succeed(url),
      apiUrl: Config.succeed(url),
      clientId: Config.succeed("demo-client"),
      clientSecret: Config.redacted("SECRET"),
      http: { connections: Config.integer("CONNECTIONS") }
    }
    const outcome = (connections: string) =>
      Effect.exit(
        Effect.provide(
          call(),
          Layer.provide(
            NodeStoreAuth.layerConfig(options),
            variables({ SECRET: "an-invented-secret", CONNECTIONS: connections })
          )
        )
      )
    deepStrictEqual<unknown>(yield* outcome("2"), Exit.succeed(authorized))
    const refused = yield* outcome("-2")
    assert(Exit.isFailure(refused))
    assert.include(Cause.pretty(refused.cause), "The option connections must be")
  })
})

it.live("the layer provides the provider and the client, with the same token", () =>
  Effect.gen(function*() {
    const { emulator, statusOf, tokenRequests } = yield* setup
    const provider = yield* AccessTokenProvider.AccessTokenProvider
    const token = yield* provider.get
    assert.strictEqual(yield* statusOf("/orders"), 200)
    deepStrictEqual((yield* emulator.tokens).map(({ value }) => Redacted.value(value)), [
      Redacted.value(token.value)
    ])
    assert.lengthOf(yield* tokenRequests, 1)
  }).pipe(Effect.provide(application())))
