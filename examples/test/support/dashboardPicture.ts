/** Records four hours of two processes on a virtual clock, and draws the dashboard from the results of Prometheus. */
import { Metrics, Resource } from "@effect/opentelemetry"
import { HttpClient, HttpClientResponse } from "@effect/platform"
import { PrometheusSerializer } from "@opentelemetry/exporter-prometheus"
import { AuthorizedHttpClient, StoreAuth } from "@store-api/core"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Context, Effect, Layer, Random, Redacted } from "effect"
import { asked, named, type Panel, panels } from "./dashboard.js"
import type { Prometheus } from "./prometheus.js"

const minute = 60_000
const from = Date.UTC(2026, 0, 15, 8)
const until = 240 * minute

/** In milliseconds since the start, as all times of the recording. */
const outage = { from: 108 * minute, to: 121 * minute }
const revocation = 190 * minute

/** The second process starts later. No other test may use this store. */
const processes = [{ instance: "shop-1:9464", starts: 0 }, {
  instance: "shop-2:9464",
  starts: 25 * minute
}]
const store = "orders"

/** The token endpoint and the API. */
const service = (now: () => number) => {
  const issued = new Map<string | undefined, number>()
  return HttpClient.make((request) => {
    const respond = (status: number, body: object = {}) =>
      Effect.delay(
        Effect.succeed(HttpClientResponse.fromWeb(request, Response.json(body, { status }))),
        "200 millis"
      )
    if (request.url.endsWith("/orders")) {
      const isRevoked = now() >= revocation &&
        (issued.get(request.headers["authorization"]) ?? 0) < revocation
      return respond(isRevoked ? 401 : 200)
    }
    if (now() >= outage.from && now() < outage.to) return respond(503)
    const value = `token-${issued.size}`
    issued.set(`Bearer ${value}`, now())
    return respond(200, { access_token: value, token_type: "bearer", expires_in: 3600 })
  })
}

/** Builds the client of one process, with the labels that Prometheus adds to its series. */
const start = (http: HttpClient.HttpClient, instance: string) =>
  Layer.build(
    StoreAuth.layer({
      authUrl: "https://auth.store.example",
      apiUrl: "https://api.store.example",
      clientId: "a-client",
      clientSecret: Redacted.make("an-invented-secret")
    }).pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, http)))
  ).pipe(
    Effect.map(Context.get(AuthorizedHttpClient.AuthorizedHttpClient)),
    Effect.tagMetrics({ store, job: "shop", instance })
  )

/** The series that Prometheus would scrape twice a minute, as OpenMetrics. */
export const record = Effect.gen(function*() {
  const virtual = VirtualClock.make(from)
  const now = virtual.monotonic
  const http = service(now)
  const clients: Array<AuthorizedHttpClient.Service> = []
  const producer = yield* Metrics.makeProducer
  const serializer = new PrometheusSerializer("", false, undefined, true, true)
  const lines: Array<string> = []
  yield* Effect.gen(function*() {
    while (now() <= until) {
      // Three calls at once, so that some join an acquisition.
      for (const client of now() % 20_000 === 0 ? [...clients, ...clients, ...clients] : []) {
        yield* Effect.fork(Effect.exit(client.get("/orders")))
      }
      for (const { instance, starts } of processes) {
        if (starts === now()) clients.push(yield* start(http, instance))
      }
      // Never at a full minute, because versions of Prometheus differ in whether a range includes its first moment.
      if (now() % 30_000 === 10_000) {
        const { resourceMetrics } = yield* Effect.promise(() => producer.collect())
        const served = serializer.serialize(resourceMetrics).split("\n")
        const ours = served.filter((line) =>
          line.startsWith("store_api_") && line.includes(`store="${store}"`)
        )
        lines.push(...ours.map((line) => `${line} ${(from + now()) / 1000}`))
      }
      yield* virtual.advance("10 seconds")
    }
  }).pipe(Effect.withClock(virtual.clock), Effect.withRandom(Random.fixed([0.5])))
  return `${lines.join("\n")}\n# EOF\n`
}).pipe(Effect.scoped, Effect.provide(Resource.layer({ serviceName: "shop" })))

interface Line {
  readonly name: string
  readonly points: ReadonlyArray<Point>
}

/** A time in milliseconds since the start and a value, or the position of both. */
type Point = readonly [x: number, y: number]

/** The answers to the queries of each panel. */
export const evaluate = (prometheus: Prometheus) =>
  Effect.forEach(panels, (panel) =>
    Effect.map(
      Effect.forEach(panel.targets, ({ expr, legendFormat }) =>
        Effect.map(
          prometheus.queryRange(asked(expr, store), from / 1000, (from + until) / 1000),
          (series) =>
            series.map(({ metric, values }): Line => {
              const numbers = values.filter(([, value]) => value !== "NaN")
              const points = numbers.map((
                [time, value]
              ): Point => [time * 1000 - from, Number(value)])
              return { name: named(legendFormat, metric), points }
            })
        )),
      (lines) => ({ panel, lines: lines.flat() })
    ))

const round = (value: number) => Number(value.toFixed(1))

const text = (x: number, y: number, content: string, style: string) =>
  `<text class="${style}" x="${round(x)}" y="${round(y)}">${content}</text>`

