/** The plots of the page, as SVG from Vega-Lite, without a browser. The bytes are the same on every machine. */
import { parse, textMetrics, View } from "vega"
import { compile, type Config, type TopLevelSpec } from "vega-lite"
import { number } from "../page.js"
import * as formulas from "./formulas.js"
import * as scenarios from "./scenarios.js"
import { common, type Digests, kindPerHour, kindSizes, large, middling, of, sizes } from "./scenarios.js"

/** The plots, by their paths in `docs/evidence`. */
export const plots = async (digests: Digests): Promise<Readonly<Record<string, string>>> => ({
  "fleets/requests.svg": await growth(
    "Token requests an hour by number of processes",
    [["shared", "one token, shared"], ["alone", "a token for each process"]].flatMap(([kind = "", name = ""]) =>
      sizes.map(({ processes }) => ({ name, x: processes, y: of(digests, `${processes} ${kind}`).requestsPerHour }))
    )
  ),
  "fleets/kinds.svg": await growth(
    "Token requests an hour by kind of endpoint",
    [
      ["repeated", "the same token until it expires, shared"],
      ["repeated alone", "the same token until it expires, a token for each process"],
      ["new", "a new token each time, shared"]
    ].flatMap(([kind = "", name = ""]) =>
      kindSizes.map((size) => ({ name, x: size.processes, y: kindPerHour(digests, size, kind) }))
    )
  ),
  "fleets/repeated.svg": await strips(digests, {
    text: `The last minutes of a token, ${number(middling)} processes`,
    subtitle: "By second.",
    axis: ["seconds since the start; the first token expires after 3 600", 3270, 3690],
    view: scenarios.kindView,
    rows: [
      ["token requests, an endpoint that repeats its token", `${middling} repeated`, "requestBins"],
      ["commands at the store, an endpoint that repeats its token", `${middling} repeated`, "commandBins"],
      ["commands at the store, an endpoint that returns a new token", `${middling} new`, "commandBins"]
    ]
  }),
  "fleets/renewal.svg": await strips(digests, {
    text: `A renewal of ${number(large)} processes`,
    subtitle: "By second. Line: by the formula.",
    axis: afterRequest,
    view: scenarios.renewal,
    rows: [
      ["processes that look for a new token", "renewal", "acquisitionBins", turnsASecond],
      ["commands at the store, endpoint of 200 ms", "renewal", "commandBins"],
      ["commands at the store, endpoint of 2 s", "renewal, 2 s", "commandBins"],
      ["commands at the store, the process that holds the lease crashes", "renewal, holder crashes", "commandBins"]
    ]
  }),
  "fleets/cold.svg": await strips(digests, {
    text: `A cold start of ${number(large)} processes at once`,
    subtitle: "Commands at the store, by 100 ms.",
    axis: ["seconds since the start", 0, 6],
    view: scenarios.coldView,
    rows: [
      ["endpoint of 200 ms", "cold", "commandBins"],
      ["endpoint of 2 s", "cold, 2 s", "commandBins"],
      ["endpoint of 200 ms, the process that holds the lease crashes", "cold, holder crashes", "commandBins"]
    ]
  }),
  "fleets/outage.svg": await strips(digests, {
    text: `The store is down at a renewal of ${number(large)} processes`,
    subtitle: "Token requests by second. Line: by the formula.",
    axis: afterRequest,
    view: scenarios.renewal,
    rows: [
      ["store down from 5 minutes before to 5 minutes after", "outage", "requestBins", turnsASecond],
      ["store up", "renewal", "requestBins"]
    ]
  })
})

type Axis = readonly [title: string, from: number, to: number]

const afterRequest: Axis = ["seconds since the token request of the renewal", -5, 125]

const firstTurn = formulas.firstTurn(large, common)

/** How many processes of the large fleet look in a second, at a time after the first look. */
const turnsASecond = (time: number): number => formulas.turns(large, time + firstTurn, common) * 1000

const [blue, gray, orange] = ["#0969da", "#6e7781", "#bc4c00"]

