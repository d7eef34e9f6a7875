/** Checks the figures of the page against its sentences and its formulas. */
import * as formulas from "./formulas.js"
import * as scenarios from "./scenarios.js"
import { common, type Digests, kindSizes, large, middling, of, sizes } from "./scenarios.js"

/** The statements of the page that are wrong. */
export const problemsOf = (digests: Digests): Array<string> => {
  const problems: Array<string> = []
  const must = (holds: boolean, what: string) => {
    if (!holds) problems.push(what)
  }
  const expectClose = (value: number, expected: number, what: string) =>
    must(Math.abs(value / expected - 1) <= formulas.tolerance, `${what}: ${value}, by the formula ${expected}`)

  for (const { processes } of sizes) {
    expectClose(of(digests, `${processes} alone`).requestsPerHour, formulas.alonePerHour(processes, common), "alone")
    expectClose(of(digests, `${processes} shared`).requestsPerHour, formulas.sharedPerHour(processes, common), "shared")
  }
  for (const size of kindSizes) {
    const perHour = scenarios.kindPerHour(digests, size, "repeated")
    const what = `${size.processes} repeated: at most ${scenarios.mostOfRepeated} token requests an hour, ${perHour}`
    must(perHour <= scenarios.mostOfRepeated, what)
  }
  for (const { name, requests, takes } of scenarios.renewalRows) {
    const { commands, processes, requestsInView } = of(digests, name)
    must(requestsInView === requests, `${name}: ${requests} token requests`)
    if (requests === 1) expectClose(commands, formulas.renewal(processes, takes, common), `${name}: commands`)
  }
  const commandsAtDeath = scenarios.deaths.map((name) => of(digests, name).commands)
  expectClose(
    commandsAtDeath.reduce((sum, commands) => sum + commands, 0) / scenarios.deaths.length,
    formulas.renewal(middling, scenarios.afterDeath, common),
    "renewals, holder crashes: commands, their mean"
  )
  for (const { name, requests, takes } of scenarios.coldRows) {
    must(of(digests, name).requestsInView === requests, `${name}: ${requests} token requests`)
    expectClose(of(digests, name).commands, formulas.cold(large, takes), `${name}: commands`)
  }
  expectClose(of(digests, "cold").mostCommands, formulas.coldPeak(large), "cold: most commands")
  for (const longestPause of scenarios.shortPauses) {
    expectClose(
      of(digests, `short ${longestPause}`).requestsInView,
      scenarios.shortRequests(longestPause),
      "short-lived tokens"
    )
  }
  must(of(digests, "revoked").requestsInView === 1, "revoked: one token request")
  for (const name of ["outage", "outage, small", "outage, hangs"]) {
    const { processes, requests, requestsInView } = of(digests, name)
    must(requestsInView === processes && requests === processes + 2, `${name}: one token request each`)
  }
  must(of(digests, "cold, store down").requestsInView === large, "cold, store down: one token request each")
  must(of(digests, "slow endpoint").requestsInView === middling, "slow endpoint: one token request each")
  for (const each of scenarios.capacities) {
    const isInTime = 1000 / each < formulas.storeTimeout
    must((of(digests, `capacity ${each}`).requestsInView === 1) === isInTime, `capacity ${each}`)
  }
  for (const [name, { failed }] of Object.entries(digests)) {
    must(failed === 0 || name.endsWith("repeated alone"), `${name}: ${failed} calls failed`)
  }
  return problems
}
