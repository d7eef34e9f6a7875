/** Renders plots as SVG with Vega-Lite, without a browser. The bytes are the same on every machine. */
import { parse, textMetrics, View } from "vega"
import { compile, type Config, type TopLevelSpec } from "vega-lite"

declare module "vega" {
  const textMetrics: { width: (item: { readonly fontSize: number }, text: string) => number }
}

// Installed fonts or an installed canvas must not change the layout.
textMetrics.width = ({ fontSize }, text) => 0.52 * fontSize * text.length

export const [ours, other, warn] = ["#0969da", "#6e7781", "#bc4c00"]

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

/** A title, and a sentence that says how to read the plot. */
export interface Head {
  readonly text: string
  readonly subtitle: string
}

export const plot = async (title: Head, spec: TopLevelSpec): Promise<string> => {
  const svg = await new View(parse(compile({ ...spec, title }, { config }).spec)).toSVG()
  return svg
    .replaceAll(/<[^>]+>/g, (tag) => tag.replaceAll(/\d+\.\d{2,}/g, (digits) => Number(digits).toFixed(1)))
    .replace(/ class="marks"(.*?>)/, ` role="img"$1<title>${title.text}</title><desc>${title.subtitle}</desc>${style}`)
    .replaceAll("><", ">\n<")
}

/** Lines over two logarithmic axes, the first on top. `|` separates the names of lines that coincide. */
export const growth = (
  head: Head,
  title: string,
  values: ReadonlyArray<{ readonly names: string; readonly x: number; readonly y: number }>
): Promise<string> => {
  const domain = [...new Set(values.map(({ names }) => names))]
  const isFirst = { field: "names", equal: domain[0] ?? "" }
  const scale = { type: "log" as const, nice: false }
  const legend = { labelExpr: "split(datum.label, '|')" }
  return plot(head, {
    data: { values: [...values].reverse() },
    mark: { type: "line", point: { size: 70 } },
    encoding: {
      x: { field: "x", title, scale, axis: { values: [...new Set(values.map(({ x }) => x))] } },
      y: { field: "y", scale: { type: "log" }, axis: { values: [1, 10, 100, 1000, 10_000] } },
      color: { field: "names", scale: { domain, range: [ours, other, warn] }, legend },
      strokeWidth: { condition: { test: isFirst, value: 2 }, value: 5 }
    }
  })
}

/** Strips over seconds, one below the other, one per `row`. */
export const strips = (
  head: Head,
  [title, ...domain]: readonly [title: string, from: number, to: number],
  values: Array<{ readonly row: string }>,
  layer: Extract<TopLevelSpec, { readonly layer: unknown }>["layer"]
): Promise<string> => {
  const x = { field: "from", title, scale: { type: "linear" as const, domain, nice: false }, axis: { tickMinStep: 1 } }
  const y = { field: "value", scale: { type: "linear" as const }, axis: { tickCount: 2, tickMinStep: 1 } }
  return plot(head, {
    data: { values },
    facet: { row: { field: "row", sort: [...new Set(values.map(({ row }) => row))] } },
    resolve: { scale: { y: "independent" } },
    spec: { height: 84, encoding: { x, y }, layer }
  })
}
