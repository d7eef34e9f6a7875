/** The page of fleets. */
import { markdown, number } from "../table.js"
import { mostOfRepeated, tolerance } from "./checks.js"
import { type Digests, of } from "./digest.js"
import * as formulas from "./formulas.js"
import { coldPlot, kindsPlot, outagePlot, renewalPlot, repeatedPlot, requestsPlot } from "./plots.js"
import { common, deaths, large, middling, minute } from "./scenarios.js"
import { longestWay, shortestWay } from "./store.js"
import { capacityTable, colds, kinds, outages, perHour, renewals, shortLives } from "./tables.js"

/**
 * Commands a second that a store shall do for each process: twice those with which the last one just has its response
 * in time.
 */
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
  const inVain = (answer: number) => formulas.looks(formulas.published(answer)).count
  const { commands } = of(digests, "cold")
  const { mostRequestsInASecond } = of(digests, "outage")
  const ahead = formulas.ahead(common.life) / 1000
  const window = (formulas.jitter(common.life) + common.longestPause) / 1000
  return `# Fleets

How many token requests a fleet sends with \`SharedTokenSource\`, and what its store has to do for that. Written by
\`npm run bench -- fleet\`: the real provider and the real shared source, ${number(large)} of them, on virtual time.
See [Methodology](#methodology).

## Summary

Token requests an hour, tokens of 60 minutes:

${markdown(perHour(digests))}

![Token requests an hour by number of processes](fleets/requests.svg)

- **A fleet of any size sends about ${number(one, 2)} token requests an hour.** Without sharing each process sends ${
    number(each, 2)
  }.
- **A renewal costs the store one command per process**, spread over two minutes. No caller waits for it.
- **A cold start of all at once is the hard moment**: ${
    number(commands / large, 0)
  } commands per process, most of them in the first 100 ms. A store that
  does no more than ${
    number(1000 / formulas.storeTimeout)
  } a second for each process is given up, and the endpoint is asked instead.
- **A store that is down costs what not sharing costs**, within two minutes: ${number(large)} processes send ${
    number(large)
  } token requests, at
  most ${number(mostRequestsInASecond)} in a second. No call fails, if the endpoint bears that.

## Two kinds of endpoint

Most endpoints return a new token for each request. Others return the same token, with what is left of its lifetime, until
it expires. The figures are per hour, for tokens of 60 minutes:

${markdown(kinds(digests))}

![Token requests an hour by kind of endpoint](fleets/kinds.svg)

- **A fleet sends at most ${mostOfRepeated} token requests in the lifetime of a token that the endpoint repeats**, as one process does. The
  one that gets the same token stores it again. The other processes find it at their next look, and do not ask until a
  quarter of what was left of it is left.
- Each process looks into the store in the last 5 minutes, and then when 20 to 25 % of what was left is left: three or four times.
- Callers wait only when the token has expired, because there is no new one before. The first caller of each process waits
  then, for the endpoint or for the store, as after a start.
- Without sharing, ${number(of(digests, `${middling} repeated alone`).failed)} of ${
    number(of(digests, `${middling} repeated alone`).calls)
  } calls of ${number(middling)} processes failed, with \`DeadOnArrival\`. \`expires_in\` is in whole
  seconds. A process that starts with a token that is already in use may find it expired up to a second early, and the endpoint
  still returns it then.

![The last minutes of a token](fleets/repeated.svg)

## A renewal

${markdown(renewals(digests))}

![A renewal by second](fleets/renewal.svg)

Each process draws its own moment: when 5 minutes × 0.8 to 1 are left of the token. It looks at its next call after that. The
first one renews, for all. The others look once, find the new token and are done. A process whose turn comes while the first
one still waits for the endpoint looks again after 50 ms, then 100, 200, 400 and 500 ms (× 0.75 to 1), with two commands
each time. It serves the old token until then.

If the lease holder crashes, the lease ends after 5 seconds, and then another process renews: two token requests.

## A cold start

${markdown(colds(digests))}

![A cold start by 100 ms](fleets/cold.svg)

All look, one gets the lease, the others look again and again as above. Here callers do wait. The formula takes each pause at
its mean. The pauses end at half a second: a waiting process sends ${
    number(2 * formulas.looksASecond, 1)
  } commands a second then. The fleet that is started within a minute needs no more than a
renewal does.

With the store down each process asks for itself: ${
    number(of(digests, "cold, store down").requestsInView)
  } token requests of ${number(large)} processes, ${
    number(of(digests, "cold, store down").mostRequestsInASecond)
  } of them in the first second. No
jitter helps there. Start such a fleet slowly.

## Short-lived tokens

Tokens of 60 seconds, ${number(middling)} processes, an endpoint of 200 ms, ${
    number((15 * minute - minute) / minute)
  } minutes:

${markdown(shortLives(digests))}

The random moment is a part of the lifetime: here 12 to 15 seconds are left. So all have their turn within 3 seconds, or at their next call.
A process whose pauses are longer finds its own token expired, and waits for one command of the store.

## The store is down

For 10 minutes, from 5 minutes before a renewal until 5 minutes after, and empty when it is back:

${markdown(outages(digests))}

![Token requests by second, with the store down](fleets/outage.svg)

- Sharing makes the fleet's tokens equally old. Only the draw and the pauses between calls spread the requests, over ${
    number(window)
  } s here.
- A store that never responds costs each acquisition its timeout of 1 second, in the background.
- When it is back, the tokens of the fleet differ. The first to renew publishes its token, and all the others take it: one token
  request.

## When it is not enough

**The store is too slow.** ${
    number(middling)
  } processes start at once against a store that does one command after the other:

${markdown(capacityTable(digests))}

A process gives a command 1 second. All send their first one at the same moment, so the last is answered after N ÷ S seconds (N
processes, S commands a second). While that is less than a second there is one token request: a slow store delays, and each
process has one command under way at a time. From there on the processes give up, and ask the endpoint within seconds. With ${enough} × N
commands a second there is room. So one store for one client id is enough for

${
    markdown([
      ["if it does", "that start at once", "that start within a minute, or renew"],
      ...budgets.map((budget) => [
        `${number(budget)} commands/s`,
        `${number(budget / enough)} processes`,
        `${number(budget * 60 / enough)} processes`
      ])
    ])
  }

These rows are divisions, S ÷ ${enough} and 60 × S ÷ ${enough}: measure what your store does, with your network between. Beyond that: start in
groups, raise \`storeTimeout\`, or use several client ids. One id is one key, so a Redis Cluster does not spread it. Several ids
are several keys, and each renews at its own time. Each id costs ${number(one, 2)} token requests an hour.

**The endpoint is too slow.** A process waits for another's token for 34 to 45 seconds (\`maxWait\`), then asks for itself. With an endpoint
that takes a minute, ${number(middling)} processes that start at once send ${
    number(of(digests, "slow endpoint").requestsInView)
  } token requests. At a renewal only the processes whose turn
comes in that time do so.

**The endpoint's limit is too low.** Sharing is not guaranteed: with the store down you need N token requests within two minutes. If the
limit is lower, the rest get \`RateLimited\` and try again after a pause. Until then they serve their old token, which is valid for
${number((ahead - window) / 60)} to ${number(ahead / 60)} minutes more.

## Your own fleet

N processes, with tokens of lifetime L. An endpoint that takes D. Calls of a process at most P apart. k client ids.

| what | how much | for the fleet of ${number(large)} above |
| --- | --- | --- |
| \`ahead\`: how long before the end the first may renew | 5 min, at most L ÷ 4 | 5 min |
| \`draw\`: over what the turns are spread by chance | ahead × 0.2 | ${number(formulas.jitter(common.life) / 1000)} s |
| token requests an hour, shared | k × 60 min ÷ (L − ahead) at most | ${
    number(formulas.sharedPerHour(Infinity, common), 3)
  } |
| token requests an hour, a token each | N × 60 min ÷ (L − 0.9 × ahead + P ÷ 3) | ${
    number(formulas.alonePerHour(large, common))
  } |
| commands of a renewal | N + 5, and more for processes that come within D | ${
    number(formulas.renewal(large, common.answer, common))
  } |
| commands a second in that time | N ÷ draw at most | ${number(formulas.alonePeak(large, common))} |
| processes that come within D | D × N ÷ draw at most | ${number(formulas.joining(large, common.answer, common), 1)} |
| looks without a token of a process that waits through all of D | D = 0.2 s: ${inVain(200)}; 2 s: ${
    inVain(2000)
  }; then ${number(formulas.looksASecond, 1)} a second | ${inVain(common.answer)} |
| commands of a cold start at once | N × (2 × looks without a token + 1) | ${
    number(formulas.cold(large, common.answer))
  } |
| of these in the first 100 ms | N × ${2 * formulas.looks(100).count} | ${number(formulas.coldPeak(large))} |
| store down at a renewal: token requests | N, at most N ÷ draw in a second, and what chance adds | ${
    number(formulas.alonePeak(large, common))
  } |
| store down at a start | N at once | ${number(large)} |

Of one process, P is the pause between its own calls of \`get\`. Pauses are taken as evenly spread from 0 to P; others change the
digits only. Count the commands of all client ids of one store together.

## Methodology

- Real: \`AccessTokenProvider\`, \`SharedTokenSource\` with its sealing, \`TokenStore.makeMemory\`, all as built. Each process has its own, with
  the defaults. They run in one Node process.
- Simulated: the clock, which goes from one awakening to the next; the way to the store and back, ${shortestWay} to ${longestWay} ms for each command,
  all processes' clocks the same; the endpoint, which answers after 200 ms with a new token of 60 minutes, where nothing else is
  said, in whole seconds; the calls, with pauses of 0 to 60 s. Processes start within a minute, where nothing else is said.
- The formulas are in \`tools/benchmarks/src/fleet/formulas.ts\`, made from the rules alone. Where both stand, they differ by at
  most ${
    number(tolerance * 100)
  } %: else the run fails. Only the most in a second, and who renews while a lease holder is dead, are what chance makes of the
  formula's mean; of the latter the mean of ${deaths.length} fleets of ${
    number(middling)
  } is compared. It fails as well when a token request is too many or too few, and when a call fails.
- Chance comes from a seed: each run gives the same figures. \`npm run bench -- fleet --check\` runs it again and compares. The most in
  100 ms and in a second are of one run: another seed gives others.
- A command is an operation of \`TokenStore\`. On Redis each is one command or one script; connecting, its handshakes and pings
  are not counted.

Limits of the simulation:

- Redis: how many commands a second yours does, its latency under load, failover, a full disk or memory. The store that is too slow above is
  a queue, no Redis.
- The network: lost packets, reconnects of thousands of clients at once, TLS handshakes.
- Processes that start, stop and are replaced all day, and clocks that differ.
- The endpoint's own limits: it answers every request here.
- The time of the cryptography: virtual time does not pass during it.
`
}
