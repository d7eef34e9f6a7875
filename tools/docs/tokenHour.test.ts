/** The figures that docs/images/token-hour.svg states, recorded on a virtual clock. */
import { HttpClient, HttpClientResponse } from "@effect/platform"
import { assert, it } from "@effect/vitest"
import { AuthorizedHttpClient, StoreAuth } from "@store-api/core"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Effect, Exit, Layer, Logger, LogLevel, Random, Redacted } from "effect"
import { read } from "../support/pages.js"

const minute = 60_000

/** The token endpoint is down for these milliseconds of the recording. */
const outage = { from: 110.5 * minute, to: 117 * minute }

/** Records a call every 20 seconds for two hours, and counts calls and token requests of the first 70 minutes. */
const record = Effect.gen(function*() {
  const virtual = VirtualClock.make(0)
  const now = virtual.monotonic
  const counted = { calls: 0, failed: 0, tokenRequests: 0, waited: 0 }

  /** The token endpoint and the API. */
  const http = HttpClient.make((request) => {
    const isTokenRequest = !request.url.endsWith("/orders")
    const isDown = isTokenRequest && now() >= outage.from && now() < outage.to
    if (isTokenRequest && now() < 70 * minute) counted.tokenRequests++
    const token = { access_token: `token-${now()}`, token_type: "bearer", expires_in: 3600 }
    const response = Response.json(token, { status: isDown ? 503 : 200 })
    return Effect.delay(
      Effect.succeed(HttpClientResponse.fromWeb(request, response)),
      "200 millis"
    )
  })

  const StoreAuthTest = StoreAuth.layer({
    authUrl: "https://auth.store.example",
    apiUrl: "https://api.store.example",
    clientId: "a-client",
    clientSecret: Redacted.make("an-invented-secret")
  }).pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, http)))

  return yield* Effect.gen(function*() {
    const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
    const call = Effect.gen(function*() {
      const startedAt = now()
      const isShown = startedAt < 70 * minute
      if (isShown) counted.calls++
      const exit = yield* Effect.exit(client.get("/orders"))
      if (Exit.isFailure(exit)) counted.failed++
      // The API alone takes 200 ms.
      else if (isShown && now() - startedAt > 200) counted.waited++
    })
    while (now() < 119 * minute) {
      if (now() % 20_000 === 0) yield* Effect.fork(call)
      yield* virtual.advance("1 second")
    }
    return counted
  }).pipe(
    Effect.provide(StoreAuthTest),
    Effect.withClock(virtual.clock),
    Effect.withRandom(Random.fixed([0.5])),
    Logger.withMinimumLogLevel(LogLevel.None)
  )
})

it.live("the picture of a token's hour states the recorded figures", () =>
  Effect.gen(function*() {
    const { calls, failed, tokenRequests, waited } = yield* record
    const picture = read("docs/images/token-hour.svg")
    const minutes = (outage.to - outage.from) / minute
    assert.include(picture, `${calls} calls, ${tokenRequests} token requests: only the first`)
    assert.include(picture, `of ${minutes} minutes at the next renewal: ${failed} calls fail`)
    assert.strictEqual(waited, 1)
  }))
