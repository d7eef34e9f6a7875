/** Plots as SVG, drawn by hand: readable in light and dark, without a font or a script from elsewhere. */

export type Tone = "ours" | "other" | "warn"

const style = `
  .ground { fill: #ffffff } text { fill: #1f2328; font: 13px sans-serif } .title { font-size: 16px; font-weight: bold }
  .small { font-size: 11px } .faint { fill: #57606a } .grid { stroke: #d0d7de } .axis { stroke: #57606a }
  .ours { fill: #0969da; stroke: #0969da } .other { fill: #8c959f; stroke: #8c959f } .warn { fill: #bc4c00; stroke: #bc4c00 }
  .whisker { stroke: #1f2328 } .line { fill: none; stroke-width: 2.5 } .dashed { stroke-dasharray: 5 4 }
  .band { stroke: none; opacity: 0.25 } text.ours, text.warn { stroke: none }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } text { fill: #e6edf3 } .faint { fill: #9198a1 } .grid { stroke: #30363d } .axis { stroke: #9198a1 }
    .ours { fill: #4493f8; stroke: #4493f8 } .other { fill: #7d8590; stroke: #7d8590 } .warn { fill: #f0883e; stroke: #f0883e }
    .whisker { stroke: #e6edf3 } .line { fill: none }
  }`

const escaped = (value: string): string =>
  value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const round = (value: number): string => String(Math.round(value * 10) / 10)

interface TextOptions {
  readonly anchor?: "start" | "middle" | "end"
  readonly classes?: string
  readonly turned?: boolean
}

export const text = (x: number, y: number, value: string, { anchor, classes, turned }: TextOptions = {}): string =>
  `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor ?? "start"}"` +
  (classes === undefined ? "" : ` class="${classes}"`) +
  (turned === true ? ` transform="rotate(-90 ${round(x)} ${round(y)})"` : "") +
  `>${escaped(value)}</text>`

export const line = (x1: number, y1: number, x2: number, y2: number, classes: string): string =>
  `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" class="${classes}"/>`

export const rectangle = (x: number, y: number, width: number, height: number, classes: string): string =>
  `<rect x="${round(x)}" y="${round(y)}" width="${round(Math.max(width, 0))}" height="${round(Math.max(height, 0))}" ` +
  `class="${classes}"/>`

export const polyline = (points: ReadonlyArray<readonly [number, number]>, classes: string): string =>
  `<polyline points="${points.map(([x, y]) => `${round(x)},${round(y)}`).join(" ")}" class="${classes}"/>`

export const dot = (x: number, y: number, radius: number, classes: string): string =>
  `<circle cx="${round(x)}" cy="${round(y)}" r="${radius}" class="${classes}"/>`

export const drawing = (width: number, height: number, title: string, parts: ReadonlyArray<string>): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style}\n</style>`,
    rectangle(0, 0, width, height, "ground"),
    text(16, 28, title, { classes: "title" }),
    ...parts,
    "</svg>",
    ""
  ].join("\n")

/** Where a value lies on an axis. */
export type Scale = (value: number) => number

export const linear = (from: number, to: number, start: number, end: number): Scale => (value) =>
  start + (value - from) / (to - from) * (end - start)

export const logarithmic = (from: number, to: number, start: number, end: number): Scale => {
  const scale = linear(Math.log10(from), Math.log10(to), start, end)
  return (value) => scale(Math.log10(Math.max(value, from)))
}
