/** The measurements in alternating rounds, plain and in a traced application. Each runs in its own process. */
import { NodeSdk } from "@effect/opentelemetry"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { BatchSpanProcessor, InMemorySpanExporter } from "@opentelemetry/sdk-trace-base"
import { Effect, ManagedRuntime } from "effect"
import { measureAttach, withSpans } from "./attach.js"
import { measureCalls, measureCallsWithin, measureOwnCalls } from "./calls.js"
import type { Run } from "./harness.js"
import { measureHit } from "./hit.js"

const application = "the application"
const acquisition = "AccessTokenProvider.acquire"

/** Counts the spans by name and keeps none. A collector in another process would use the same processors. */
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

/** The values of a counter in all collections so far. */
const collected = (exporter: InMemoryMetricExporter, counter: string, label: string): ReadonlyArray<number> =>
  exporter.getMetrics().flatMap(({ scopeMetrics }) =>
    scopeMetrics.flatMap(({ metrics }) => metrics).filter(({ descriptor }) => descriptor.name === counter)
      .flatMap(({ dataPoints }) => dataPoints.filter(({ attributes }) => Object.values(attributes).includes(label)))
      .flatMap(({ value }) => typeof value === "number" ? [value] : [])
  )

/** Waits for one turn of the event loop, because the exporters use timers. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

/**
 * Runs a measurement whose effects are within spans of the application. Fails unless the exporters received these
 * spans, the provider's, the `expected` ones, and the provider's metrics during the run.
 */
const traced = async <A>(
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
  if (!acquired.includes(1)) throw new Error("Not traced: the collected metrics show no acquisition.")
  return measured
}

export const hit = (millis: number) => measureHit(millis)
export const attach = (millis: number) => measureAttach(millis)
export const tracedHit = (millis: number) => traced((run) => measureHit(millis, run))
export const tracedCalls = (millis: number) => traced((run) => measureCallsWithin(millis, run))
export const tracedAttach = (millis: number) => traced((run) => measureAttach(millis, run))
export const tracedRequest = (millis: number) =>
  traced((run) => measureAttach(millis, run, withSpans), ["http.client GET"])
export { measureCalls as calls, measureOwnCalls as ownCalls }
