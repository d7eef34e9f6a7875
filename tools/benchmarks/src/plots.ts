/** The three plots of the report. */
import type { Hit } from "./hit.js"
import { ours as ownHit } from "./hit.js"
import { callers, delay, life, type Load } from "./load.js"
import { dot, drawing, line, linear, logarithmic, polyline, rectangle, text, type Tone } from "./plot.js"
import { number } from "./table.js"

const width = 820

/** (i) The cached path as multiples of `Ref.get`. */
export const hitPlot = (hits: ReadonlyArray<Hit>, goal: number, limit: number): string => {
  const bars = hits.filter(({ name }) => !name.includes("repeatN"))
  const [left, right, top, rowHeight] = [200, width - 90, 66, 38]
  const bottom = top + bars.length * rowHeight
  const x = logarithmic(1, 200, left, right)
  const mark = (value: number, label: string, anchor: "start" | "end") => [
    line(x(value), top - 14, x(value), bottom, "warn dashed"),
    text(x(value) + (anchor === "end" ? -4 : 4), top - 6, `${label} ${value}`, { anchor, classes: "small warn" })
  ]
  // Beside its bar, but clear of the two marks.
  const labelAt = ({ high, median }: Hit["ratio"]) => {
    const end = Math.max(median, high)
    return x(end) + 8 + (end < limit && end * 1.8 > goal ? x(limit) - x(end) : 0)
  }
  return drawing(width, bottom + 62, "Cached token in one fiber: time per yield*, as a multiple of Ref.get", [
    ...[1, 2, 5, 10, 20, 50, 100, 200].flatMap((tick) => [
      line(x(tick), top - 2, x(tick), bottom, "grid"),
      text(x(tick), bottom + 18, `${tick} ×`, { anchor: "middle", classes: "small faint" })
    ]),
    ...bars.flatMap(({ name, ratio }, row) => {
      const y = top + row * rowHeight + 7
      const tone: Tone = name === ownHit ? "ours" : "other"
      return [
        text(left - 10, y + 17, name, { anchor: "end" }),
        rectangle(left, y, Math.max(x(ratio.median) - left, 2), 24, tone),
        line(x(ratio.low), y + 12, x(ratio.high), y + 12, "whisker"),
        text(labelAt(ratio), y + 17, `${ratio.median.toFixed(2)} ×`)
      ]
    }),
    ...mark(goal, "goal", "end"),
    ...mark(limit, "limit", "start"),
    text(
      (left + right) / 2,
      bottom + 42,
      "multiple of Ref.get, logarithmic; the thin line spans all processes",
      {
        anchor: "middle",
        classes: "small"
      }
    )
  ])
}

export interface Line {
  readonly name: string
  readonly points: ReadonlyArray<readonly [number, number]>
  readonly tone: Tone
}

/** (ii) Token requests of a cold start. Lines that would lie on each other are one line with all their names. */
export const stampedePlot = (lines: ReadonlyArray<Line>): string => {
  const [left, right, top, bottom] = [76, width - 300, 56, 380]
  const x = logarithmic(1, 100_000, left, right)
  const y = logarithmic(1, 1000, bottom, top)
  const ticks = [1, 10, 100, 1000, 10_000, 100_000]
  const keyOf = ({ points, tone }: Line) => `${tone} ${JSON.stringify(points)}`
  const groups = [...new Set(lines.map(keyOf))].map((key) => lines.filter((one) => keyOf(one) === key))
  const tones = groups.map(([first], index) => first?.tone === "ours" ? "ours" : index % 2 === 0 ? "warn" : "other")
  const labels = groups.flatMap((group, index) =>
    group.map(({ name }, row) => ({ name, tone: tones[index] ?? "other", first: row === 0 }))
  )
  return drawing(width, 440, "Cold start: token requests by number of callers at once", [
    ...ticks.flatMap((tick) => [
      line(x(tick), top, x(tick), bottom, "grid"),
      text(x(tick), bottom + 18, number(tick), { anchor: "middle", classes: "small faint" })
    ]),
    ...ticks.filter((tick) => tick <= 1000).flatMap((tick) => [
      line(left, y(tick), right, y(tick), "grid"),
      text(left - 8, y(tick) + 4, number(tick), { anchor: "end", classes: "small faint" })
    ]),
    // Ours last, on top.
    ...groups.map((group, index) => ({ group, tone: tones[index] ?? "other" }))
      .sort((a, b) => Number(a.tone === "ours") - Number(b.tone === "ours"))
      .flatMap(({ group, tone }) => {
        const points = (group[0]?.points ?? []).map(([callers, requests]) => [x(callers), y(requests)] as const)
        return [
          polyline(points, `line ${tone}`),
          ...points.map(([x, y]) => dot(x, y, tone === "ours" ? 3 : 4.5, tone))
        ]
      }),
    ...labels.flatMap(({ first, name, tone }, row) => [
      ...(first ? [line(right + 20, top + row * 22 + 8, right + 42, top + row * 22 + 8, `line ${tone}`)] : []),
      text(right + 50, top + row * 22 + 12, name, { classes: "small" })
    ]),
    text((left + right) / 2, bottom + 40, "callers at once, logarithmic", { anchor: "middle", classes: "small" }),
    text(24, (top + bottom) / 2, "token requests, logarithmic", { anchor: "middle", classes: "small", turned: true })
  ])
}

