/** An OpenTelemetry collector on loopback. Records the requests it receives: OTLP over HTTP, in JSON. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Schema, type Scope } from "effect"

/** One POST request to `/v1/traces`, `/v1/metrics` or `/v1/logs`. */
export interface Post {
  readonly path: string
  readonly contentType: string
  readonly body: string
}

export interface Collector {
  readonly url: string
  readonly posts: Effect.Effect<ReadonlyArray<Post>>
}

export const make: Effect.Effect<Collector, never, Scope.Scope> = Effect.acquireRelease(
  Effect.async<Collector & { readonly close: Effect.Effect<void> }>((resume) => {
    const posts: Array<Post> = []
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        posts.push({
          path: request.url ?? "",
          contentType: request.headers["content-type"] ?? "",
          body: Buffer.concat(chunks).toString()
        })
        response.setHeader("content-type", "application/json").end("{}")
      })
    })
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      resume(Effect.succeed({
        url: `http://127.0.0.1:${port}`,
        posts: Effect.sync(() => posts.slice()),
        close: Effect.async<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
      }))
    })
  }),
  ({ close }) => close
)

export interface Span {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | undefined
  readonly attributes: Readonly<Record<string, unknown>>
  readonly failed: boolean
}

export interface Point {
  readonly name: string
  readonly unit: string
  readonly labels: Readonly<Record<string, unknown>>
  readonly value: unknown
}

const Attributes = Schema.Array(
  Schema.Struct({
    key: Schema.String,
    value: Schema.Record({ key: Schema.String, value: Schema.Unknown })
  })
)

const Traces = Schema.parseJson(Schema.Struct({
  resourceSpans: Schema.Array(Schema.Struct({
    scopeSpans: Schema.Array(Schema.Struct({
      spans: Schema.Array(Schema.Struct({
        traceId: Schema.String,
        spanId: Schema.String,
        parentSpanId: Schema.optional(Schema.String),
        name: Schema.String,
        attributes: Attributes,
        status: Schema.Struct({ code: Schema.Number })
      }))
    }))
  }))
}))

const Points = Schema.Struct({
  dataPoints: Schema.Array(Schema.Struct({
    attributes: Attributes,
    asDouble: Schema.optional(Schema.Number),
    asInt: Schema.optional(Schema.Number)
  }))
})

const Metrics = Schema.parseJson(Schema.Struct({
  resourceMetrics: Schema.Array(Schema.Struct({
    scopeMetrics: Schema.Array(Schema.Struct({
      metrics: Schema.Array(Schema.Struct({
        name: Schema.String,
        unit: Schema.String,
        sum: Schema.optional(Points),
        gauge: Schema.optional(Points),
        histogram: Schema.optional(Points)
      }))
    }))
  }))
}))

const toRecord = (attributes: typeof Attributes.Type) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

const bodies = (posts: ReadonlyArray<Post>, path: string) =>
  posts.filter((post) => post.path === path).map(({ body }) => body)

/** All spans of all POST requests. */
export const spansOf = (posts: ReadonlyArray<Post>) =>
  Effect.map(Effect.forEach(bodies(posts, "/v1/traces"), (body) => Schema.decode(Traces)(body)), (traces) =>
    traces
      .flatMap(({ resourceSpans }) => resourceSpans)
      .flatMap(({ scopeSpans }) => scopeSpans)
      .flatMap(({ spans }) => spans)
      .map(({ attributes, name, parentSpanId, spanId, status, traceId }): Span => ({
        name,
        traceId,
        spanId,
        parentId: parentSpanId === "" ? undefined : parentSpanId,
        attributes: toRecord(attributes),
        failed: status.code === 2
      })))

/** All data points of the last POST request with metrics. */
export const lastMetricsOf = (posts: ReadonlyArray<Post>) =>
  Effect.map(Schema.decode(Metrics)(bodies(posts, "/v1/metrics").at(-1) ?? ""), ({ resourceMetrics }) =>
    resourceMetrics
      .flatMap(({ scopeMetrics }) => scopeMetrics)
      .flatMap(({ metrics }) => metrics)
      .flatMap(({ gauge, histogram, name, sum, unit }) =>
        [sum, gauge, histogram].flatMap((points) => points?.dataPoints ?? []).map(
          ({ asDouble, asInt, attributes }): Point => ({
            name,
            unit,
            labels: toRecord(attributes),
            value: asDouble ?? asInt
          })
        )
      ))
