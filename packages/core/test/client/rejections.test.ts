import { HttpClient, HttpClientResponse } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { Effect } from "effect"
import { minute, run, token } from "../support/scriptedSource.js"
import { test } from "../support/test.js"

/** An API that responds 401 to every token on `/rejecting`, and 200 on all other routes. */
const api = HttpClient.makeWith<never, never, never, never>(
  Effect.map((request) =>
    request.url.endsWith("/rejecting")
      ? HttpClientResponse.fromWeb(request, new Response("{}", { status: 401 }))
      : HttpClientResponse.fromWeb(request, ok)
  ),
  Effect.succeed
)

const ok = new Response("{}")

/** Calls all routes at this interval for ten minutes. Returns the statuses per route and the token requests. */
const callForTenMinutes = (routes: ReadonlyArray<string>, interval: number, lifetime?: number) =>
  run((n) => token(`token-${n}`, lifetime), ({ calls, provider, virtual }) =>
    Effect.gen(function*() {
      const client = yield* AuthorizedHttpClient.withAccessToken(api, { apiUrl: "https://api.store.example" }).pipe(
        Effect.provideService(AccessTokenProvider.AccessTokenProvider, provider)
      )
      const statuses = new Map(routes.map((route) => [route, new Set<number>()]))
      for (let elapsed = 0; elapsed < 10 * minute; elapsed += interval) {
        for (const route of routes) statuses.get(route)?.add((yield* client.get(route)).status)
        yield* virtual.advance(interval)
      }
      return { statuses, tokenRequests: yield* calls }
    }))

const healthy = Array.from({ length: 9 }, (_, n) => `/healthy/${n}`)

describe("AuthorizedHttpClient, an API that rejects every token", () => {
  test.each([100, 400, 900, 1100, 2000, 5000, 30_000])(
    "costs at most 16 token requests in 10 minutes when it is called every %i ms",
    function*(interval) {
      const { statuses, tokenRequests } = yield* callForTenMinutes(["/rejecting"], interval)
      deepStrictEqual([...statuses.get("/rejecting") ?? []], [401])
      assert.isAtMost(tokenRequests, 16)
      assert.isAtLeast(tokenRequests, 8, "it tries again")
    }
  )

  test.each([100, 400, 900, 1100, 2000, 5000, 30_000])(
    "costs no more when it is one of ten routes, called every %i ms, and the others work",
    function*(interval) {
      const { statuses, tokenRequests } = yield* callForTenMinutes(["/rejecting", ...healthy], interval)
      deepStrictEqual([...statuses.get("/rejecting") ?? []], [401])
      for (const route of healthy) deepStrictEqual([...statuses.get(route) ?? []], [200], route)
      assert.isAtMost(tokenRequests, 16)
      assert.isAtLeast(tokenRequests, 8, "it tries again")
    }
  )

  test.each([10_000, 30_000, 60_000])(
    "costs at most 15 token requests more than an API that works, with a token lifetime of %i ms",
    function*(lifetime) {
      for (const interval of [2000, 5000, 11_000, 31_000]) {
        const works = yield* callForTenMinutes(["/healthy"], interval, lifetime)
        const rejects = yield* callForTenMinutes(["/rejecting"], interval, lifetime)
        assert.isAtMost(rejects.tokenRequests, works.tokenRequests + 15, `every ${interval} ms`)
      }
    }
  )
})
