/** The plots of the page. */
import { dot, drawing, line, linear, logarithmic, polyline, rectangle, text } from "../plot.js"
import { number } from "../table.js"
import type { Digest } from "./digest.js"
import * as formulas from "./formulas.js"
import { coldView, common, large, renewal, sizes } from "./scenarios.js"

export type Digests = Readonly<Record<string, Digest>>

export const of = (digests: Digests, name: string): Digest => {
  const found = digests[name]
  if (found === undefined) throw new Error(`There is no outcome of "${name}"`)
  return found
}

const width = 820
const [left, right] = [76, width - 24]

/** Token requests an hour by the size of the fleet: dots from the simulation, lines by the formulas. */
export const requestsPlot = (digests: Digests): string => {
  const [end, top, bottom] = [width - 200, 56, 380]
  const x = logarithmic(1, 5000, left, end)
  const y = logarithmic(1, 10_000, bottom, top)
  const along = Array.from({ length: 60 }, (_, index) => 5000 ** (index / 59))
  const kinds = [
    { kind: "alone", tone: "other", words: "a token for each process", perHour: formulas.alonePerHour },
    { kind: "shared", tone: "ours", words: "one token, shared", perHour: formulas.sharedPerHour }
  ] as const
  return drawing(width, 440, "Token requests an hour by number of processes", [
    ...sizes.flatMap(({ processes }) => [
      line(x(processes), top, x(processes), bottom, "grid"),
      text(x(processes), bottom + 18, number(processes), { anchor: "middle", classes: "small faint" })
    ]),
    ...[1, 10, 100, 1000, 10_000].flatMap((tick) => [
      line(left, y(tick), end, y(tick), "grid"),
      text(left - 8, y(tick) + 4, number(tick), { anchor: "end", classes: "small faint" })
    ]),
    ...kinds.flatMap(({ kind, perHour, tone, words }, row) => [
      polyline(along.map((processes) => [x(processes), y(perHour(processes, common))]), `line ${tone}`),
      ...sizes.map(({ processes }) =>
        dot(x(processes), y(of(digests, `${processes} ${kind}`).requestsPerHour), 4.5, tone)
      ),
      line(end + 16, top + row * 22 + 8, end + 38, top + row * 22 + 8, `line ${tone}`),
      text(end + 46, top + row * 22 + 12, words, { classes: "small" })
    ]),
    text(end + 16, top + 56, "dots: simulated", { classes: "small faint" }),
    text(end + 16, top + 74, "lines: by the formulas", { classes: "small faint" }),
    text((left + end) / 2, bottom + 40, "processes, logarithmic", { anchor: "middle", classes: "small" }),
    text(24, (top + bottom) / 2, "an hour, logarithmic", { anchor: "middle", classes: "small", turned: true })
  ])
}

interface Strip {
  readonly words: string
  readonly bins: ReadonlyArray<number>
  /** What the formula says of a bin, by its middle in milliseconds. */
  readonly expected?: (time: number) => number
}

interface Span {
  readonly from: number
  readonly to: number
  readonly bin: number
  readonly tick: number
}

/** Bars over time, a strip for each of several runs, each with a scale of its own. */
const strips = (title: string, rows: ReadonlyArray<Strip>, { bin, from, tick, to }: Span, axis: string): string => {
  const [top, height] = [50, 128]
  const bottom = top + rows.length * height
  const x = linear(from, to, left, right)
  const first = Math.ceil(from / tick) * tick
  const ticks = Array.from({ length: Math.floor((to - first) / tick) + 1 }, (_, index) => first + index * tick)
  return drawing(width, bottom + 48, title, [
    ...rows.flatMap(({ bins, expected, words }, row) => {
      const shown = bins.slice(0, Math.ceil((to - from) / bin))
      const most = Math.max(1, ...shown)
      const floor = top + (row + 1) * height - 12
      const y = linear(0, most, floor, floor - height + 42)
      return [
        text(left, floor - height + 30, words, { classes: "small" }),
        line(left, y(most), right, y(most), "grid"),
        text(left - 6, y(most) + 4, number(most), { anchor: "end", classes: "small faint" }),
        text(left - 6, floor + 4, "0", { anchor: "end", classes: "small faint" }),
        ...shown.map((count, index) => {
          const start = x(from + index * bin)
          return count === 0
            ? ""
            : rectangle(
              start,
              y(count),
              Math.max(x(from + (index + 1) * bin) - start - 0.6, 0.8),
              floor - y(count),
              "ours"
            )
        }).filter((part) => part !== ""),
        ...(expected === undefined ? [] : [
          polyline(
            shown.map((_, index) => {
              const middle = from + (index + 0.5) * bin
              return [x(middle), Math.max(y(expected(middle)), floor - height + 34)]
            }),
            "line warn"
          )
        ]),
        line(left, floor, right, floor, "axis")
      ]
    }),
    ...ticks.map((at) =>
      text(x(at), bottom + 8, `${number(at / 1000)} s`, { anchor: "middle", classes: "small faint" })
    ),
    text((left + right) / 2, bottom + 32, axis, { anchor: "middle", classes: "small" })
  ])
}

/** How many processes of the large fleet have their turn in a second, so long after the first. */
const turnsASecond = (time: number): number =>
  formulas.turns(large, time + formulas.firstTurn(large, common), common) * 1000

const aroundRenewal: Span = { ...renewal, tick: 10_000, to: 125_000 }

const afterRequest = "time since the token request of the renewal; line: by the formula"

export const renewalPlot = (digests: Digests): string =>
  strips(
    `A renewal of ${number(large)} processes, by second`,
    [
      {
        words: "processes that look for a new token",
        bins: of(digests, "renewal").acquisitionBins,
        expected: turnsASecond
      },
      { words: "commands at the store, endpoint of 200 ms", bins: of(digests, "renewal").commandBins },
      { words: "commands at the store, endpoint of 2 s", bins: of(digests, "renewal, 2 s").commandBins },
      {
        words: "commands at the store, the process that holds the lease dies",
        bins: of(digests, "renewal, holder dies").commandBins
      }
    ],
    aroundRenewal,
    afterRequest
  )

export const coldPlot = (digests: Digests): string =>
  strips(
    `A cold start of ${number(large)} processes at once: commands at the store, by 100 ms`,
    [
      { words: "endpoint of 200 ms", bins: of(digests, "cold").commandBins },
      { words: "endpoint of 2 s", bins: of(digests, "cold, 2 s").commandBins },
      {
        words: "endpoint of 200 ms, the process that holds the lease dies",
        bins: of(digests, "cold, holder dies").commandBins
      }
    ],
    { ...coldView, to: 6000, tick: 1000 },
    "time since the start"
  )

export const outagePlot = (digests: Digests): string =>
  strips(
    `The store is down at a renewal of ${number(large)} processes: token requests, by second`,
    [
      {
        words: "store down from 5 minutes before to 5 minutes after",
        bins: of(digests, "outage").requestBins,
        expected: turnsASecond
      },
      { words: "store up", bins: of(digests, "renewal").requestBins }
    ],
    aroundRenewal,
    afterRequest
  )
