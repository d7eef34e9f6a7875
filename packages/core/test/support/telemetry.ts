/** Captures the telemetry of a program: lines of each of Effect's loggers, the console, spans and log records. */
import { format, inspect } from "node:util"
import { NodeSdk } from "@effect/opentelemetry"
import { InMemoryLogRecordExporter, SimpleLogRecordProcessor } from "@opentelemetry/sdk-logs"
import { InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Effect, type Exit, Layer, Logger, LogLevel, Tracer } from "effect"
import { withConsole } from "./effectLine.js"
import type { Output } from "./renderings.js"

/**
 * Effect's loggers with different formats. The pretty loggers write to the console. The default and leveled loggers
 * print the output of `stringLogger`.
 */
const loggers = (see: (name: string, line: unknown) => void): ReadonlyArray<Logger.Logger<unknown, void>> => [
  Logger.map(Logger.stringLogger, (line) => see("string", line)),
  Logger.map(Logger.logfmtLogger, (line) => see("logfmt", line)),
  Logger.map(Logger.jsonLogger, (line) => see("json", line)),
  Logger.map(Logger.structuredLogger, (line) => see("structured", line)),
  Logger.prettyLogger({ mode: "tty", colors: false }),
  Logger.prettyLogger({ mode: "browser", colors: false })
]

export interface Captured<A, E> {
  readonly exit: Exit.Exit<A, E>
  readonly outputs: ReadonlyArray<Output>
}

/** Runs a program with all loggers and exporters, at the lowest log level. */
export const capture = <A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<Captured<A, E>, never, R> =>
  Effect.gen(function*() {
    const outputs: Array<Output> = []
    const see = (name: string, line: unknown) => {
      outputs.push({ name: `logger ${name}`, text: typeof line === "string" ? line : inspect(line, { depth: 50 }) })
    }
    const spans = new InMemorySpanExporter()
    const records = new InMemoryLogRecordExporter()
    const exporters = NodeSdk.layer(() => ({
      resource: { serviceName: "leaks" },
      spanProcessor: new SimpleSpanProcessor(spans),
      logRecordProcessor: new SimpleLogRecordProcessor({ exporter: records })
    }))
    const replaced = Layer.mergeAll(
      Logger.remove(Logger.defaultLogger),
      ...loggers(see).map((logger) => Logger.add(logger))
    )
    const exit = yield* Effect.exit(withoutContext(program)).pipe(
      Effect.tap(() =>
        // Shutdown empties the exporters, so they are read before it.
        Effect.sync(() => {
          for (const { attributes, events, links, name, resource, status } of spans.getFinishedSpans()) {
            const span = { name, attributes, events, status, links, resource: resource.attributes }
            outputs.push({ name: `span ${name}`, text: JSON.stringify(span) })
          }
          for (const { attributes, body, severityText } of records.getFinishedLogRecords()) {
            const record = { body, attributes, severityText }
            outputs.push({ name: "log record", text: JSON.stringify(record) })
          }
        })
      ),
      Effect.provide(Layer.provideMerge(replaced, exporters)),
      withConsole((method, args) => {
        outputs.push({ name: `console.${method}`, text: format(...args) })
      }),
      Logger.withMinimumLogLevel(LogLevel.All)
    )
    return { exit, outputs }
  })

/** Prevents the tracer from entering an OpenTelemetry context at every step, which takes longer than the program. */
const withoutContext = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Effect.tracer, (tracer) => Effect.withTracer(effect, observed(tracer)))

/** Wraps a tracer, passes each new span to `see`, and enters no tracing context. */
export const observed = (tracer: Tracer.Tracer, see: (span: Tracer.Span) => void = () => undefined): Tracer.Tracer =>
  Tracer.make({
    span: (...options) => {
      const span = tracer.span(...options)
      see(span)
      return span
    },
    context: (step) => step()
  })