/** (iii) Renewals and waits of the short-lived token under load, a strip for each way. */
export const loadPlot = (loads: ReadonlyArray<Load>, seconds: number): string => {
  const [left, right, top, strip] = [76, width - 24, 76, 112]
  const x = linear(0, seconds * 1000, left, right)
  const within = (value: number) => Math.min(Math.max(value, 0), seconds * 1000)
  const longest = Math.max(delay * 1.25, ...loads.map((load) => load.longest))
  const bottom = top + loads.length * strip
  return drawing(
    width,
    bottom + 40,
    `Tokens of ${life} s, endpoint of ${delay} ms, ${callers} callers: renewals and waits`,
    [
      rectangle(left, 42, 22, 12, "ours band"),
      text(left + 28, 52, "a token request, from its start to its answer", { classes: "small" }),
      dot(left + 300, 48, 2.5, "warn"),
      text(left + 310, 52, "a call that waited, and for how long", { classes: "small" }),
      ...loads.flatMap((load, row) => {
        const floor = top + (row + 1) * strip - 10
        const y = linear(0, longest, floor, floor - strip + 38)
        // Of calls that wait for one flight, a few hundred lie side by side: one dot for each 10 ms of time and 5 ms of waiting.
        const dots = new Map(load.waits.map(({ at, millis }) => [`${Math.round(at / 10)} ${Math.round(millis / 5)}`, {
          at,
          millis
        }]))
        // Of a hundred requests at once, one band.
        const bands = new Map(load.flights.map((flight) => [Math.round(flight.from / 50), flight]))
        return [
          text(
            left,
            floor - strip + 26,
            `${load.name}: ${number(load.waited)} of ${number(load.calls)} calls waited, ` +
              `${number(load.expired)} dead tokens, ${number(load.requests)} token requests`,
            { classes: "small" }
          ),
          ...[...bands.values()].map(({ from, to }) => {
            const end = within(Number.isNaN(to) ? seconds * 1000 : to)
            return rectangle(x(within(from)), y(longest), x(end) - x(within(from)), floor - y(longest), "ours band")
          }),
          ...[...dots.values()].map(({ at, millis }) => dot(x(within(at)), y(millis), 1.6, "warn")),
          line(left, floor, right, floor, "axis"),
          text(left - 6, floor + 4, "0", { anchor: "end", classes: "small faint" }),
          text(left - 6, y(delay) + 4, `${delay} ms`, { anchor: "end", classes: "small faint" }),
          line(left, y(delay), right, y(delay), "grid dashed")
        ]
      }),
      ...Array.from(
        { length: Math.floor(seconds / 2) + 1 },
        (_, tick) => text(x(tick * 2000), bottom + 10, `${tick * 2} s`, { anchor: "middle", classes: "small faint" })
      ),
      text((left + right) / 2, bottom + 30, "time since the load began; upwards: how long a call waited", {
        anchor: "middle",
        classes: "small"
      })
    ]
  )
}
