/** The measurements of a cached token in alternating rounds. Each runs in its own process. */
import { NodeSdk } from "@effect/opentelemetry"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { BatchSpanProcessor, InMemorySpanExporter } from "@opentelemetry/sdk-trace-base"
import { AccessTokenProvider, AuthorizedHttpClient, TokenSource } from "@store-api/core"
import { Effect } from "effect"
import { alternate, awaiting, timed, token, yielding } from "./harness.js"
import { measureHit } from "./hit.js"

export const ours = "Effect.runPromise(provider.get)"
const baseline = "Effect.runPromise(Effect.succeed(x))"

const withProvider = <A, E>(
  use: (
    provider: AccessTokenProvider.Service
  ) => Effect.Effect<A, E, AccessTokenProvider.AccessTokenProvider>
) =>
  Effect.flatMap(AccessTokenProvider.AccessTokenProvider, use).pipe(
    Effect.provideServiceEffect(
      AccessTokenProvider.AccessTokenProvider,
      AccessTokenProvider.make()
    ),
    Effect.provideService(TokenSource.TokenSource, TokenSource.make(() => token(3_600_000))),
    Effect.scoped
  )

export const hit = (millis: number) => Effect.runPromise(measureHit(millis))

export const calls = (millis: number) =>
  Effect.runPromise(withProvider((provider) =>
    Effect.gen(function*() {
      const succeed = Effect.succeed(yield* provider.get)
      const rounds = yield* alternate([
        awaiting(baseline, () => Effect.runPromise(succeed)),
        awaiting(ours, () => Effect.runPromise(provider.get))
      ], millis)
      return timed(rounds, baseline)
    })
  ))

const apiUrl = "https://api.store.example"
const request = HttpClientRequest.get(`${apiUrl}/v1/orders?page=2`)
const response = HttpClientResponse.fromWeb(request, new Response(null, { status: 200 }))

// Without the span that `HttpClient.make` adds to each request, which costs more than the header.
const bare = HttpClient.makeWith<never, never, never, never>(
  Effect.map(() => response),
  Effect.succeed
)

/** A request with `Authorization` and without, to a client that responds immediately. */
const measureAttach = (millis: number) =>
  withProvider(() =>
    Effect.gen(function*() {
      const authorized = yield* AuthorizedHttpClient.withAccessToken(bare, { apiUrl })
      // A new effect each time, as an application creates it for each request.
      const executing = (name: string, client: HttpClient.HttpClient.With<unknown>) =>
        yielding(name, Effect.suspend(() => client.execute(request)))
      const rounds = yield* alternate([
        executing("bare", bare),
        executing("authorized", authorized)
      ], millis)
      return timed(rounds, "bare")
    })
  )

export const attach = (millis: number) => Effect.runPromise(measureAttach(millis))

/** Within a span of an application that exports its spans and metrics. */
export const tracedAttach = async (millis: number) => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const spanProcessor = new BatchSpanProcessor(new InMemorySpanExporter())
  const often = { exportIntervalMillis: 100, exportTimeoutMillis: 100 }
  const metricReader = new PeriodicExportingMetricReader({ exporter, ...often })
  const layer = NodeSdk.layer(() => ({
    resource: { serviceName: "an application" },
    spanProcessor,
    metricReader
  }))
  return Effect.runPromise(
    Effect.provide(Effect.withSpan(measureAttach(millis), "the application"), layer)
  )
}
