/** Writes docs/evidence/fleets.md. */
import { markdown, number } from "../table.js"
import { mostOfRepeated, tolerance } from "./checks.js"
import { type Digests, of } from "./digest.js"
import * as formulas from "./formulas.js"
import { coldPlot, kindsPlot, outagePlot, renewalPlot, repeatedPlot, requestsPlot } from "./plots.js"
import { common, deaths, large, middling, minute } from "./scenarios.js"
import { longestWay, shortestWay } from "./store.js"
import { capacityTable, colds, kinds, outages, perHour, renewals, shortLives } from "./tables.js"

/** Commands a second per process that leave room: twice the minimum with which every first look is in time. */
const enough = 2 * 1000 / formulas.storeTimeout

/** All files, by their paths in `docs/evidence`. */
export const pages = async (digests: Digests): Promise<ReadonlyMap<string, string>> =>
  new Map([
    ["fleets.md", document(digests)],
    ["fleets/requests.svg", await requestsPlot(digests)],
    ["fleets/kinds.svg", await kindsPlot(digests)],
    ["fleets/repeated.svg", await repeatedPlot(digests)],
    ["fleets/renewal.svg", await renewalPlot(digests)],
    ["fleets/cold.svg", await coldPlot(digests)],
    ["fleets/outage.svg", await outagePlot(digests)]
  ])

const budgets = [1000, 10_000, 50_000, 100_000]

