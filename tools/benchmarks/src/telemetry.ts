/** An application that is traced: OpenTelemetry's SDK beside it, its spans and metrics exported while it is measured. */
import { NodeSdk } from "@effect/opentelemetry"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { BatchSpanProcessor, InMemorySpanExporter } from "@opentelemetry/sdk-trace-base"
import { Effect, ManagedRuntime } from "effect"
import type { Run } from "./harness.js"

const application = "the application"
const acquisition = "AccessTokenProvider.acquire"
export const apiRequest = "http.client GET"

/** Counts the spans by name and keeps none. A collector in another process would take its share of the machine. */
class SpanCounter extends InMemorySpanExporter {
  private readonly counts = new Map<string, number>()

  override export(...[spans, done]: Parameters<InMemorySpanExporter["export"]>) {
    for (const { name } of spans) this.counts.set(name, this.count(name) + 1)
    super.export(spans, done)
    this.reset()
  }

  count(name: string): number {
    return this.counts.get(name) ?? 0
  }
}

/** The value of a counter in each collection so far. */
const collected = (exporter: InMemoryMetricExporter, counter: string, label: string): ReadonlyArray<number> =>
  exporter.getMetrics().flatMap(({ scopeMetrics }) =>
    scopeMetrics.flatMap(({ metrics }) => metrics).filter(({ descriptor }) => descriptor.name === counter)
      .flatMap(({ dataPoints }) => dataPoints.filter(({ attributes }) => Object.values(attributes).includes(label)))
      .flatMap(({ value }) => typeof value === "number" ? [value] : [])
  )

/** A turn of the event loop: the exporters have timers. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

/**
 * Runs a measurement that runs its effects within a span of the application. Fails unless the exporters saw each of these
 * spans, the provider's, those that are `expected` besides, and the provider's metrics while it ran.
 */
export const traced = async <A>(
  measure: (run: Run) => Promise<A>,
  expected: ReadonlyArray<string> = []
): Promise<A> => {
  const spans = new SpanCounter()
  const spanProcessor = new BatchSpanProcessor(spans)
  const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const metricReader = new PeriodicExportingMetricReader({
    exporter: metrics,
    exportIntervalMillis: 100,
    exportTimeoutMillis: 100
  })
  const runtime = ManagedRuntime.make(
    NodeSdk.layer(() => ({ resource: { serviceName: "an application" }, spanProcessor, metricReader }))
  )
  let started = 0
  const measured = await measure(async (effect) => {
    started++
    const result = await runtime.runPromise(Effect.withSpan(effect, application))
    await turn()
    return result
  })
  await spanProcessor.forceFlush()
  const acquired = collected(metrics, "store_api_token_acquisitions", "Success")
  await runtime.dispose()

  if (spans.count(application) !== started) {
    throw new Error(`Not traced: ${spans.count(application)} of ${started} spans of the application were exported.`)
  }
  for (const name of [acquisition, ...expected]) {
    if (spans.count(name) === 0) throw new Error(`Not traced: no span ${name} was exported.`)
  }
  if (!acquired.includes(1)) throw new Error("Not traced: no acquisition was in the metrics collected meanwhile.")
  return measured
}
