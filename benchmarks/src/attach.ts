/** What attaching `Authorization` costs over a client that answers at once. */
import { HttpClient, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { AccessTokenProvider, AuthorizedHttpClient, TokenSource } from "@store-api/core"
import { Effect } from "effect"
import { alternate, type Candidate, difference, nanoseconds, type Spread } from "./harness.js"
import { token } from "./sample.js"

/** In microseconds a request. */
export interface Attach {
  readonly bare: Spread
  readonly authorized: Spread
  readonly added: Spread
}

const apiUrl = "https://api.store.example"
const request = HttpClientRequest.get(`${apiUrl}/v1/orders?page=2`)
const response = HttpClientResponse.fromWeb(request, new Response(null, { status: 200 }))

// Without the span that `HttpClient.make` adds to each request: it costs more than what is measured here.
const stub = HttpClient.makeWith<never, never, never, never>(Effect.map(() => response), Effect.succeed)

const executing = <E>(name: string, client: HttpClient.HttpClient.With<E>): Candidate => ({
  name,
  run: (times) =>
    Effect.runPromise(Effect.gen(function*() {
      const start = performance.now()
      for (let i = 0; i < times; i++) yield* client.execute(request)
      return performance.now() - start
    }))
})

const inMicroseconds = ({ high, low, median }: Spread): Spread => ({
  median: median / 1000,
  low: low / 1000,
  high: high / 1000
})

export const measureAttach = (millis: number): Promise<Attach> =>
  Effect.gen(function*() {
    const authorized = yield* AuthorizedHttpClient.withAccessToken(stub, { apiUrl })
    const rounds = yield* Effect.promise(() =>
      alternate([executing("bare", stub), executing("authorized", authorized)], millis)
    )
    return {
      bare: inMicroseconds(nanoseconds(rounds, "bare")),
      authorized: inMicroseconds(nanoseconds(rounds, "authorized")),
      added: inMicroseconds(difference(rounds, "authorized", "bare"))
    }
  }).pipe(
    Effect.provideServiceEffect(AccessTokenProvider.AccessTokenProvider, AccessTokenProvider.make()),
    Effect.provideService(TokenSource.TokenSource, TokenSource.make(() => token(3_600_000))),
    Effect.scoped,
    Effect.runPromise
  )
