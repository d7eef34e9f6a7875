import { HttpClient, type HttpClientError, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { Data, Effect, Redacted } from "effect"
import { render } from "../support/renderings.js"
import { token } from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as Canary from "./support/canary.js"
import { leaksIn } from "./support/canary.js"

const canary = Canary.token()
const leaksOf = (value: unknown) => leaksIn(render("it", value), [canary])

class ApplicationError extends Data.TaggedError("ApplicationError")<{ readonly cause: unknown }> {}

const respondingWith = (body: string) =>
  HttpClient.make((request) =>
    Effect.sync(() =>
      HttpClientResponse.fromWeb(
        request,
        new Response(body, { status: 403, headers: { "content-type": "application/json" } })
      )
    )
  )

const authorized = <E>(base: HttpClient.HttpClient.With<E>) =>
  AuthorizedHttpClient.withAccessToken(base, { apiUrl: "https://api.store.example" }).pipe(
    Effect.provide(AccessTokenProvider.layerTest(token(canary.value)))
  )

/** docs/explanation/security-model.md lists these leaks as out of reach. The tests show them, so that it stays true. */
describe("the limitations in the security model", () => {
  test("a value that the application reads with Redacted.value is visible", function*() {
    const accessToken = yield* token(canary.value)
    deepStrictEqual(leaksOf(accessToken), [])
    assert.isAbove(leaksOf({ token: Redacted.value(accessToken.value) }).length, 0)
  })

  test("the token is visible in the requests, errors and taps of the given client", function*() {
    const kept: Array<HttpClientRequest.HttpClientRequest> = []
    const base = respondingWith("{}").pipe(
      HttpClient.filterStatusOk,
      HttpClient.tap((response) => Effect.sync(() => kept.push(response.request))),
      HttpClient.transformResponse(
        Effect.mapError((cause: HttpClientError.HttpClientError) => new ApplicationError({ cause }))
      )
    )
    const error = yield* Effect.flip(Effect.flatMap(authorized(base), (client) => client.get("/orders")))
    assert.instanceOf(error, ApplicationError)
    assert.isAbove(leaksOf(error).length, 0)
    const received: Array<HttpClientRequest.HttpClientRequest> = []
    const tapped = HttpClient.make((request) => {
      received.push(request)
      return respondingWith("{}").execute(request)
    })
    yield* Effect.flatMap(authorized(tapped), (client) => client.get("/orders"))
    assert.isAbove(leaksOf(received[0]).length, 0)
  })

  test("the token is visible in a response of an API that repeats it", function*() {
    const response = yield* Effect.flatMap(
      authorized(respondingWith(JSON.stringify({ youSent: canary.value }))),
      (client) => client.get("/orders")
    )
    yield* response.json
    assert.isAbove(leaksOf(response).length, 0)
  })

  it("the token is visible in a request to which the application adds the header", () => {
    const request = HttpClientRequest.bearerToken(HttpClientRequest.get("/orders"), canary.value)
    assert.isAbove(leaksOf(request).length, 0)
  })
})
