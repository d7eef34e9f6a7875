/** Tests the spans, metrics and log lines that an application exports, and that they contain no secret. */
import { NodeSdk, Otlp } from "@effect/opentelemetry"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { SpanStatusCode } from "@opentelemetry/api"
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http"
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http"
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { AccessTokenProvider, AuthorizedHttpClient, StoreAuth } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { Effect, Layer, Logger, LogLevel, Redacted } from "effect"
import * as Canary from "./leaks/support/canary.js"
import { find } from "./leaks/support/canary.js"
import * as Collector from "./support/collector.js"
import { withHeadersOnSpans } from "./support/effectLine.js"
import { test } from "./support/test.js"

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
    return [secret, clientId, ...issued.map(({ value }) => Canary.token(Redacted.value(value)))]
  })

/** Four acquisitions: the second sent two requests, and the last failed. None is a child of the application's span. */
const assertSpans = (spans: ReadonlyArray<Collector.Span>) => {
  const named = (name: string) => spans.filter((span) => span.name === name)
  const [application] = named("the application")
  const acquisitions = named("AccessTokenProvider.acquire")
  const requests = named("TokenEndpoint.request")
  deepStrictEqual([acquisitions.length, requests.length], [4, 5])
  for (const { parentId } of acquisitions) assert.strictEqual(parentId, undefined, "a root span")
  for (const span of [...acquisitions, ...requests]) deepStrictEqual(ownAttributes(span), {})
  assert.strictEqual(
    new Set([application, ...acquisitions].map((span) => span?.traceId)).size,
    5,
    "one trace per acquisition"
  )
  const perAcquisition = acquisitions.map(({ spanId, traceId }) =>
    requests.filter((request) => request.parentId === spanId && request.traceId === traceId).length
  )
  deepStrictEqual(perAcquisition.sort(), [1, 1, 1, 2])
  deepStrictEqual(acquisitions.filter(({ failed }) => failed).length, 1)
  deepStrictEqual(requests.filter(({ failed }) => failed).length, 2)
  // Spans of the HTTP client: children of our span for token requests, of the application's for API calls.
  const clients = spans.filter(({ name }) => /^(http\.client )?(GET|POST)$/.test(name))
  deepStrictEqual(clients.map(({ parentId }) => requests.some(({ spanId }) => spanId === parentId)).sort(), [
    ...[false, false, false],
    ...[true, true, true, true, true]
  ])
  for (const { attributes, parentId } of clients) {
    if (parentId === application?.spanId) {
      assert.strictEqual(attributes["http.request.header.authorization"], "<redacted>")
      continue
    }
    const headers = Object.keys(attributes).filter((key) => key.includes(".header."))
    assert.isNotEmpty(headers)
    for (const header of headers) assert.strictEqual(attributes[header], "<redacted>", header)
    assert.notInclude(headers, "http.request.header.traceparent")
  }
}

/** Effect's own exporter (0.64) marks every failed span as interrupted. */
const ownAttributes = ({ attributes }: Collector.Span) =>
  Object.fromEntries(
    Object.entries(attributes).filter(([key]) => key !== "span.label" && key !== "status.interrupted")
  )

const assertMetrics = (store: string, points: ReadonlyArray<Collector.Point>) => {
  const own = points.filter(({ labels, name }) => name.startsWith("store_api_") && labels["store"] === store)
  const table = own.map(({ labels: { store: _, unit, ...labels }, name, unit: unitOfMetric, value }) => {
    if (unit !== undefined) assert.strictEqual(unitOfMetric, unit)
    return `${name} ${JSON.stringify(labels)} ${unitOfMetric}${typeof value === "number" ? ` ${value}` : ""}`
  })
  // The last export happens after the layer's scope closed, when no token is cached.
  deepStrictEqual(table.sort(), [
    `store_api_token_acquisition_duration_seconds {} s`,
    `store_api_token_acquisitions {"outcome":"CredentialsError"} 1 0`,
    `store_api_token_acquisitions {"outcome":"Defect"} 1 0`,
    `store_api_token_acquisitions {"outcome":"Success"} 1 3`,
    `store_api_token_acquisitions {"outcome":"TokenExpiredError"} 1 0`,
    `store_api_token_acquisitions {"outcome":"TokenRefusedError"} 1 1`,
    `store_api_token_acquisitions {"outcome":"TokenRequestError"} 1 0`,
    `store_api_token_acquisitions {"outcome":"TokenResponseError"} 1 0`,
    `store_api_token_callers_joined {} 1 0`,
    `store_api_token_cooldowns {"cause":"Failure"} 1 1`,
    `store_api_token_cooldowns {"cause":"NoProgress"} 1 0`,
    `store_api_token_expiry_timestamp_seconds {} s 0`,
    `store_api_token_rejections {"outcome":"Dropped"} 1 1`,
    `store_api_token_rejections {"outcome":"Kept"} 1 0`
  ])
}

