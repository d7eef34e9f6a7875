/** What the authorized client changes in a request besides the token, and what it leaves alone. */
import { HttpClient, HttpClientRequest } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"
import { rejecting, stubApi, type StubResponse } from "../support/fakeClient.js"
import { makeSource, token } from "../support/scriptedSource.js"

const apiUrl = "https://api.store.example/v1"

/** The requests that reach the API. */
const sentBy = (
  use: (client: AuthorizedHttpClient.Service) => Effect.Effect<unknown, unknown>,
  respond?: (request: HttpClientRequest.HttpClientRequest, number: number) => StubResponse,
  decorate: (client: HttpClient.HttpClient) => HttpClient.HttpClient = (client) => client
) =>
  Effect.gen(function*() {
    const api = yield* stubApi(respond)
    const source = yield* makeSource((count) => token(`token-${count}`))
    const provider = yield* Effect.provide(AccessTokenProvider.make(), source.layer)
    const client = yield* Effect.provideService(
      AuthorizedHttpClient.withAccessToken(decorate(api.client), { apiUrl }),
      AccessTokenProvider.AccessTokenProvider,
      provider
    )
    yield* use(client)
    return yield* api.sent
  }).pipe(Effect.scoped)

describe("User-Agent", () => {
  test("is added to a request that has none", function*() {
    const [request] = yield* sentBy((client) => client.get("/orders"))
    assert.strictEqual(request?.headers["user-agent"], "store-api")
  })

  test("of the caller is kept", function*() {
    const [request] = yield* sentBy((client) =>
      client.get("/orders", { headers: { "User-Agent": "shop/1.0" } })
    )
    assert.strictEqual(request?.headers["user-agent"], "shop/1.0")
  })

  test("of the given client is kept", function*() {
    const [request] = yield* sentBy(
      (client) => client.get("/orders"),
      undefined,
      HttpClient.mapRequest(HttpClientRequest.setHeader("user-agent", "shop/1.0"))
    )
    assert.strictEqual(request?.headers["user-agent"], "shop/1.0")
  })

  test("is in the repeat after a 401", function*() {
    const requests = yield* sentBy((client) => client.get("/orders"), rejecting("token-1"))
    deepStrictEqual(requests.map(({ headers }) => headers["user-agent"]), [
      "store-api",
      "store-api"
    ])
  })
})

describe("traceparent", () => {
  const own = "00-11111111111111111111111111111111-2222222222222222-01"

  const traceHeaders = (headers: Record<string, string>) =>
    Effect.map(
      sentBy((client) => client.get("/orders", { headers })),
      ([request]) => [request?.headers["traceparent"], request?.headers["b3"]]
    ).pipe(Effect.withSpan("a span of the caller"))

  test("of the caller is left alone", function*() {
    deepStrictEqual(yield* traceHeaders({ traceparent: own }), [own, undefined])
  })

  test("control: the client of Effect adds one to a request that has none", function*() {
    const [traceparent] = yield* traceHeaders({})
    assert.match(traceparent ?? "", /^00-\w{32}-\w{16}-01$/)
  })
})

describe("URLs with spaces around them", () => {
  it.effect.each<readonly [url: string, expected: string]>([
    [" https://api.store.example/v1/orders", "https://api.store.example/v1/orders"],
    ["https://api.store.example/v1/orders \n", "https://api.store.example/v1/orders"],
    ["\t/orders ", "https://api.store.example/v1/orders"],
    [" orders", "https://api.store.example/v1/orders"],
    ["\0 https://api.store.example/v1", "https://api.store.example/v1"],
    [" ", "https://api.store.example/v1"]
  ])("the client reads the URL %j as fetch does", ([url, expected]) =>
    Effect.gen(function*() {
      const [request] = yield* sentBy((client) => client.get(url))
      assert.strictEqual(request?.url, expected)
    }))

  test("the client refuses a URL of another origin", function*() {
    const requests = yield* sentBy((client) =>
      Effect.flip(client.get(" https://elsewhere.example/"))
    )
    deepStrictEqual(requests, [])
  })
})

it.effect.each([
  `DPoP error="use_dpop_nonce"`,
  `DPoP error="invalid_dpop_proof"`,
  `Bearer error="insufficient_scope"`
])("the challenge %s of a 401 drops no token", (challenge) =>
  Effect.gen(function*() {
    const requests = yield* sentBy(
      (client) => Effect.zipRight(client.get("/orders"), client.get("/orders")),
      () => ({ status: 401, headers: { "www-authenticate": challenge } })
    )
    deepStrictEqual(requests.map(({ headers }) => headers["authorization"]), [
      "Bearer token-1",
      "Bearer token-1"
    ])
  }))
