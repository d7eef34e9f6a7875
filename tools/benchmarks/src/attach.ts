/** The microseconds that attaching `Authorization` adds to a request, with a client that responds immediately. */
import { HttpClient, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { AccessTokenProvider, AuthorizedHttpClient, TokenSource } from "@store-api/core"
import { Effect } from "effect"
import { alternate, paired, plainly, type Run, type Spread, token, yielding } from "./harness.js"

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

export const measureAttach = (
  millis: number,
  run: Run = plainly,
  stub: HttpClient.HttpClient = bare
): Promise<Spread> =>
  Effect.gen(function*() {
    const authorized = yield* AuthorizedHttpClient.withAccessToken(stub, { apiUrl })
    // A new effect each time, as an application creates it for each request.
    const executing = (name: string, client: HttpClient.HttpClient.With<unknown>) =>
      yielding(run)(name, Effect.suspend(() => client.execute(request)))
    const rounds = yield* Effect.promise(() =>
      alternate([executing("bare", stub), executing("authorized", authorized)], millis)
    )
    return paired(rounds, ["authorized", "bare"], (a, b) => (a - b) / 1000)
  }).pipe(
    Effect.provideServiceEffect(AccessTokenProvider.AccessTokenProvider, AccessTokenProvider.make()),
    Effect.provideService(TokenSource.TokenSource, TokenSource.make(() => token(3_600_000))),
    Effect.scoped,
    run
  )
