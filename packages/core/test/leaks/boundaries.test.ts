import { HttpClient, type HttpClientError, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { Data, Effect, Redacted } from "effect"
import { token } from "../support/scriptedSource.js"
import * as Canary from "./support/canary.js"
import { render } from "./support/renderings.js"
import { leaksIn } from "./support/search.js"

const canary = Canary.token()
const shown = (value: unknown) => leaksIn(render("it", value), [canary])

class UsersError extends Data.TaggedError("UsersError")<{ readonly cause: unknown }> {}

const answers = (body: string) =>
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

/** What SECURITY.md lists as out of reach: here it is seen, so that the list stays true. */
describe("out of reach, as SECURITY.md says", () => {
  it.effect("what the application reads with Redacted.value", () =>
    Effect.gen(function*() {
      const held = yield* token(canary.value)
      deepStrictEqual(shown(held), [])
      assert.isAbove(shown({ token: Redacted.value(held.value) }).length, 0)
    }))

  it.effect("what the given client keeps of the request that it is handed: its own errors, its own taps", () =>
    Effect.gen(function*() {
      const kept: Array<HttpClientRequest.HttpClientRequest> = []
      const base = answers("{}").pipe(
        HttpClient.filterStatusOk,
        HttpClient.tap((response) => Effect.sync(() => kept.push(response.request))),
        HttpClient.transformResponse(
          Effect.mapError((cause: HttpClientError.HttpClientError) => new UsersError({ cause }))
        )
      )
      const error = yield* Effect.flip(Effect.flatMap(authorized(base), (client) => client.get("/orders")))
      assert.instanceOf(error, UsersError)
      assert.isAbove(shown(error).length, 0)
      const seen: Array<HttpClientRequest.HttpClientRequest> = []
      const tapped = HttpClient.make((request) => {
        seen.push(request)
        return answers("{}").execute(request)
      })
      yield* Effect.flatMap(authorized(tapped), (client) => client.get("/orders"))
      assert.isAbove(shown(seen[0]).length, 0)
    }))

  it.effect("an API that repeats the token in its answer", () =>
    Effect.gen(function*() {
      const response = yield* Effect.flatMap(
        authorized(answers(JSON.stringify({ youSent: canary.value }))),
        (client) => client.get("/orders")
      )
      yield* response.json
      assert.isAbove(shown(response).length, 0)
    }))

  it("a request that the application itself gives the header to", () => {
    const request = HttpClientRequest.bearerToken(HttpClientRequest.get("/orders"), canary.value)
    assert.isAbove(shown(request).length, 0)
  })
})
