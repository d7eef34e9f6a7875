/** The tables of the page: simulated figures beside those of the formulas. */
import { number, type Table } from "../table.js"
import { type Digest, type Digests, of } from "./digest.js"
import * as formulas from "./formulas.js"
import { capacities, common, kindSizes, large, middling, minute, shortPauses, shortView, sizes } from "./scenarios.js"

const count = (value: number): string => number(value)

const seconds = (millis: number, digits = 1): string => `${number(millis / 1000, digits)} s`

export const perHour = (digests: Digests): Table => [
  ["processes", "not shared", "by the formula", "shared", "by the formula", "hours simulated"],
  ...sizes.map(({ hours, processes }) => {
    const digits = processes === 1 ? 3 : processes < 100 ? 2 : 0
    return [
      count(processes),
      number(of(digests, `${processes} alone`).requestsPerHour, digits),
      number(formulas.alonePerHour(processes, common), digits),
      number(of(digests, `${processes} shared`).requestsPerHour, 3),
      number(formulas.sharedPerHour(processes, common), 3),
      count(hours)
    ]
  })
]

/** Token requests an hour of a fleet of `kindSizes`. */
export const kindPerHour = (digests: Digests, name: string, hours: number): number =>
  of(digests, name).requestsInView / hours

export const kinds = (digests: Digests): Table => [
  [
    "processes",
    "new token: token requests, shared",
    "commands per process",
    "same token: token requests, not shared",
    "token requests, shared",
    "commands per process",
    "most commands in 100 ms",
    "calls that waited",
    "longest wait",
    "hours simulated"
  ],
  ...kindSizes.map(({ hours, processes }) => {
    const each = (name: string) => number(of(digests, `${processes} ${name}`).commands / hours / processes, 2)
    const { calls, longestWait, mostCommands, waited } = of(digests, `${processes} repeated`)
    return [
      count(processes),
      number(kindPerHour(digests, `${processes} new`, hours), 2),
      each("new"),
      number(kindPerHour(digests, `${processes} repeated alone`, hours), 2),
      number(kindPerHour(digests, `${processes} repeated`, hours), 2),
      each("repeated"),
      count(mostCommands),
      `${count(waited)} of ${count(calls)}`,
      seconds(longestWait, 2),
      count(hours)
    ]
  })
]

const load = (what: string, { commands, mostCommands, processes, requestsInView }: Digest, expected: string) => [
  what,
  count(processes),
  count(requestsInView),
  count(commands),
  expected,
  number(commands / processes, 2),
  count(mostCommands)
]

const loadHead = [
  "",
  "processes",
  "token requests",
  "commands",
  "by the formula",
  "per process",
  "most in 100 ms"
]

/** Scenarios, how long each is without the new token, and its token requests, with that of a crashed process. */
type Rows = ReadonlyArray<readonly [name: string, takes: number, requests: number, words: string]>

export const afterDeath = formulas.lease + common.answer

export const renewalRows: Rows = [
  ["renewal 10", 200, 1, "endpoint of 200 ms"],
  ["renewal 100", 200, 1, "endpoint of 200 ms"],
  [`renewal ${middling}`, 200, 1, "endpoint of 200 ms"],
  ["renewal", 200, 1, "endpoint of 200 ms"],
  ["renewal, 2 s", 2000, 1, "endpoint of 2 s"],
  ["renewal, holder crashes", afterDeath, 2, "lease holder crashes"]
]

export const renewals = (digests: Digests): Table => [
  [...loadHead, "found the new token at their first look"],
  ...renewalRows.map(([name, takes, , words]) => {
    const one = of(digests, name)
    return [
      ...load(words, one, count(formulas.renewal(one.processes, takes, common))),
      `${count(one.found)} of ${count(one.acquisitions)}`
    ]
  })
]

export const coldRows: Rows = [
  ["cold", 200, 1, "all at once, endpoint of 200 ms"],
  ["cold, 2 s", 2000, 1, "all at once, endpoint of 2 s"],
  ["cold, holder crashes", afterDeath, 2, "all at once, lease holder crashes"]
]

export const colds = (digests: Digests): Table => {
  const row = (words: string, name: string, expected: string) => [
    ...load(words, of(digests, name), expected),
    seconds(of(digests, name).lastReady, 2)
  ]
  const least = formulas.cold(large, common.answer)
  return [
    [...loadHead, "last has a token after"],
    ...coldRows.map(([name, takes, , words]) => row(words, name, count(formulas.cold(large, takes)))),
    row("one token revoked, all processes get a 401 at once", "revoked", `${count(least)} to ${count(least + large)}`),
    row("started within a minute, endpoint of 200 ms", `${large} shared`, "")
  ]
}

/** Token requests in `shortView`, for tokens with a lifetime of a minute. */
export const shortRequests = (longestPause: number): number =>
  formulas.sharedPerHour(middling, { life: minute, longestPause }) * (shortView.to - shortView.from) / (60 * minute)

export const shortLives = (digests: Digests): Table => [
  [
    "pause between the calls of a process",
    "token requests",
    "by the formula",
    "processes that looked",
    "found it at their first look",
    "commands per process and lifetime",
    "most commands in 100 ms",
    "calls that waited"
  ],
  ...shortPauses.map((longestPause) => {
    const { acquisitions, calls, commands, found, mostCommands, requestsInView, waited } = of(
      digests,
      `short ${longestPause}`
    )
    return [
      `0 to ${longestPause / 1000} s`,
      count(requestsInView),
      number(shortRequests(longestPause), 1),
      count(acquisitions),
      count(found),
      number(commands / middling / requestsInView, 2),
      count(mostCommands),
      `${count(waited)} of ${count(calls)}`
    ]
  })
]

export const outages = (digests: Digests): Table => [
  [
    "store",
    "processes",
    "token requests in that time",
    "by the formula",
    "most in a second",
    "by the formula",
    "at the next renewal",
    "calls that failed"
  ],
  ...([
    ["refuses connections", "outage, small"],
    ["never responds", "outage, hangs"],
    ["refuses connections", "outage"]
  ] as const).map(([what, name]) => {
    const { failed, mostRequestsInASecond, processes, requests, requestsInView } = of(digests, name)
    return [
      what,
      count(processes),
      count(requestsInView),
      count(processes),
      count(mostRequestsInASecond),
      number(formulas.alonePeak(processes, common)),
      // Without the request for the first token.
      count(requests - requestsInView - 1),
      count(failed)
    ]
  })
]

export const capacityTable = (digests: Digests): Table => [
  [
    "commands a second that the store executes, per process",
    "longest first look, by the formula",
    "token requests",
    "last has a token after"
  ],
  ...capacities.map((each) => {
    const { lastReady, requestsInView } = of(digests, `capacity ${each}`)
    return [number(each, 2), seconds(1000 / each), count(requestsInView), seconds(lastReady, 2)]
  })
]
