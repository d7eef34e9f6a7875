/** Declares the tests of one HTTP client: no output of any scenario contains the secret or a token. */
import { inspect } from "node:util"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Scenario } from "@store-api/emulator"
import { Effect, Metric } from "effect"
import type { Canary } from "./canary.js"
import { type Client, clients } from "./clients.js"
import { extraScenarios, overTls } from "./extraScenarios.js"
import { take } from "./journey.js"
import type { Output } from "./renderings.js"
import { leaksIn } from "./search.js"
import { watchProcess } from "./watchProcess.js"

const all = [
  ...Object.entries(Scenario.all).map(([name, { script, tls }]) => ({ name, script: () => script, tls })),
  ...Object.entries(extraScenarios).map(([name, script]) => ({ name, script, tls: overTls.includes(name) }))
]

/** A name up to its first hyphen: all redirects are of one kind, and all responses with the same status. */
const kindOf = (name: string) => name.split("-", 1)[0]

const isFirst = ({ name }: typeof all[number], index: number) =>
  all.findIndex((other) => kindOf(other.name) === kindOf(name)) === index

/** The errors that must occur in a run, so that the search has something to look at. */
const requiredErrors = [
  "TokenExpiredError/DeadOnArrival",
  "TokenRequestError/Transport",
  "TokenRequestError/Timeout",
  "TokenRequestError/Certificate",
  "TokenRequestError/Redirect",
  "TokenRequestError/TooLarge",
  "TokenRefusedError/InvalidClient",
  "TokenRefusedError/InvalidRequest",
  "TokenRefusedError/RateLimited",
  "TokenRefusedError/Unavailable",
  "TokenRefusedError/Other",
  "TokenResponseError",
  "UntrustedOriginError",
  "HttpClientError/InvalidUrl",
  "HttpClientError/Encode",
  "HttpClientError/Transport",
  "HttpClientError/StatusCode",
  "HttpClientError/Decode",
  "ParseError"
]

/** Runs the first scenario of each kind, which is enough for every kind of error, or the other ones. */
export const onEveryScenario = (name: keyof typeof clients, ofEachKind: "first" | "others"): void => {
  const scenarios = all.filter((scenario, index) => isFirst(scenario, index) === (ofEachKind === "first"))
  const client = clients[name] as Client
  const occurred = new Set<string>()
  const canaries = new Map<string, Canary>()
  const processOutputs: Array<Output> = []
  const count = { scenarios: 0, outputs: 0, characters: 0, leaks: 0 }

  let stop = () => {}
  beforeAll(() => {
    stop = watchProcess((output) => processOutputs.push(output))
  })
  afterAll(() => {
    stop()
    console.log(
      `${name}: ${count.scenarios} scenarios, ${count.outputs} outputs (${
        Math.round(count.characters / 1e6)
      } million ` +
        `characters), ${count.leaks} leaks; also ${processOutputs.length} console lines and warnings`
    )
  })

  describe.concurrent(`no secret or token leaks on ${name}`, () => {
    for (const { name, script, tls } of scenarios) {
      it.scopedLive(name, () =>
        Effect.gen(function*() {
          const journey = yield* take(client, { script, tls })
          const leaks = leaksIn(journey.outputs, journey.canaries)
          for (const error of journey.errors) occurred.add(error)
          for (const status of journey.apiStatuses) occurred.add(`api ${status}`)
          for (const canary of journey.canaries) canaries.set(canary.value, canary)
          count.scenarios++
          count.outputs += journey.outputs.length
          count.characters += journey.outputs.reduce((sum, { text }) => sum + text.length, 0)
          count.leaks += leaks.length
          assert.isAbove(journey.outputs.length, 150)
          deepStrictEqual(leaks, [])
        }), 60_000)
    }
  })

  describe(`outside the scenarios on ${name}`, () => {
    it.effect("nothing leaks on the console of the process, in its warnings or in the metrics", () =>
      Effect.gen(function*() {
        const text = inspect(yield* Metric.snapshot, { depth: 10, maxArrayLength: Infinity })
        assert.include(text, "store_api_token_acquisitions")
        deepStrictEqual(leaksIn([...processOutputs, { name: "metrics", text }], [...canaries.values()]), [])
      }))

    if (ofEachKind === "first") {
      it("control: all kinds of errors occurred, and the API responded with 200 and 401", () => {
        deepStrictEqual(requiredErrors.filter((kind) => !occurred.has(kind)), [])
        deepStrictEqual(["api 200", "api 401"].filter((kind) => !occurred.has(kind)), [])
      })
    }
  })
}
