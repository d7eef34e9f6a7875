/** The cost of attaching `Authorization`, with a client that responds immediately. */
import { HttpClient, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { AccessTokenProvider, AuthorizedHttpClient, TokenSource } from "@store-api/core"
import { Effect } from "effect"
import { alternate, type Candidate, difference, nanoseconds, plainly, type Run, type Spread } from "./harness.js"
import { token } from "./sample.js"

/** In microseconds per request. */
export interface Attach {
  readonly bare: Spread
  readonly authorized: Spread
  readonly added: Spread
}

const apiUrl = "https://api.store.example"
const request = HttpClientRequest.get(`${apiUrl}/v1/orders?page=2`)
const response = HttpClientResponse.fromWeb(request, new Response(null, { status: 200 }))

// Without the span that `HttpClient.make` adds to each request, which costs more than the header.
const bare = HttpClient.makeWith<never, never, never, never>(
  Effect.map(() => response),
  Effect.succeed
)

/** With a span for each request, as in an application. The span shows the redacted header. */
export const withSpans: HttpClient.HttpClient = HttpClient.make(() => Effect.succeed(response))

const executing = (run: Run) => <E>(name: string, client: HttpClient.HttpClient.With<E>): Candidate => ({
  name,
  run: (times) =>
    run(Effect.gen(function*() {
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

export const measureAttach = (
  millis: number,
  run: Run = plainly,
  stub: HttpClient.HttpClient = bare
): Promise<Attach> =>
  Effect.gen(function*() {
    const authorized = yield* AuthorizedHttpClient.withAccessToken(stub, { apiUrl })
    const executed = executing(run)
    const rounds = yield* Effect.promise(() =>
      alternate([executed("bare", stub), executed("authorized", authorized)], millis)
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
    run
  )
