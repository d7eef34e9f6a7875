import { Tracer } from "effect"

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