const assertNotExported = (canaries: ReadonlyArray<Canary.Canary>, texts: ReadonlyArray<string>) => {
  for (const text of texts) deepStrictEqual(find(text, canaries), [])
  // Control: each value is found after it is inserted into the exported text.
  for (const canary of canaries) {
    for (const text of texts) {
      const leaked = find(`${text.slice(0, text.length / 2)}${canary.value}${text.slice(text.length / 2)}`, canaries)
      assert.isTrue(leaked.some((found) => found.canary === canary.name))
    }
  }
}

describe("the SDK's in-memory exporters", () => {
  test.live("receive spans and metrics with the documented names, parents and values", function*() {
    const spans = new InMemorySpanExporter()
    const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    // Shutdown clears the exporters, so their content is copied first.
    const kept: { spans: ReturnType<typeof spans.getFinishedSpans>; metrics: ReturnType<typeof metrics.getMetrics> } = {
      spans: [],
      metrics: []
    }
    const exporters = NodeSdk.layer(() => ({
      resource: { serviceName: "a shop" },
      spanProcessor: new SimpleSpanProcessor(spans),
      metricReader: new PeriodicExportingMetricReader({ exporter: metrics, exportIntervalMillis: 3_600_000 })
    }))
    const originalShutdown = { spans: spans.shutdown.bind(spans), metrics: metrics.shutdown.bind(metrics) }
    spans.shutdown = () => {
      kept.spans = spans.getFinishedSpans().slice()
      return originalShutdown.spans()
    }
    metrics.shutdown = () => {
      kept.metrics = metrics.getMetrics().slice()
      return originalShutdown.metrics()
    }
    const canaries = yield* runWithExporters("in memory", Layer.discard(exporters))
    assertSpans(kept.spans.map((span) => ({
      name: span.name,
      traceId: span.spanContext().traceId,
      spanId: span.spanContext().spanId,
      parentId: span.parentSpanContext?.spanId,
      attributes: span.attributes,
      failed: span.status.code === SpanStatusCode.ERROR
    })))
    for (const { links, name } of kept.spans) deepStrictEqual([name, links], [name, []])
    const last = kept.metrics.at(-1)?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? []
    assertMetrics(
      "in memory",
      last.flatMap(({ dataPoints, descriptor: { name, unit } }) =>
        dataPoints.map(({ attributes, value }) => ({ name, unit, labels: attributes, value }))
      )
    )
    const duration = last.find(({ descriptor }) => descriptor.name.includes("duration_seconds"))
    const histogram = duration?.dataPointType === DataPointType.HISTOGRAM
      ? duration.dataPoints.find(({ attributes }) => attributes["store"] === "in memory")?.value
      : undefined
    assert.strictEqual(histogram?.count, 4)
    // The second acquisition pauses for 150 to 200 ms before its second attempt.
    assert.isAbove(histogram?.sum ?? 0, 0.15)
    assert.isBelow(histogram?.sum ?? Infinity, 20, "the unit is seconds")
    const texts = [
      ...kept.spans.map(({ attributes, events, name, status }) => JSON.stringify({ attributes, events, name, status })),
      JSON.stringify(kept.metrics)
    ]
    assertNotExported(canaries, texts)
  })
})

const otlp: ReadonlyArray<readonly [string, ReadonlyArray<string>, (url: string) => Layer.Layer<never>]> = [
  [
    "the SDK's exporters",
    ["/v1/metrics", "/v1/traces"],
    (url) =>
      Layer.discard(NodeSdk.layer(() => ({
        resource: { serviceName: "a shop" },
        spanProcessor: new SimpleSpanProcessor(new OTLPTraceExporter({ url: `${url}/v1/traces` })),
        metricReader: new PeriodicExportingMetricReader({
          exporter: new OTLPMetricExporter({ url: `${url}/v1/metrics` }),
          exportIntervalMillis: 3_600_000
        })
      })))
  ],
  [
    "Effect's own exporters",
    ["/v1/logs", "/v1/metrics", "/v1/traces"],
    (baseUrl) =>
      Otlp.layerJson({ baseUrl, resource: { serviceName: "a shop" } }).pipe(Layer.provide(NodeHttpClient.layerUndici))
  ]
]

describe.each(otlp)("OTLP export to a collector by %s", (name, paths, exporters) => {
  test.live("sends spans and metrics, and no secret, token or client id", function*() {
    const collector = yield* Collector.make
    const canaries = yield* runWithExporters(name, exporters(collector.url))
    const posts = yield* collector.posts
    deepStrictEqual([...new Set(posts.map(({ path }) => path))].sort(), paths)
    for (const { contentType } of posts) assert.include(contentType, "application/json")
    assertSpans(yield* Collector.spansOf(posts))
    assertMetrics(name, yield* Collector.lastMetricsOf(posts))
    assertNotExported(canaries, posts.map(({ body }) => body))
  })
})