const shown = (value: number, unit: Panel["fieldConfig"]["defaults"]["unit"]) => {
  if (unit === "percentunit") return `${round(value * 100)}%`
  if (unit === "short") return `${round(value)}`
  if (value >= 60) return `${round(value / 60)} min`
  return value >= 1 || value === 0 ? `${round(value)} s` : `${Math.round(value * 1000)} ms`
}

/** The values of the axis, from 0. */
const ticks = (highest: number, isTime: boolean) => {
  const power = 10 ** Math.floor(Math.log10(highest / 4))
  const steps = isTime && highest >= 240
    ? [300, 600, 900, 1200, 1800]
    : [1, 2, 2.5, 5, 10].map((factor) => factor * power)
  const step = steps.find((step) => step * 4.2 >= highest) ?? 3600
  return Array.from(
    { length: Math.ceil(highest / step - 0.05) + 1 },
    (_, index) => index * step
  )
}

/** A line without the points between two others of the same slope. */
const path = (points: ReadonlyArray<Point>) => {
  const kept: Array<Point> = []
  for (const [index, [x, y]] of points.entries()) {
    const [before, after] = [kept.at(-1), points[index + 1]]
    const slope = before && after && (after[1] - before[1]) / (after[0] - before[0])
    const isBetween = before && slope !== undefined &&
      Math.abs(before[1] + slope * (x - before[0]) - y) < 0.2
    if (!isBetween) kept.push([x, y])
  }
  return `M${kept.map(([x, y]) => `${round(x)} ${round(y)}`).join("L")}`
}

interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** The last value of each line, in the colour of its threshold. */
const stat = (
  { fieldConfig: { defaults: { thresholds, unit } } }: Panel,
  lines: ReadonlyArray<Line>,
  box: Box
) =>
  lines.map(({ points }) => {
    const value = points.at(-1)?.[1] ?? NaN
    const colour = thresholds?.steps.filter((step) =>
      step.value === null || step.value <= value
    ).at(-1)?.color ?? ""
    return text(
      box.x + box.width / 2,
      box.y + box.height - 26,
      shown(value, unit),
      `value ${colour}`
    )
  })

const legend = (lines: ReadonlyArray<Line>, box: Box) => {
  let [x, row] = [box.x + 12, 0]
  const entries = lines.map(({ name }, index) => {
    const width = 28 + name.length * 6.4
    if (x + width > box.x + box.width) [x, row] = [box.x + 12, row + 1]
    const entry = { index, name, x, row }
    x += width
    return entry
  })
  const y = (of: number) => box.y + box.height - 12 - (row - of) * 18
  return {
    height: row * 18 + 22,
    drawn: entries.flatMap(({ index, name, row, x }) => [
      `<path class="c${index}" d="M${round(x)} ${y(row) - 4}h12"/>`,
      text(x + 17, y(row), name, "small")
    ])
  }
}

const chart = (
  { fieldConfig: { defaults: { unit } } }: Panel,
  lines: ReadonlyArray<Line>,
  box: Box
) => {
  const below = legend(lines, box)
  const marks = ticks(
    Math.max(...lines.flatMap(({ points }) => points.map(([, value]) => value))) || 1,
    unit === "s"
  )
  const [left, right] = [box.x + 58, box.x + box.width - 26]
  const [high, low] = [box.y + 44, box.y + box.height - below.height - 26]
  const x = (at: number) => left + at / until * (right - left)
  const y = (value: number) => low - value / (marks.at(-1) ?? 1) * (low - high)
  const hours = Array.from({ length: 5 }, (_, index) => index * 60 * minute)
  return [
    ...marks.map((value) => `<path class="grid" d="M${left} ${round(y(value))}H${right}"/>`),
    ...marks.map((value) => text(left - 8, y(value) + 4, shown(value, unit), "small end")),
    ...hours.map((at) =>
      text(x(at), low + 18, new Date(from + at).toISOString().slice(11, 16), "small middle")
    ),
    ...lines.flatMap(({ points }, index) => {
      const line = path(points.map(([at, value]) => [x(at), y(value)]))
      const area = `${line}V${low}H${round(x(points[0]?.[0] ?? 0))}`
      return [
        `<path class="area c${index}" d="${area}"/>`,
        `<path class="c${index}" d="${line}"/>`
      ]
    }),
    ...below.drawn
  ]
}

/** The picture with these answers. The rest of the picture, such as its colours, stays as it is. */
export const draw = (
  picture: string,
  answers: ReadonlyArray<{ readonly panel: Panel; readonly lines: ReadonlyArray<Line> }>
): string => {
  const drawn = answers.flatMap(({ lines, panel }) => {
    const { h, w, x, y } = panel.gridPos
    const box = { x: x * 40 + 4, y: y * 28 + 44, width: w * 40 - 8, height: h * 28 - 8 }
    return [
      `<rect class="panel" x="${box.x}" y="${box.y}" width="${box.width}" height="${box.height}" rx="4"/>`,
      text(box.x + 12, box.y + 23, panel.title, "title"),
      ...lines.length === 0
        ? [text(box.x + box.width / 2, box.y + box.height / 2 + 12, "No data", "dim middle")]
        : (panel.type === "stat" ? stat : chart)(panel, lines, box)
    ]
  })
  return picture.replace(/(?<=<g id="panels">\n)[^]*(?=<\/g>)/, `${drawn.join("\n")}\n`)
}
