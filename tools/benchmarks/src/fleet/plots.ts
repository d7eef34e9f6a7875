/** The plots of the page. */
import { growth, type Head, ours, strips, warn } from "../plot.js"
import { number } from "../table.js"
import { type Digests, of } from "./digest.js"
import * as formulas from "./formulas.js"
import { coldView, common, kindSizes, kindView, large, middling, renewal, sizes } from "./scenarios.js"
import { kindPerHour } from "./tables.js"

export const requestsPlot = (digests: Digests): Promise<string> => {
  const kinds = [["shared", "one token, shared"], ["alone", "a token for each process"]] as const
  return growth(
    { text: "Token requests an hour by number of processes", subtitle: "Token requests an hour, logarithmic." },
    "processes",
    kinds.flatMap(([kind, names]) =>
      sizes.map(({ processes }) => ({ names, x: processes, y: of(digests, `${processes} ${kind}`).requestsPerHour }))
    )
  )
}

export const kindsPlot = (digests: Digests): Promise<string> => {
  const kinds = [
    ["repeated", "the same token until it expires, shared"],
    ["repeated alone", "the same token until it expires, a token for each process"],
    ["new", "a new token each time, shared"]
  ] as const
  return growth(
    { text: "Token requests an hour by kind of endpoint", subtitle: "Token requests an hour, logarithmic." },
    "processes",
    kinds.flatMap(([kind, names]) =>
      kindSizes.map(({ hours, processes }) => ({
        names,
        x: processes,
        y: kindPerHour(digests, `${processes} ${kind}`, hours)
      }))
    )
  )
}

type What = "acquisitionBins" | "commandBins" | "requestBins"

/** A scenario, the count per bin of time, and the value of the formula at a time. */
type Row = readonly [row: string, scenario: string, what: What, formula?: (time: number) => number]

const counts = (
  digests: Digests,
  head: Head,
  axis: readonly [title: string, from: number, to: number],
  { bin, from }: { readonly bin: number; readonly from: number },
  rows: ReadonlyArray<Row>
) => {
  const values = rows.flatMap(([row, scenario, what, formula]) =>
    of(digests, scenario)[what].map((value, index) => {
      const time = from + index * bin
      return { row, value, from: time / 1000, formula: formula?.(time) }
    })
  )
  return strips(head, axis, values, [
    { mark: { type: "area", color: ours, interpolate: "step-after", clip: true } },
    { mark: { type: "line", color: warn, clip: true }, encoding: { y: { field: "formula" } } }
  ])
}

export const repeatedPlot = (digests: Digests): Promise<string> => {
  const text = `The last minutes of a token, ${number(middling)} processes`
  const axis = ["seconds since the start; the first token expires after 3 600", 3270, 3690] as const
  return counts(digests, { text, subtitle: "By second." }, axis, kindView, [
    ["token requests, an endpoint that repeats its token", `${middling} repeated`, "requestBins"],
    ["commands at the store, an endpoint that repeats its token", `${middling} repeated`, "commandBins"],
    ["commands at the store, an endpoint that returns a new token", `${middling} new`, "commandBins"]
  ])
}

const firstTurn = formulas.firstTurn(large, common)

/** How many processes of the large fleet look in a second, at a time after the first look. */
const turnsASecond = (time: number): number => formulas.turns(large, time + firstTurn, common) * 1000

const afterRequest = ["seconds since the token request of the renewal", -5, 125] as const

export const renewalPlot = (digests: Digests): Promise<string> => {
  const head = { text: `A renewal of ${number(large)} processes`, subtitle: "By second. Line: by the formula." }
  return counts(digests, head, afterRequest, renewal, [
    ["processes that look for a new token", "renewal", "acquisitionBins", turnsASecond],
    ["commands at the store, endpoint of 200 ms", "renewal", "commandBins"],
    ["commands at the store, endpoint of 2 s", "renewal, 2 s", "commandBins"],
    ["commands at the store, the process that holds the lease crashes", "renewal, holder crashes", "commandBins"]
  ])
}

export const coldPlot = (digests: Digests): Promise<string> => {
  const text = `A cold start of ${number(large)} processes at once`
  return counts(
    digests,
    { text, subtitle: "Commands at the store, by 100 ms." },
    ["seconds since the start", 0, 6],
    coldView,
    [
      ["endpoint of 200 ms", "cold", "commandBins"],
      ["endpoint of 2 s", "cold, 2 s", "commandBins"],
      ["endpoint of 200 ms, the process that holds the lease crashes", "cold, holder crashes", "commandBins"]
    ]
  )
}

export const outagePlot = (digests: Digests): Promise<string> => {
  const text = `The store is down at a renewal of ${number(large)} processes`
  const subtitle = "Token requests by second. Line: by the formula."
  return counts(digests, { text, subtitle }, afterRequest, renewal, [
    ["store down from 5 minutes before to 5 minutes after", "outage", "requestBins", turnsASecond],
    ["store up", "renewal", "requestBins"]
  ])
}
