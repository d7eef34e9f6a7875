/** The page docs/evidence/fleets.md: its tables and figures. Simulated figures are beside those of the formulas. */
import { type Column, fill, number, table } from "../page.js"
import { longestWay, shortestWay } from "./fleet.js"
import * as formulas from "./formulas.js"
import * as scenarios from "./scenarios.js"
import {
  common,
  type Digest,
  type Digests,
  kindPerHour,
  kindSizes,
  large,
  middling,
  minute,
  of,
  sizes
} from "./scenarios.js"

/** Commands a second per process that leave room: twice the minimum with which every first look is in time. */
const enough = 2 * 1000 / formulas.storeTimeout

export const document = (digests: Digests): string => {
  const sharedPerHour = formulas.sharedPerHour(large, common)
  const ahead = formulas.ahead(common.life) / 1000
  const draw = formulas.jitter(common.life) / 1000
  const window = draw + common.longestPause / 1000
  const looks = (answer: number) => `${formulas.looks(formulas.published(answer)).count}`
  const { calls, failed } = of(digests, `${middling} repeated alone`)
  const down = of(digests, "cold, store down")
  return fill("fleets", {
    large: number(large),
    middling: number(middling),
    deaths: `${scenarios.deaths.length}`,
    tolerance: number(formulas.tolerance * 100),
    shortestWay: `${shortestWay}`,
    longestWay: `${longestWay}`,

    perHourTable: perHourTable(digests),
    sharedPerHour: number(sharedPerHour, 2),
    alonePerHour: number(formulas.alonePerHour(1, common), 2),
    coldCommands: number(of(digests, "cold").commands / large),
    commandsASecond: number(1000 / formulas.storeTimeout),
    outagePeak: number(of(digests, "outage").mostRequestsInASecond),

    kindsTable: kindsTable(digests),
    mostOfRepeated: `${scenarios.mostOfRepeated}`,
    repeatedAloneFailed: number(failed),
    repeatedAloneCalls: number(calls),

    renewalsTable: renewalsTable(digests),
    coldsTable: coldsTable(digests),
    waitingCommands: number(2 * formulas.looksASecond, 1),
    coldDownRequests: number(down.requestsInView),
    coldDownPeak: number(down.mostRequestsInASecond),
    shortLivesTable: shortLivesTable(digests),
    shortMinutes: number((scenarios.shortView.to - scenarios.shortView.from) / minute),
    outagesTable: outagesTable(digests),
    window: number(window),
    leastLeft: number((ahead - window) / 60),
    ahead: number(ahead / 60),

    capacityTable: capacityTable(digests),
    enough: `${enough}`,
    slowRequests: number(of(digests, "slow endpoint").requestsInView),

    draw: number(draw),
    sharedAtMost: number(formulas.sharedPerHour(Infinity, common), 3),
    aloneAtMost: number(formulas.alonePerHour(large, common)),
    renewalCommands: number(formulas.renewal(large, common.answer, common)),
    alonePeak: number(formulas.alonePeak(large, common)),
    looks200: looks(200),
    looks2000: looks(2000),
    looksASecond: number(formulas.looksASecond, 1),
    coldFormula: number(formulas.cold(large, common.answer)),
    coldPeakEach: number(formulas.coldPeak(1), 1),
    coldPeak: number(formulas.coldPeak(large))
  })
}

const seconds = (millis: number, digits = 1): string => `${number(millis / 1000, digits)} s`

const perHourTable = (digests: Digests): string => {
  const digits = (processes: number) => processes === 1 ? 3 : processes < 100 ? 2 : 0
  return table(sizes, [
    ["processes", ({ processes }) => number(processes)],
    ["not shared", ({ processes }) => number(of(digests, `${processes} alone`).requestsPerHour, digits(processes))],
    ["by the formula", ({ processes }) => number(formulas.alonePerHour(processes, common), digits(processes))],
    ["shared", ({ processes }) => number(of(digests, `${processes} shared`).requestsPerHour, 3)],
    ["by the formula", ({ processes }) => number(formulas.sharedPerHour(processes, common), 3)],
    ["hours simulated", ({ hours }) => number(hours)]
  ])
}

const kindsTable = (digests: Digests): string => {
  const requests = (kind: string) => (size: scenarios.KindSize) => number(kindPerHour(digests, size, kind), 2)
  const commands = (kind: string) => ({ hours, processes }: scenarios.KindSize) =>
    number(of(digests, `${processes} ${kind}`).commands / hours / processes, 2)
  const repeated = ({ processes }: scenarios.KindSize) => of(digests, `${processes} repeated`)
  return table(kindSizes, [
    ["processes", ({ processes }) => number(processes)],
    ["new token: token requests, shared", requests("new")],
    ["commands per process", commands("new")],
    ["same token: token requests, not shared", requests("repeated alone")],
    ["token requests, shared", requests("repeated")],
    ["commands per process", commands("repeated")],
    ["most commands in 100 ms", (size) => number(repeated(size).mostCommands)],
    ["calls that waited", (size) => waitedOf(repeated(size))],
    ["longest wait", (size) => seconds(repeated(size).longestWait, 2)],
    ["hours simulated", ({ hours }) => number(hours)]
  ])
}

