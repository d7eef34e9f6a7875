/** Tests the spans, metrics and log lines that an application exports, and that they contain no secret. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { NodeSdk, Otlp } from "@effect/opentelemetry"
import { HttpClient, HttpClientRequest } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http"
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http"
import { PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics"
import { SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import {
  AccessTokenProvider,
  AuthorizedHttpClient,
  StoreAuth,
  TokenRequest
} from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { withHeadersOnSpans } from "@store-api/testing/effectMajor"
import * as Canary from "@store-api/testing/leaksIn"
import { shared } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect, identity, Layer, Logger, LogLevel, Redacted, type Tracer } from "effect"
import * as FakeClient from "./support/fakeClient.js"
import { observed } from "./support/telemetry.js"

/** One POST request to `/v1/traces`, `/v1/metrics` or `/v1/logs`: OTLP over HTTP, in JSON. */
interface Post {
  readonly path: string
  readonly contentType: string
  readonly body: string
}

/** An OpenTelemetry collector on loopback, and the requests that it has received. */
const collector = Effect.acquireRelease(
  Effect.promise(async () => {
    const posts: Array<Post> = []
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const contentType = request.headers["content-type"] ?? ""
        posts.push({
          path: request.url ?? "",
          contentType,
          body: Buffer.concat(chunks).toString()
        })
        response.setHeader("content-type", "application/json").end("{}")
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return { posts, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  }),
  ({ server }) =>
    Effect.sync(() => {
      server.close()
      server.closeAllConnections()
    })
)

/** What the tests read of OTLP. */
interface Attributed {
  readonly attributes: ReadonlyArray<
    { readonly key: string; readonly value: Readonly<Record<string, unknown>> }
  >
}
interface Span extends Attributed {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly status: { readonly code: number }
  readonly links?: ReadonlyArray<unknown>
}
interface MetricOf extends
  Partial<
    Record<"sum" | "gauge" | "histogram", { readonly dataPoints: ReadonlyArray<Attributed> }>
  >
{
  readonly name: string
  readonly unit: string
}
const attributesOf = ({ attributes }: Attributed) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

/** The innermost objects of a request, whose JSON nests arrays of objects. */
const innermost = ({ body }: Post, ...keys: ReadonlyArray<string>) =>
  keys.reduce<ReadonlyArray<unknown>>(
    (objects, key) =>
      objects.flatMap((object) =>
        (object as Readonly<Record<string, ReadonlyArray<unknown>>>)[key]
      ),
    [JSON.parse(body)]
  )

const clientId: Canary.Canary = { name: "client id", value: "an-invented-client-id-7c1e" }

/**
 * Makes an API call, a renewal with two attempts, a call with a rejected token, and a renewal that fails. The metrics
 * have the given `store` label. Returns the values that must not be exported.
 */
const runWithExporters = <E>(store: string, exporters: Layer.Layer<never, E>) =>
  Effect.gen(function*() {
    const secret = Canary.secret()
    const emulator = yield* Emulator.make({
      clients: [{ clientId: clientId.value, clientSecret: Redacted.make(secret.value) }]
    })
    const StoreAuthLive = StoreAuth.layer({
      authUrl: emulator.url,
      apiUrl: emulator.url,
      clientId: clientId.value,
      clientSecret: Redacted.make(secret.value)
    }).pipe(Layer.provide(NodeHttpClient.layerUndici))
    yield* Effect.gen(function*() {
      const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      yield* Effect.flatMap(client.get("/orders"), ({ text }) => text)
      yield* emulator.fail(Fault.status(503))
      yield* provider.refresh
      yield* emulator.revoke()
      yield* Effect.flatMap(client.get("/orders"), ({ text }) => text)
      yield* emulator.fail(Fault.status(400))
      yield* Effect.exit(provider.refresh)
    }).pipe(
      Effect.provide(StoreAuthLive),
      // The span also surrounds the layer. Acquisitions are root spans anyway.
      Effect.withSpan("the application"),
      withHeadersOnSpans,
      Effect.tagMetrics("store", store),
      Logger.withMinimumLogLevel(LogLevel.Debug),
      Effect.provide(exporters),
      Effect.provide(Logger.remove(Logger.defaultLogger))
    )
    const issued = yield* emulator.tokens
    assert.strictEqual(issued.length, 3)
    return [
      secret,
      clientId,
      ...issued.map(({ value }) => Canary.token(Redacted.value(value)))
    ]
  })

/** Four acquisitions: the second sent two requests, and the last failed. None is a child of the application's span. */
const assertSpans = (posts: ReadonlyArray<Post>) => {
  const spans = posts.filter(({ path }) => path === "/v1/traces").flatMap((post) =>
    innermost(post, "resourceSpans", "scopeSpans", "spans") as ReadonlyArray<Span>
  )
  const named = (name: string) => spans.filter((span) => span.name === name)
  const [application] = named("the application")
  const acquisitions = named("AccessTokenProvider.acquire")
  const requests = named("TokenEndpoint.request")
  deepStrictEqual([acquisitions.length, requests.length], [4, 5])
  for (const { parentSpanId } of acquisitions) assert.isTrue(!parentSpanId, "a root span")
  for (const span of [...acquisitions, ...requests]) {
    // Effect's own exporter (0.64) marks every failed span as interrupted.
    const own = Object.keys(attributesOf(span)).filter((key) =>
      !["span.label", "status.interrupted"].includes(key)
    )
    deepStrictEqual([own, span.links ?? []], [[], []])
  }
  const traces = new Set([application, ...acquisitions].map((span) => span?.traceId))
  assert.strictEqual(traces.size, 5, "one trace per acquisition")
  const perAcquisition = acquisitions.map(({ spanId, traceId }) =>
    requests.filter((request) =>
      request.parentSpanId === spanId && request.traceId === traceId
    ).length
  )
  deepStrictEqual(perAcquisition.sort(), [1, 1, 1, 2])
  const failed = [acquisitions, requests].map((all) =>
    all.filter(({ status }) => status.code === 2).length
  )
  deepStrictEqual(failed, [1, 2])
  // Spans of the HTTP client: children of our span for token requests, of the application's for API calls.
  const clients = spans.filter(({ name }) => /^(http\.client )?(GET|POST)$/.test(name))
  const ofEndpoint = clients.filter(({ parentSpanId }) =>
    requests.some(({ spanId }) => spanId === parentSpanId)
  )
  deepStrictEqual([ofEndpoint.length, clients.length], [5, 8])
}

/** The last export happens after the layer's scope closed, when no token is cached. */
const assertMetrics = (store: string, posts: ReadonlyArray<Post>) => {
  const last = posts.filter(({ path }) => path === "/v1/metrics").at(-1)
  const metrics = last
    ? innermost(last, "resourceMetrics", "scopeMetrics", "metrics") as ReadonlyArray<MetricOf>
    : []
  const own = metrics.filter(({ name }) => name.startsWith("store_api_"))
  const table = own.flatMap(({ gauge, histogram, name, sum, unit }) => {
    const points = [sum, gauge, histogram].flatMap((kind) => kind?.dataPoints ?? []).map(
      attributesOf
    )
    return points.some((labels) => labels["store"] === store) ? [`${name} ${unit}`] : []
  })
  deepStrictEqual(table.sort(), [
    "store_api_token_acquisition_duration_seconds s",
    "store_api_token_acquisitions 1",
    "store_api_token_callers_joined 1",
    "store_api_token_cooldowns 1",
    "store_api_token_expiry_timestamp_seconds s",
    "store_api_token_rejections 1"
  ])
}

/** The last export has time on a busy machine, too. */
const shop = { resource: { serviceName: "a shop" }, shutdownTimeout: "30 seconds" } as const

const otlp: ReadonlyArray<
  readonly [string, ReadonlyArray<string>, (url: string) => Layer.Layer<never>]
> = [[
  "the SDK's exporters",
  ["/v1/metrics", "/v1/traces"],
  (url) =>
    Layer.discard(NodeSdk.layer(() => ({
      ...shop,
      spanProcessor: new SimpleSpanProcessor(
        new OTLPTraceExporter({ url: `${url}/v1/traces` })
      ),
      metricReader: new PeriodicExportingMetricReader({
        exporter: new OTLPMetricExporter({ url: `${url}/v1/metrics` }),
        exportIntervalMillis: 3_600_000
      })
    })))
], [
  "Effect's own exporters",
  ["/v1/logs", "/v1/metrics", "/v1/traces"],
  (baseUrl) =>
    Otlp.layerJson({ baseUrl, ...shop }).pipe(Layer.provide(NodeHttpClient.layerUndici))
]]

describe("the span of the HTTP client", () => {
  /** Runs an effect, and returns the names of its spans and the queries that they show. */
  const spansOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.gen(function*() {
      const spans: Array<Tracer.Span> = []
      yield* Effect.withTracer(
        effect,
        observed(yield* Effect.tracer, (span) => spans.push(span))
      )
      return {
        // Effect 4 names it after the method alone.
        names: spans.map(({ name }) => name.replace("http.client ", "")),
        queries: spans.flatMap(({ attributes }) =>
          attributes.has("url.query") ? [attributes.get("url.query")] : []
        )
      }
    })

  /** One token request. */
  const acquire = (
    change: (
      request: HttpClientRequest.HttpClientRequest
    ) => HttpClientRequest.HttpClientRequest,
    transformClient: (client: HttpClient.HttpClient) => HttpClient.HttpClient = identity
  ) => {
    const client = FakeClient.make(FakeClient.token)
    const transformed = Layer.effect(
      HttpClient.HttpClient,
      Effect.map(HttpClient.HttpClient, transformClient)
    )
    const request = TokenRequest.make({
      identity: "shop",
      request: () => Effect.succeed(change(HttpClientRequest.post("")))
    })
    return FakeClient.acquire({ ...client, layer: Layer.provide(transformed, client.layer) }, {
      request
    })
  }

  const withQuery = HttpClientRequest.setUrlParam("key", "an-invented-key")

  /** Decides for itself which requests have a span. */
  const traced = HttpClient.transformResponse(
    Effect.locally(HttpClient.currentTracerDisabledWhen, () => false)
  )

  test("exists for a token request without a query", function*() {
    const expected = { names: ["TokenEndpoint.request", "POST"], queries: [] }
    deepStrictEqual(yield* spansOf(acquire(identity)), expected)
    deepStrictEqual(yield* spansOf(acquire(identity, traced)), expected)
  })

  test.each(
    [
      ["of the request", withQuery, undefined],
      ["of the request, over a client with its own rule", withQuery, traced],
      ["that the given client adds", identity, HttpClient.mapRequest(withQuery)]
    ] as const
  )(
    "does not exist for a token request with a query %s",
    function*([, change, transformClient]) {
      const { names, queries } = yield* spansOf(acquire(change, transformClient))
      deepStrictEqual([names, queries], [["TokenEndpoint.request"], []])
    }
  )

  test("control: shows the query of another request", function*() {
    const client = FakeClient.make(FakeClient.token)
    const send = HttpClient.execute(
      withQuery(HttpClientRequest.post("https://auth.shop.example"))
    )
    const { queries } = yield* spansOf(Effect.provide(send, client.layer))
    deepStrictEqual(queries, ["key=an-invented-key"])
  })
})

describe.each(otlp)("OTLP export to a collector by %s", (name, paths, exporters) => {
  const exported = shared(Effect.gen(function*() {
    const { posts, url } = yield* collector
    return { canaries: yield* Effect.orDie(runWithExporters(name, exporters(url))), posts }
  }))

  test.live("sends JSON to the paths of its signals", function*() {
    const { posts } = yield* exported
    deepStrictEqual([...new Set(posts.map(({ path }) => path))].sort(), paths)
    for (const { contentType } of posts) assert.include(contentType, "application/json")
  })

  test.live("sends a trace per acquisition", function*() {
    assertSpans((yield* exported).posts)
  })

  test.live("sends the metrics of the library", function*() {
    assertMetrics(name, (yield* exported).posts)
  })

  test.live("sends no secret, token or client id", function*() {
    const { canaries, posts } = yield* exported
    for (const { body } of posts) deepStrictEqual(Canary.find(body, canaries), [])
  })
})
