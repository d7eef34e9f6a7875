/** Everything that a program logs and traces, as text. */
import { inspect } from "node:util"
import { Cause, Effect, Exit, Logger, LogLevel, Tracer } from "effect"

export interface Traces {
  readonly record: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly text: Effect.Effect<string>
}

/** What exporters take from a span: of its end, the failure. */
const line = (span: Tracer.Span) =>
  inspect([span.name, [...span.attributes]], { depth: 10 }) +
  (span.status._tag === "Ended" && Exit.isFailure(span.status.exit)
    ? Cause.pretty(span.status.exit.cause, { renderErrorCause: true })
    : "")

export const make: Effect.Effect<Traces> = Effect.map(Effect.tracer, (native) => {
  const lines: Array<string> = []
  const spans: Array<Tracer.Span> = []
  const loggers = [Logger.jsonLogger, Logger.logfmtLogger, Logger.stringLogger].map((logger) =>
    Logger.map(logger, (text) => void lines.push(text))
  )
  const logger = loggers.reduce((all, one) => Logger.zipLeft(all, one))
  const tracer = Tracer.make({
    context: (f) => f(),
    span: (...parameters) => {
      const span = native.span(...parameters)
      spans.push(span)
      return span
    }
  })
  return {
    record: (effect) =>
      effect.pipe(
        Effect.withTracer(tracer),
        Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
        Logger.withMinimumLogLevel(LogLevel.All)
      ),
    text: Effect.sync(() => [...lines, ...spans.map(line)].join("\n"))
  }
})

/** Whether a text holds a value, as it is or as it would be written in a form, in JSON, in base64 or as bytes. */
export const holds = (text: string, value: string): boolean => {
  const packed = text.replace(/\s/g, "")
  return [
    value,
    encodeURIComponent(value),
    JSON.stringify(value).slice(1, -1),
    Buffer.from(value).toString("base64").replace(/=+$/, ""),
    Buffer.from(value).toString("hex"),
    Buffer.from(value).join(",")
  ].some((form) => packed.includes(form.replace(/\s/g, "")))
}
