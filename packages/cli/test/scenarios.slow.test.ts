/** `store-api check` against each scenario of the token endpoint: it names the cause that the scenario stands for. */
import { assert, describe, it } from "@effect/vitest"
import { Scenario } from "@store-api/emulator"
import { Effect } from "effect"
import { check, startedWith } from "./support/checking.js"

/** The end of the expectation of a scenario, and what the check says. */
const causes: ReadonlyArray<readonly [expected: RegExp, said: RegExp]> = [
  [/ or /, /^/],
  [/^a token /, /^a token valid for /],
  [/\(InvalidClient\)/, /^(the client id or the secret is wrong|a web page refuses access without a reason) \(401\)/],
  [
    /\(InvalidRequest\)/,
    /^(the endpoint does not understand the request|the response is a web page, not JSON) \(\d+\)/
  ],
  [/\(Other\)/, /^(the endpoint responded with an error|the response is a web page, not JSON) \(\d+\)/],
  [/\(RateLimited\)/, /^the endpoint limits the rate of requests \(429\)/],
  [/\(Unavailable\)/, /^(the endpoint is not available \((408|5\d\d)\)|there was no response \(Timeout\), after)/],
  [/\(Redirect\)/, /^it was redirected/],
  [
    /\((Timeout|TooLarge|Transport)\)/,
    /^there (was no response \((Timeout|TooLarge|Transport)\)|is no connection to )/
  ],
  [/TokenResponseError/, /^the response (contains no token|is a web page, not JSON)/],
  [/TokenExpiredError/, /^the token cannot be used/]
]

const names = Scenario.names.filter((name) => name.startsWith("token/") && !Scenario.all[name].tls)

describe("store-api check names the cause of", { timeout: 60_000, concurrent: true }, () => {
  it.live.each(names)("%s", (name) =>
    Effect.gen(function*() {
      const { expected } = Scenario.all[name]
      const { user } = yield* startedWith({}, Scenario.get(name))
      const { code, steps } = yield* check(user)
      const request = steps.find(({ failed, name }) => failed || name === "token request")
      assert.match(request?.said ?? "", causes.find(([pattern]) => pattern.test(expected))?.[1] ?? /never/, expected)
      assert.strictEqual(code === 0, request?.failed === false && steps.every(({ failed }) => !failed))
    }).pipe(Effect.scoped))
})