const waitedOf = ({ calls, waited }: Digest): string => `${number(waited)} of ${number(calls)}`

interface Loaded {
  readonly what: string
  readonly digest: Digest
  readonly formula: string
}

const loadColumns: ReadonlyArray<Column<Loaded>> = [
  ["", ({ what }) => what],
  ["processes", ({ digest }) => number(digest.processes)],
  ["token requests", ({ digest }) => number(digest.requestsInView)],
  ["commands", ({ digest }) => number(digest.commands)],
  ["by the formula", ({ formula }) => formula],
  ["per process", ({ digest }) => number(digest.commands / digest.processes, 2)],
  ["most in 100 ms", ({ digest }) => number(digest.mostCommands)]
]

const renewalsTable = (digests: Digests): string =>
  table(
    scenarios.renewalRows.map(({ name, takes, what }) => {
      const digest = of(digests, name)
      return { what, digest, formula: number(formulas.renewal(digest.processes, takes, common)) }
    }),
    [
      ...loadColumns,
      [
        "found the new token at their first look",
        ({ digest }) => `${number(digest.found)} of ${number(digest.acquisitions)}`
      ]
    ]
  )

const coldsTable = (digests: Digests): string => {
  const least = formulas.cold(large, common.answer)
  const rows = scenarios.coldRows.map(({ name, takes, what }) => ({
    what,
    name,
    formula: number(formulas.cold(large, takes))
  }))
  const others = [
    {
      what: "one token revoked, all processes get a 401 at once",
      name: "revoked",
      formula: `${number(least)} to ${number(least + large)}`
    },
    { what: "started within a minute, endpoint of 200 ms", name: `${large} shared`, formula: "" }
  ]
  return table(
    [...rows, ...others].map((row) => ({ ...row, digest: of(digests, row.name) })),
    [...loadColumns, ["last has a token after", ({ digest }) => seconds(digest.lastReady, 2)]]
  )
}

const shortLivesTable = (digests: Digests): string =>
  table(scenarios.shortPauses.map((pause) => ({ pause, digest: of(digests, `short ${pause}`) })), [
    ["pause between the calls of a process", ({ pause }) => `0 to ${pause / 1000} s`],
    ["token requests", ({ digest }) => number(digest.requestsInView)],
    ["by the formula", ({ pause }) => number(scenarios.shortRequests(pause), 1)],
    ["processes that looked", ({ digest }) => number(digest.acquisitions)],
    ["found it at their first look", ({ digest }) => number(digest.found)],
    [
      "commands per process and lifetime",
      ({ digest }) => number(digest.commands / middling / digest.requestsInView, 2)
    ],
    ["most commands in 100 ms", ({ digest }) => number(digest.mostCommands)],
    ["calls that waited", ({ digest }) => waitedOf(digest)]
  ])

const outagesTable = (digests: Digests): string => {
  const rows = [
    { store: "refuses connections", digest: of(digests, "outage, small") },
    { store: "never responds", digest: of(digests, "outage, hangs") },
    { store: "refuses connections", digest: of(digests, "outage") }
  ]
  return table(rows, [
    ["store", ({ store }) => store],
    ["processes", ({ digest }) => number(digest.processes)],
    ["token requests in that time", ({ digest }) => number(digest.requestsInView)],
    ["by the formula", ({ digest }) => number(digest.processes)],
    ["most in a second", ({ digest }) => number(digest.mostRequestsInASecond)],
    ["by the formula", ({ digest }) => number(formulas.alonePeak(digest.processes, common))],
    // Without the request for the first token.
    ["at the next renewal", ({ digest }) => number(digest.requests - digest.requestsInView - 1)],
    ["calls that failed", ({ digest }) => number(digest.failed)]
  ])
}

const capacityTable = (digests: Digests): string =>
  table(scenarios.capacities.map((each) => ({ each, digest: of(digests, `capacity ${each}`) })), [
    ["commands a second that the store executes, per process", ({ each }) => number(each, 2)],
    ["longest first look, by the formula", ({ each }) => seconds(1000 / each)],
    ["token requests", ({ digest }) => number(digest.requestsInView)],
    ["last has a token after", ({ digest }) => seconds(digest.lastReady, 2)]
  ])
