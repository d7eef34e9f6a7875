/**
 * Captures the telemetry of a program: lines of each of Effect's loggers, the console, spans and log records. Records
 * what a test would otherwise not see of its process: the console, warnings, rejections and exceptions.
 */
import { format, inspect } from "node:util"
import { NodeSdk } from "@effect/opentelemetry"
import { InMemoryLogRecordExporter, SimpleLogRecordProcessor } from "@opentelemetry/sdk-logs"
import { InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { withConsole } from "@store-api/testing/effectMajor"
import type { Output } from "@store-api/testing/renderings"
import { Effect, type Exit, Layer, Logger, LogLevel, type Scope, Tracer } from "effect"

/**
 * Effect's loggers with different formats. The pretty loggers write to the console. The default and leveled loggers
 * print the output of `stringLogger`.
 */
const loggers = (
  see: (name: string, line: unknown) => void
): ReadonlyArray<Logger.Logger<unknown, void>> => [
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
export const capture = <A, E, R>(
  program: Effect.Effect<A, E, R>
): Effect.Effect<Captured<A, E>, never, R> =>
  Effect.gen(function*() {
    const outputs: Array<Output> = []
    const see = (name: string, line: unknown) => {
      outputs.push({
        name: `logger ${name}`,
        text: typeof line === "string" ? line : inspect(line, { depth: 50 })
      })
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
          for (
            const { attributes, events, links, name, resource, status } of spans
              .getFinishedSpans()
          ) {
            const span = {
              name,
              attributes,
              events,
              status,
              links,
              resource: resource.attributes
            }
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
export const observed = (
  tracer: Tracer.Tracer,
  see: (span: Tracer.Span) => void = () => undefined
): Tracer.Tracer =>
  Tracer.make({
    span: (...options) => {
      const span = tracer.span(...options)
      see(span)
      return span
    },
    context: (step) => step()
  })

const methods = ["log", "info", "warn", "error", "debug", "trace"] as const

/** Captures the console and the warnings until the returned function is called. */
export const watchConsole = (see: (output: Output) => void): () => void => {
  const original = { ...console }
  for (const method of methods) {
    console[method] = (...args: ReadonlyArray<unknown>) =>
      see({ name: `console.${method}`, text: format(...args) })
  }
  const warn = (warning: Error) =>
    see({ name: "warning", text: inspect(warning, { depth: 20 }) })
  process.on("warning", warn)
  return () => {
    process.off("warning", warn)
    Object.assign(console, original)
  }
}

const events = ["unhandledRejection", "uncaughtException"] as const

/** Records unhandled rejections and exceptions. Until the scope closes, the test runner's listeners are removed. */
export const watchUnhandled: Effect.Effect<
  Effect.Effect<ReadonlyArray<unknown>>,
  never,
  Scope.Scope
> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const seen: Array<unknown> = []
      const record = (reason: unknown) => void seen.push(reason)
      const previous = events.map((event) => process.listeners(event as "uncaughtException"))
      for (const event of events) process.removeAllListeners(event).on(event, record)
      return { seen, previous }
    }),
    ({ previous }) =>
      Effect.sync(() => {
        events.forEach((event, index) => {
          process.removeAllListeners(event)
          for (const listener of previous[index] ?? []) process.on(event, listener)
        })
      })
  ),
  ({ seen }) => Effect.sync(() => seen.slice())
)
