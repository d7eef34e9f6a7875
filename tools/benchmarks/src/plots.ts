/** The three plots of the report. */
import { Array } from "effect"
import { hitGoal, hitLimit } from "./cachedPath.js"
import { ours as ownHit } from "./hit.js"
import { callers, delay, life } from "./load.js"
import type { Results } from "./measure.js"
import { growth, other, ours, plot, strips, warn } from "./plot.js"
import { number } from "./table.js"

/** The cached path as multiples of `Ref.get`. */
export const hitPlot = ({ hits }: Pick<Results, "hits">): Promise<string> => {
  const text = "Cached token in one fiber: time per yield*, as a multiple of Ref.get"
  const subtitle =
    `Logarithmic. Dashed: the goal, ${hitGoal}, and the limit, ${hitLimit}. The thin line spans all processes.`
  const values = hits.filter(({ name }) => !name.includes("repeatN")).map(({ name, ratio }) => ({
    ...ratio,
    label: `${name}: ${number(ratio.median, 2)} ×`,
    color: name === ownHit ? ours : other
  }))
  const scale = { type: "log" as const, domainMin: 0.8, nice: false }
  const x = { field: "median", title: null, scale, axis: { values: [1, 2, 5, 10, 20, 50, 100] } }
  return plot({ text, subtitle }, {
    data: { values },
    width: 430,
    height: { step: 36 },
    encoding: { y: { field: "label", sort: null } },
    layer: [
      { mark: "bar", encoding: { x, x2: { datum: 0.8 }, color: { field: "color", scale: null } } },
      { mark: "rule", encoding: { x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
      {
        data: { values: [hitGoal, hitLimit] },
        mark: { type: "rule", color: warn, strokeDash: [5, 4] },
        encoding: { x: { field: "data", type: "quantitative" }, y: { value: 0 }, y2: { value: "height" } }
      }
    ]
  })
}

/** Token requests of a cold start, our library first. Lines that coincide are drawn once, with all their names. */
export const stampedePlot = (
  { peerStampedes, stampedes }: Pick<Results, "peerStampedes" | "stampedes">
): Promise<string> => {
  const text = "Cold start: token requests by number of callers at once"
  const subtitle = "Token requests, logarithmic. Libraries that send the same number share a line."
  const own = stampedes.filter(({ fibers }) => fibers > 1000).map(({ fibers, requests }) => ({
    name: peerStampedes[0]?.name ?? "",
    callers: fibers,
    requests
  }))
  const points = [...peerStampedes, ...own].map(({ callers, name, requests }) => ({ name, x: callers, y: requests }))
  const lines = Object.values(Array.groupBy(points, ({ name }) => name))
  const alike = Object.values(Array.groupBy(lines, (line) => JSON.stringify(line.map(({ x, y }) => [x, y]))))
  const values = alike.flatMap((lines) => {
    const names = lines.map(([{ name }]) => name).join("|")
    return lines[0].map(({ x, y }) => ({ names, x, y }))
  })
  return growth({ text, subtitle }, "callers at once", values)
}

/** Renewals and waits of the short-lived token under load, one strip per candidate. */
export const loadPlot = ({ loads, seconds }: Pick<Results, "loads" | "seconds">): Promise<string> => {
  const text = `Tokens of ${life} s, endpoint of ${delay} ms, ${callers} callers: renewals and waits`
  const subtitle = "Band: a token request until its response. Dot: a call that waited, and for how many milliseconds."
  const most = 1.2 * Math.max(delay, ...loads.map(({ longest }) => longest))
  const values = loads.flatMap(({ calls, expired, flights, name, requests, waited, waits }) => {
    const figures = [`${number(waited)} of ${number(calls)} calls waited`, `${number(expired)} expired tokens`]
    const row = `${name}: ${figures.join(", ")}, ${number(requests)} token requests`
    // Simultaneous requests, and calls that wait for the same response, share one mark.
    const rounded = (millis: number) => Number.isNaN(millis) ? seconds : Math.round(millis / 10) / 100
    return [
      ...flights.map(({ from, to }) => ({ row, from: rounded(from), to: rounded(to) })),
      ...waits.map(({ at, millis }) => ({ row, from: rounded(at), value: Math.round(millis / 5) * 5 }))
    ]
  })
  return strips({ text, subtitle }, ["seconds since the load began", 0, seconds], values, [
    {
      transform: [{ filter: "datum.to" }, { aggregate: [], groupby: ["from", "to"] }],
      mark: { type: "rect", color: "#b6d4fb", clip: true },
      encoding: { x2: { field: "to" }, y: { value: 0 }, y2: { value: "height" } }
    },
    {
      transform: [{ filter: "datum.value" }, { aggregate: [], groupby: ["from", "value"] }],
      mark: { type: "circle", color: warn, opacity: 1, size: 14 },
      encoding: { y: { field: "value", scale: { type: "linear", domain: [0, most] } } }
    }
  ])
}
