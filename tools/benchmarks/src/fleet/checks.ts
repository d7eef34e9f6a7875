/** Checks the figures of the page against its sentences and its formulas. */
import { type Digests, of } from "./digest.js"
import * as formulas from "./formulas.js"
import { capacities, common, deaths, kindSizes, large, middling, shortPauses, sizes } from "./scenarios.js"
import { afterDeath, coldRows, kindPerHour, renewalRows, shortRequests } from "./tables.js"

/** How far a figure may be from its formula. */
export const tolerance = 0.08

/** Token requests of a fleet in the lifetime of a token of 60 minutes that the endpoint repeats. */
export const mostOfRepeated = 5

/** The statements of the page that are wrong. */
export const problemsOf = (digests: Digests): Array<string> => {
  const problems: Array<string> = []
  const must = (holds: boolean, what: string) => {
    if (!holds) problems.push(what)
  }
  const expectClose = (value: number, expected: number, what: string) =>
    must(Math.abs(value / expected - 1) <= tolerance, `${what}: ${value}, by the formula ${expected}`)

  for (const { processes } of sizes) {
    expectClose(of(digests, `${processes} alone`).requestsPerHour, formulas.alonePerHour(processes, common), "alone")
    expectClose(of(digests, `${processes} shared`).requestsPerHour, formulas.sharedPerHour(processes, common), "shared")
  }
  for (const { hours, processes } of kindSizes) {
    const perHour = kindPerHour(digests, `${processes} repeated`, hours)
    must(
      perHour <= mostOfRepeated,
      `${processes} repeated: at most ${mostOfRepeated} token requests an hour, ${perHour}`
    )
  }
  for (const [name, takes, sent] of renewalRows) {
    const { commands, processes, requestsInView } = of(digests, name)
    must(requestsInView === sent, `${name}: ${sent} token requests`)
    if (sent === 1) expectClose(commands, formulas.renewal(processes, takes, common), `${name}: commands`)
  }
  const commandsAtDeath = deaths.map((name) => of(digests, name).commands)
  expectClose(
    commandsAtDeath.reduce((sum, commands) => sum + commands, 0) / deaths.length,
    formulas.renewal(middling, afterDeath, common),
    "renewals, holder crashes: commands, their mean"
  )
  for (const [name, takes, sent] of coldRows) {
    must(of(digests, name).requestsInView === sent, `${name}: ${sent} token requests`)
    expectClose(of(digests, name).commands, formulas.cold(large, takes), `${name}: commands`)
  }
  expectClose(of(digests, "cold").mostCommands, formulas.coldPeak(large), "cold: most commands")
  for (const longestPause of shortPauses) {
    expectClose(of(digests, `short ${longestPause}`).requestsInView, shortRequests(longestPause), "short-lived tokens")
  }
  must(of(digests, "revoked").requestsInView === 1, "revoked: one token request")
  for (const name of ["outage", "outage, small", "outage, hangs"]) {
    const { processes, requests, requestsInView } = of(digests, name)
    must(requestsInView === processes && requests === processes + 2, `${name}: one token request each`)
  }
  must(of(digests, "cold, store down").requestsInView === large, "cold, store down: one token request each")
  must(of(digests, "slow endpoint").requestsInView === middling, "slow endpoint: one token request each")
  for (const each of capacities) {
    const isInTime = 1000 / each < formulas.storeTimeout
    must((of(digests, `capacity ${each}`).requestsInView === 1) === isInTime, `capacity ${each}`)
  }
  for (const [name, { failed }] of Object.entries(digests)) {
    must(failed === 0 || name.endsWith("repeated alone"), `${name}: ${failed} calls failed`)
  }
  return problems
}