export const document = (digests: Digests): string => {
  const each = formulas.alonePerHour(1, common)
  const one = formulas.sharedPerHour(large, common)
  const fruitless = (answer: number) => formulas.looks(formulas.published(answer)).count
  const { commands } = of(digests, "cold")
  const { mostRequestsInASecond } = of(digests, "outage")
  const ahead = formulas.ahead(common.life) / 1000
  const window = (formulas.jitter(common.life) + common.longestPause) / 1000
  return `# Fleets

How many token requests a fleet of processes sends with \`SharedTokenSource\`, and how many commands its store receives.
\`npm run bench -- fleet\` writes this page. It simulates up to ${
    number(large)
  } processes with the real provider and the real shared
source, on virtual time. See [Methodology](#methodology).

## Summary

Token requests an hour, for tokens of 60 minutes:

${markdown(perHour(digests))}

![Token requests an hour by number of processes](fleets/requests.svg)

- **A fleet of any size sends about ${number(one, 2)} token requests an hour.** Without sharing, each process sends ${
    number(each, 2)
  }.
- **A renewal costs one store command per process**, spread over two minutes. No caller waits for it.
- **The load is highest when all processes start at once**: ${
    number(commands / large, 0)
  } commands per process, half of them in the first 100 ms. If
  the store executes no more than ${
    number(1000 / formulas.storeTimeout)
  } command a second per process, the processes stop waiting for it and send their own
  token requests.
- **While the store is down, the fleet sends as many token requests as without sharing**: ${
    number(large)
  } processes send ${number(large)}
  within two minutes, at most ${
    number(mostRequestsInASecond)
  } in one second. No call fails if the endpoint can handle that rate.

## Two kinds of endpoint

Most endpoints return a new token for each request. Others return the same token, with its remaining lifetime, until it
expires. The figures are per hour, for tokens of 60 minutes:

${markdown(kinds(digests))}

![Token requests an hour by kind of endpoint](fleets/kinds.svg)

- **If the endpoint repeats its token, a fleet sends at most ${mostOfRepeated} token requests per lifetime of a token**, as a single
  process does. The process that gets the same token stores it again. The other processes find it at their next look,
  and send no request until three quarters of its remaining lifetime have passed.
- Each process looks into the store in the last 5 minutes of the token, and again each time the remaining lifetime has
  shrunk to 20 to 25 %: three or four times in all.
- Callers wait only after the token has expired, because the endpoint returns no new token before. Then the first caller
  of each process waits for the endpoint or the store, as after a start.
- Without sharing, ${number(of(digests, `${middling} repeated alone`).failed)} of ${
    number(of(digests, `${middling} repeated alone`).calls)
  } calls of ${number(middling)} processes failed with \`DeadOnArrival\`. \`expires_in\` is in whole seconds,
  so a process that starts with a token that is already in use may treat it as expired up to a second early. In that
  second the endpoint still returns the same token.

![The last minutes of a token](fleets/repeated.svg)

## A renewal

${markdown(renewals(digests))}

![A renewal by second](fleets/renewal.svg)

Each process draws a random moment, when 5 minutes × 0.8 to 1 are left of the token. At its next call after that, it
looks into the store. The first process renews the token for all. The others look once, find the new token and are done.
If a process finds no new token, because the first process still waits for the endpoint, it looks again
after 50 ms, and then after pauses that are each a quarter longer, up to 500 ms (× 0.75 to 1), with two commands each
time. Until it finds one, it serves the old token.

If the lease holder crashes, the lease ends after 5 seconds, and then another process renews: two token requests.

## A cold start

${markdown(colds(digests))}

![A cold start by 100 ms](fleets/cold.svg)

All processes look into the store, and one of them gets the lease. The others look again after the pauses above, and
their callers wait. The formula uses the mean of each pause. The longest pause is half a second, so a process that waits
longer sends ${
    number(2 * formulas.looksASecond, 1)
  } commands a second. A fleet that starts within a minute needs no more commands than a renewal.

With the store down, each process sends its own token request: ${
    number(of(digests, "cold, store down").requestsInView)
  } token requests from ${number(large)} processes, ${
    number(of(digests, "cold, store down").mostRequestsInASecond)
  } of them
in the first second. Nothing spreads these requests, so start a large fleet gradually.

## Short-lived tokens

Tokens of 60 seconds, ${number(middling)} processes, an endpoint that takes 200 ms, for ${
    number((15 * minute - minute) / minute)
  } minutes:

${markdown(shortLives(digests))}

The range of the random moment depends on the lifetime: here 12 to 15 seconds are left. So every process looks within
these 3 seconds, or at its next call after them. If the pauses of a process are longer than that, its token has expired,
and the caller waits for one store command.

## The store is down

For 10 minutes, from 5 minutes before a renewal until 5 minutes after it. When the store is back, it is empty:

${markdown(outages(digests))}

![Token requests by second, with the store down](fleets/outage.svg)

- With sharing, all processes have a token of the same age. Only the random moment and the pauses between calls spread
  the token requests, over ${number(window)} s here.
- A store that never responds delays each acquisition by its timeout of 1 second, in the background.
- When the store is back, the processes have different tokens. The first process that renews publishes its token, and
  all the others take it: one token request.

## When sharing is not enough

**The store is too slow.** ${number(middling)} processes start at once with a store that executes one command at a time:

${markdown(capacityTable(digests))}

A process gives a command 1 second. All processes send their first command at the same moment, so the last one gets its
response after N ÷ S seconds (N processes, S commands a second). If that is less than a second, there is one token
request: a slow store only delays the others, and each process has one command in progress at a time. If it is longer,
the processes give up and send their own token requests within seconds. ${enough} × N commands a second leave some room. So one
store is enough for one client id with

${
    markdown([
      [
        "commands a second that the store executes",
        "processes that start at once",
        "processes that start within a minute, or renew"
      ],
      ...budgets.map((budget) => [
        `${number(budget)} commands/s`,
        `${number(budget / enough)} processes`,
        `${number(budget * 60 / enough)} processes`
      ])
    ])
  }

These rows are divisions, S ÷ ${enough} and 60 × S ÷ ${enough}. Measure how many commands your store executes over your network. For a
larger fleet, start in groups, raise \`storeTimeout\`, or use several client ids. A Redis Cluster does not spread the load
of one client id. Several ids have separate keys, and each renews at its own time. Each id costs ${
    number(one, 2)
  } token requests an
hour.

**The endpoint is too slow.** A process waits for another's token for 34 to 45 seconds (\`maxWait\`), then sends its own
request. With an endpoint that takes a minute, ${number(middling)} processes that start at once send ${
    number(of(digests, "slow endpoint").requestsInView)
  } token requests. At a
renewal, only the processes that look during that minute do so.

**The endpoint's rate limit is too low.** Sharing is not guaranteed: with the store down, the fleet needs N token
requests within two minutes. If the limit is lower, the rest get \`RateLimited\` and try again after a cooldown. Until
then they serve their old token, which is valid for ${number((ahead - window) / 60)} to ${
    number(ahead / 60)
  } more minutes.

## Your own fleet

N processes; tokens with a lifetime of L; an endpoint that takes D; at most P between two calls of \`get\` in one process;
k client ids.

| quantity | formula | for the fleet of ${number(large)} above |
| --- | --- | --- |
| \`ahead\`: how long before expiry the first process may renew | 5 min, at most L ÷ 4 | 5 min |
| \`draw\`: the period over which the random moments are spread | ahead × 0.2 | ${
    number(formulas.jitter(common.life) / 1000)
  } s |
| token requests an hour, shared | k × 60 min ÷ (L − ahead) at most | ${
    number(formulas.sharedPerHour(Infinity, common), 3)
  } |
| token requests an hour, not shared | N × 60 min ÷ (L − 0.9 × ahead + P ÷ 3) | ${
    number(formulas.alonePerHour(large, common))
  } |
| commands of a renewal | N + 5, and more for processes that look within D | ${
    number(formulas.renewal(large, common.answer, common))
  } |
| commands a second during a renewal | N ÷ draw at most | ${number(formulas.alonePeak(large, common))} |
| processes that look within D | D × N ÷ draw at most | ${number(formulas.joining(large, common.answer, common), 1)} |
| looks that find no token, for a process that waits for all of D | D = 0.2 s: ${fruitless(200)}; 2 s: ${
    fruitless(2000)
  }; then ${number(formulas.looksASecond, 1)} a second | ${fruitless(common.answer)} |
| commands of a cold start at once | N × (2 × looks that find no token + 1) | ${
    number(formulas.cold(large, common.answer))
  } |
| of these in the first 100 ms | N × ${number(formulas.coldPeak(1), 1)} | ${number(formulas.coldPeak(large))} |
| store down at a renewal: token requests | N, on average at most N ÷ draw in a second | ${
    number(formulas.alonePeak(large, common))
  } |
| store down at a start | N at once | ${number(large)} |

The formulas assume that the pauses are spread evenly from 0 to P; another distribution changes the results only a
little. Add up the commands of all client ids that use one store.

## Methodology

- Real: \`AccessTokenProvider\`, \`SharedTokenSource\` with its sealing, and \`TokenStore.makeMemory\`, as built, with the
  defaults. Each simulated process has its own provider and source. All of them run in one Node process.
- Simulated: the clock, which jumps from one wake-up to the next and is the same for all processes; the network to the
  store, ${shortestWay} to ${longestWay} ms for each command; the endpoint, with \`expires_in\` in whole seconds; the calls, with pauses of 0 to
  60 s.
- Unless a section says otherwise, the endpoint responds after 200 ms with a new token of 60 minutes, and the processes
  start within a minute.
- The formulas are in \`tools/benchmarks/src/fleet/formulas.ts\`, and follow from the rules alone. Where the page has
  both, the run fails if formula and simulation differ by more than ${
    number(tolerance * 100)
  } %. Two figures depend on chance and are exempt:
  the highest count in a second, and the commands of a renewal whose lease holder crashes. For the second, the mean of
  ${deaths.length} fleets of ${
    number(middling)
  } is compared. The run also fails if a number of token requests is wrong, or if a call fails other
  than the \`DeadOnArrival\` above.
- Randomness comes from a seed, so each run gives the same figures. \`npm run bench -- fleet --check\` repeats the run and
  compares. The highest counts in 100 ms and in a second are those of one run; another seed gives others.
- A command is an operation of \`TokenStore\`. On Redis each is one command or one script; connections, handshakes and
  pings are not counted.

The simulation does not cover:

- Redis: its throughput, its latency under load, failover, a full disk or memory. The slow store above is a queue, not
  Redis.
- The network: lost packets, thousands of clients that reconnect at once, TLS handshakes.
- Processes that start, stop and are replaced all day, and clocks that differ.
- The endpoint's own limits: here it accepts every request.
- The time of the cryptography: virtual time does not pass during it.
`
}
