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
  AccessToken,
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth,
  TokenSource
} from "@store-api/core"
import * as Canary from "@store-api/testing/leaksIn"
import { render } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Data, DateTime, Effect, Layer, Option, Redacted } from "effect"
import { token as acquired } from "../support/scriptedSource.js"

const secret = Canary.secret()
const token = Canary.token()
const canaries = [secret, token]
const leaksOf = (value: unknown) => Canary.leaksInOutputs(render("it", value), canaries)
const assertNoLeak = (value: unknown) => deepStrictEqual(leaksOf(value), [])

const accessToken = new AccessToken.AccessToken({
  value: Redacted.make(token.value),
  acquiredAt: DateTime.unsafeMake(0),
  expiresAt: DateTime.unsafeMake("2100-01-01T00:00:00Z"),
  developerEmail: Option.some(Redacted.make(secret.value))
})

describe("no rendering", () => {
  test("no rendering of credentials shows the secret", function*() {
    assertNoLeak(
      yield* ClientCredentials.make({
        clientId: "invented-client",
        clientSecret: Redacted.make(secret.value)
      })
    )
  })

  test("no rendering shows the token that the services of a layer hold", function*() {
    const layer = StoreAuth.layerFromSource({ apiUrl: "https://api.store.example" }).pipe(
      Layer.provideMerge(TokenSource.layer(() => Effect.succeed(accessToken))),
      Layer.provideMerge(FetchHttpClient.layer)
    )
    const context = yield* Layer.build(layer)
    yield* Effect.flatMap(AccessTokenProvider.AccessTokenProvider, ({ get }) => get).pipe(
      Effect.provide(context)
    )
    for (const value of [layer, context]) assertNoLeak(value)
  })
})

class ApplicationError
  extends Data.TaggedError("ApplicationError")<{ readonly cause: unknown }>
{}

const respondWith = (body: string) =>
  HttpClient.make((request) =>
    Effect.sync(() =>
      HttpClientResponse.fromWeb(
        request,
        new Response(body, { status: 403, headers: { "content-type": "application/json" } })
      )
    )
  )

const authorize = <E>(base: HttpClient.HttpClient.With<E>) =>
  AuthorizedHttpClient.withAccessToken(base, { apiUrl: "https://api.store.example" }).pipe(
    Effect.provide(AccessTokenProvider.layerTest(acquired(token.value)))
  )

/** docs/explanation/security-model.md lists these leaks as out of reach. The tests show them, so that it stays true. */
describe("the limitations in the security model", () => {
  test("a value that the application reads with Redacted.value is visible", function*() {
    const accessToken = yield* acquired(token.value)
    deepStrictEqual(leaksOf(accessToken), [])
    assert.isAbove(leaksOf({ token: Redacted.value(accessToken.value) }).length, 0)
  })

  test("the token is visible in the errors of the given client", function*() {
    const base = respondWith("{}").pipe(
      HttpClient.filterStatusOk,
      HttpClient.transformResponse(
        Effect.mapError((cause: HttpClientError.HttpClientError) =>
          new ApplicationError({ cause })
        )
      )
    )
    const error = yield* Effect.flip(
      Effect.flatMap(authorize(base), (client) => client.get("/orders"))
    )
    assert.instanceOf(error, ApplicationError)
    assert.isAbove(leaksOf(error).length, 0)
  })

  test("the token is visible in the requests of the given client", function*() {
    const received: Array<HttpClientRequest.HttpClientRequest> = []
    const tapped = HttpClient.make((request) => {
      received.push(request)
      return respondWith("{}").execute(request)
    })
    yield* Effect.flatMap(authorize(tapped), (client) => client.get("/orders"))
    assert.isAbove(leaksOf(received[0]).length, 0)
  })

  test("the token is visible in a response of an API that repeats it", function*() {
    const response = yield* Effect.flatMap(
      authorize(respondWith(JSON.stringify({ youSent: token.value }))),
      (client) => client.get("/orders")
    )
    yield* response.json
    assert.isAbove(leaksOf(response).length, 0)
  })

  it("the token is visible in a request to which the application adds the header", () => {
    const request = HttpClientRequest.bearerToken(
      HttpClientRequest.get("/orders"),
      token.value
    )
    assert.isAbove(leaksOf(request).length, 0)
  })
})