/** Lines of token requests an hour over numbers of processes, the first on top. Both axes are logarithmic. */
const growth = (
  text: string,
  values: ReadonlyArray<{ readonly name: string; readonly x: number; readonly y: number }>
): Promise<string> => {
  const domain = [...new Set(values.map(({ name }) => name))]
  const isFirst = { field: "name", equal: domain[0] ?? "" }
  const scale = { type: "log" as const, nice: false }
  const axis = { values: [...new Set(values.map(({ x }) => x))] }
  return plot(text, "Token requests an hour, logarithmic.", {
    data: { values: [...values].reverse() },
    mark: { type: "line", point: { size: 70 } },
    encoding: {
      x: { field: "x", title: "processes", scale, axis },
      y: { field: "y", scale: { type: "log" }, axis: { values: [1, 10, 100, 1000, 10_000] } },
      color: { field: "name", scale: { domain, range: [blue, gray, orange] } },
      strokeWidth: { condition: { test: isFirst, value: 2 }, value: 5 }
    }
  })
}

interface Strips {
  readonly text: string
  readonly subtitle: string
  readonly axis: Axis
  readonly view: { readonly bin: number; readonly from: number }
  /** Each with a scenario, the counts to show, and the value of the formula at a time. */
  readonly rows: ReadonlyArray<
    readonly [
      row: string,
      scenario: string,
      what: "acquisitionBins" | "commandBins" | "requestBins",
      formula?: (time: number) => number
    ]
  >
}

/** Strips over seconds, one below the other, one per row. */
const strips = (digests: Digests, { axis: [title, ...domain], rows, subtitle, text, view }: Strips) => {
  const values = rows.flatMap(([row, scenario, what, formula]) =>
    of(digests, scenario)[what].map((value, index) => {
      const time = view.from + index * view.bin
      return { row, value, from: time / 1000, formula: formula?.(time) }
    })
  )
  const x = { field: "from", title, scale: { type: "linear" as const, domain, nice: false }, axis: { tickMinStep: 1 } }
  const y = { field: "value", scale: { type: "linear" as const }, axis: { tickCount: 2, tickMinStep: 1 } }
  return plot(text, subtitle, {
    data: { values },
    facet: { row: { field: "row", sort: rows.map(([row]) => row) } },
    resolve: { scale: { y: "independent" } },
    spec: {
      height: 84,
      encoding: { x, y },
      layer: [
        { mark: { type: "area", color: blue, interpolate: "step-after", clip: true } },
        { mark: { type: "line", color: orange, clip: true }, encoding: { y: { field: "formula" } } }
      ]
    }
  })
}

declare module "vega" {
  const textMetrics: { width: (item: { readonly fontSize: number }, text: string) => number }
}

// Installed fonts or an installed canvas must not change the layout.
textMetrics.width = ({ fontSize }, text) => 0.52 * fontSize * text.length

const config: Config = {
  aria: false,
  padding: 16,
  fontSize: { text: 12, guideLabel: 12, guideTitle: 12, groupTitle: 16, groupSubtitle: 12 },
  locale: { number: { decimal: ".", thousands: " ", grouping: [3], currency: ["", ""] } },
  numberFormat: ",d",
  axis: { ticks: false, labelLimit: 0, labelPadding: 6, titleFontWeight: "normal" },
  axisY: { title: null },
  facet: { spacing: 8 },
  header: { title: null, labelOrient: "top", labelAnchor: "start" },
  legend: { title: null, labelLimit: 0, orient: "bottom-right", offset: 16, fillColor: "white" },
  title: { anchor: "start", frame: "bounds", offset: 16, subtitlePadding: 4 },
  view: { stroke: null, continuousWidth: 600 }
}

/** In dark mode the lightness is inverted, and the hues stay. */
const style = "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(0.95) hue-rotate(180deg) } }</style>"

const plot = async (text: string, subtitle: string, spec: TopLevelSpec): Promise<string> => {
  const title = { text, subtitle }
  const svg = await new View(parse(compile({ ...spec, title }, { config }).spec)).toSVG()
  return svg
    .replaceAll(/<[^>]+>/g, (tag) => tag.replaceAll(/\d+\.\d{2,}/g, (digits) => Number(digits).toFixed(1)))
    .replace(/ class="marks"(.*?>)/, ` role="img"$1<title>${text}</title><desc>${subtitle}</desc>${style}`)
    .replaceAll("><", ">\n<")
}
